"""Text that arrives in pieces: which classes carry them, which end a text, which text it is."""

from typing import Final

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.ids import id_of


class Pieces(msgspec.Struct, frozen=True):
    """Where the pieces of one kind of text stand, and what tells two texts of a kind apart."""

    family: str
    key: str
    ids: tuple[str, ...]
    field: str = ""


_MESSAGE: Final = ("messageId", "partId")

PIECES: Final = {
    "model.delta": Pieces("model", "delta", _MESSAGE),
    "text.delta": Pieces("model", "delta", _MESSAGE),
    "reasoning.delta": Pieces("reasoning", "delta", _MESSAGE),
    "plan.delta": Pieces("plan", "delta", _MESSAGE),
    "tool.args.delta": Pieces("args", "delta", ("toolCallId",)),
    "tool.output.delta": Pieces("output", "delta", ("toolCallId",), "stream"),
    "process.output": Pieces("process", "text", ("processId", "toolCallId"), "stream"),
    "command.output": Pieces("command", "text", ("toolCallId",), "stream"),
}

CLOSERS: Final = {
    "model.completed": ("model.delta", "text"),
    "model.failed": ("model.delta", "text"),
    "text.final": ("text.delta", "text"),
    "reasoning.completed": ("reasoning.delta", "text"),
    "plan.final": ("plan.delta", "text"),
    "tool.args": ("tool.args.delta", "args"),
    "tool.result": ("tool.output.delta", "output"),
    "tool.failed": ("tool.output.delta", "output"),
    "process.completed": ("process.output", ""),
    "process.failed": ("process.output", ""),
    "process.terminated": ("process.output", ""),
    "command.exited": ("command.output", ""),
}
"""A class that ends a text → the class of its pieces, and the key under which it may bring all."""


TextKey = tuple[str | None, str, tuple[str | None, ...], str]
"""One text that arrives in pieces: its turn, family and ids, and the stream within them."""


def text_key(fact: Fact, pieces: Pieces) -> TextKey:
    payload = fact.payload
    field = payload.get(pieces.field, "") if pieces.field else ""
    if pieces.ids is _MESSAGE:
        ids = (
            fact.message_id or payload.get("messageId") or payload.get("message_id"),
            fact.part_id or payload.get("partId") or payload.get("part_id"),
        )
    else:
        ids = tuple([id_of(fact, name) for name in pieces.ids])
    return fact.turn_id or id_of(fact, "turnId"), pieces.family, ids, str(field)


def closes(fact: Fact, pieces: Pieces, key: TextKey) -> bool:
    """Whether a closing fact is about this text; it may name fewer ids than the pieces did."""
    turn, family, ids, _ = key
    if family != pieces.family or turn != id_of(fact, "turnId"):
        return False
    named = (id_of(fact, name) for name in pieces.ids)
    return all(name is None or name == known for name, known in zip(named, ids, strict=True))
