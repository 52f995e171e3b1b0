"""Live sources: outside agents that the runtime runs, told by the converters of their streams."""

from factwire.sources.live.agent import LiveAgent, Work
from factwire.sources.live.pipe import JsonPipe, opened_pipe
from factwire.sources.live.programs import NotInstalled, Program
from factwire.sources.live.telling import LiveTelling
from factwire.sources.live.turn import LiveTurn

__all__ = [
    "JsonPipe",
    "LiveAgent",
    "LiveTelling",
    "LiveTurn",
    "NotInstalled",
    "Program",
    "Work",
    "opened_pipe",
]
