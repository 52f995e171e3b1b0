"""What an agent gives for a turn, checked to be a stream before anything is asked of it.

The commonest slip of an adapter is a `start_turn` without a `yield`: that makes a coroutine, which
nobody awaits, or a plain value. Either is told as what it is, and not as a missing attribute.
"""

import inspect
from collections.abc import AsyncGenerator
from typing import Any, Final, cast

from factwire.facts import Fact
from factwire.runtime.errors import TurnFailed
from factwire.runtime.provider import Provider, StartTurn

_EXPECTED: Final = "start_turn must be an async generator (use yield)"


def not_a_stream(given: str) -> str:
    """What to say of an agent whose `start_turn` gives something else."""
    return f"{_EXPECTED}, got {given}"


def stream_of(provider: Provider, turn: StartTurn) -> AsyncGenerator[Fact]:
    """The stream of a turn; whatever else `start_turn` gives fails the turn."""
    given: Any = provider.start_turn(turn)
    if hasattr(given, "__aiter__") and hasattr(given, "aclose"):
        return cast("AsyncGenerator[Fact]", given)
    if inspect.iscoroutine(given):
        # Nobody will await it, which Python would complain about at some later time.
        given.close()
        what = "a coroutine"
    else:
        what = type(given).__name__
    hint = "Write start_turn as `async def` with a `yield` for each fact."
    raise TurnFailed("provider_error", not_a_stream(what), hint)
