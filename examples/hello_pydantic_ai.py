"""An agent of Pydantic AI with a tool that wants to be asked about; its model is the SDK's own for
tests, so that it runs anywhere.
"""

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

agent = Agent(TestModel(custom_output_text="It is done."), name="hello")


@agent.tool_plain(requires_approval=True)
def deploy(target: str) -> str:
    """Deploy to a target."""
    return f"deployed to {target}"
