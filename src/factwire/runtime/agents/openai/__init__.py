"""`openai`: any endpoint that speaks OpenAI's chat API, with the toolbox in its hands."""

from factwire.runtime.agents.openai.agent import EXTRA, OpenAIAgent, openai_agent
from factwire.runtime.agents.openai.endpoints import Endpoint, endpoint_of
from factwire.runtime.agents.openai.failures import MODEL_FAILURES
from factwire.runtime.agents.openai.options import OpenAIOptions

__all__ = [
    "EXTRA",
    "MODEL_FAILURES",
    "Endpoint",
    "OpenAIAgent",
    "OpenAIOptions",
    "endpoint_of",
    "openai_agent",
]
