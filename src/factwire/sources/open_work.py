"""What a telling keeps of what has begun and not ended, each with the scope that it began in."""

from typing import Any, Final

import msgspec

from factwire.runtime.minting import Scope

DONE_IN_A_TURN: Final = frozenset(
    {
        "action",
        "command",
        "context",
        "file",
        "model",
        "patch",
        "permission",
        "plan",
        "reasoning",
        "sandbox",
        "test",
        "tool",
    }
)
"""Families of classes that stand in a turn and nowhere else."""

TURNS_KEPT: Final = 4_096
"""Turns whose ids are remembered, so that none begins twice under the same one."""


class OpenMessage(msgspec.Struct):
    """A text that is being written; its pieces are joined at its end."""

    pieces: list[str]
    message_id: str
    part_id: str | None
    scope: Scope


class OpenTool(msgspec.Struct, frozen=True):
    """A call that has not ended."""

    name: str | None
    args: Any
    scope: Scope
