"""Which streamed part a fact means that does not name it as the facts before it did.

The pieces of a text and its end may differ in the ids that they carry: a part id or a message id on
one side only. An end that names less means the only part that its speaker has open in the turn; one
that names more gives that part its name, if the part had none. Where several parts are open, nobody
can tell which one is meant: the text gets a part of its own, and a remark. A piece always goes by
the ids that it carries, because texts are streamed beside each other.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from factwire.facts.fact import Fact, id_of
from factwire.projection.payload_fields import subagent_of, turn_of

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft
    from factwire.projection.messages import Message, PartHandle


def anonymous_message_id(fact: Fact) -> str:
    """The message in which a turn answers where its facts name none."""
    speaker, turn = subagent_of(fact), turn_of(fact) or "thread"
    return f"{turn}:{speaker}:answer" if speaker else f"{turn}:answer"


def match_open_part(
    draft: "StateDraft", fact: Fact, message_id: str, kind: str
) -> "PartHandle | None":
    """The open part that a fact ends, though it does not name it exactly."""
    memory, part_id = draft.memory, id_of(fact, "partId")
    place = memory.message_place(turn_of(fact), message_id)
    names_message = id_of(fact, "messageId") is not None
    pool = _list_open_parts(draft, fact, kind)
    if names_message and place is not None:
        inside = [handle for handle in pool if handle.place == place]
        if inside or _has_part(draft.state.messages[place], draft, kind):
            pool = inside
    anonymous = anonymous_message_id(fact)
    found = [
        handle
        for handle in pool
        if not names_message or handle.place == place or _is_anonymous(handle.message, anonymous)
    ]
    if part_id is not None:
        exact = [handle for handle in found if _goes_by(draft, handle, kind, part_id)]
        pool = exact or pool
        found = exact or [handle for handle in found if _is_unnamed(handle, kind)]
    if len(pool) > 1 and found:
        draft.ambiguous = True
    if len(pool) != 1 or not found:
        return None
    _name_part(draft, fact, found[0], kind, message_id if place is None else None)
    return found[0]


def match_named_part(
    draft: "StateDraft", fact: Fact, part_id: str, kind: str
) -> "PartHandle | None":
    """The open part with this id, in whichever message its speaker has it."""
    found = [
        handle
        for handle in _list_open_parts(draft, fact, kind)
        if _goes_by(draft, handle, kind, part_id)
    ]
    return found[0] if len(found) == 1 else None


def _list_open_parts(draft: "StateDraft", fact: Fact, kind: str) -> "Sequence[PartHandle]":
    """What the speaker of a fact has begun in its turn and not ended."""
    memory, turn, speaker = draft.memory, turn_of(fact), subagent_of(fact)
    return [
        handle
        for place, message in sorted(memory.open_messages.items())
        if message.turn_id == turn and message.subagent_id == speaker and message.role != "user"
        for part in message.parts
        if (handle := memory.parts_by_id.get((place, kind, part.part_id))) is not None
        and getattr(part, "state", None) == "streaming"
        and getattr(part, "settles", None) is None
    ]


def _has_part(message: "Message", draft: "StateDraft", kind: str) -> bool:
    place = draft.memory.message_place(message.turn_id, message.message_id)
    parts = draft.memory.parts_by_id
    return any((place, kind, part.part_id) in parts for part in message.parts)


def _goes_by(draft: "StateDraft", handle: "PartHandle", kind: str, part_id: str) -> bool:
    return draft.memory.parts_by_id.get((handle.place, kind, part_id)) is handle


def _is_unnamed(handle: "PartHandle", kind: str) -> bool:
    own = f"{handle.part.message_id}:{kind}"
    name = handle.part.part_id
    is_generated = name == own or name.startswith(f"{own}:")
    return is_generated and not getattr(handle.part, "aliases", None)


def _is_anonymous(message: "Message", name: str) -> bool:
    return message.message_id == name and not message.aliases


def _name_part(
    draft: "StateDraft", fact: Fact, handle: "PartHandle", kind: str, message_name: str | None
) -> None:
    """Note the names that a fact has for a part and its message, so that both find them again."""
    message, part, part_id = handle.message, handle.part, id_of(fact, "partId")
    names_message = id_of(fact, "messageId") is not None
    if message_name is not None and names_message and message.message_id != message_name:
        draft.put(message, handle.message_path, "aliases", [message_name])
        draft.memory.keep_aliases(message, handle.place)
    if part_id is not None and part.part_id != part_id:
        draft.put(part, handle.path, "aliases", [part_id])
        draft.memory.keep_part_aliases(handle, kind)
