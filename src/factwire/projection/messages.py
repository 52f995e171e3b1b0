"""Messages: what a person reads, in parts that are never doubled.

A part is known by turn, message and part id. Deltas add to it exactly as they come; the final fact
replaces its text and closes it, and never opens a second part. Only model text and the user's own
input become text here: tools, artifacts, evidence and diagnostics stand beside it as parts that
point elsewhere. `settles` is how something ends that cannot be called ended yet because facts
before it are missing; `stale` is a text of which pieces may be missing.

The pieces of a text and its end may differ in the ids that they carry: a part id or a message id on
one side only. An end that names less means the only part that its speaker has open in the turn; one
that names more gives that part its name, if the part had none. Where several parts are open, nobody
can tell which one is meant: the text gets a part of its own, and a remark. A piece always goes by
the ids that it carries, because texts are streamed beside each other.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, cast, get_args

import msgspec

from factwire.facts.classes.payloads import Person, to_person
from factwire.facts.fact import Fact, RunEntity, id_in_payload, id_of
from factwire.facts.json_values import text_at, texts_of
from factwire.facts.outcomes import bad_end
from factwire.projection import hydration
from factwire.projection.changes import Operation
from factwire.projection.payload_fields import (
    input_refs,
    other_id,
    outcome_of,
    subagent_of,
    turn_of,
    user_texts,
)
from factwire.projection.turns import find_entity, is_in_ended_turn
from factwire.projection.views import Text, View

if TYPE_CHECKING:
    from factwire.projection.draft import StateDraft


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
    anonymous = anonymous_message_id(fact)
    if names_message and place is None and memory.message_place(turn_of(fact), anonymous) is None:
        return None
    pool = _list_open_parts(draft, fact, kind)
    if names_message and place is not None:
        inside = [handle for handle in pool if handle.place == place]
        if inside or _has_part(draft.state.messages[place], draft, kind):
            pool = inside
    found = [
        handle
        for handle in pool
        if not names_message or handle.place == place or _is_anonymous(handle.message, anonymous)
    ]
    if part_id is not None:
        exact = [handle for handle in found if _goes_by(draft, handle, kind, part_id)]
        pool = exact or pool
        found = exact or [handle for handle in found if _is_unnamed(handle, kind)]
    if len(pool) > 1 and part_id is None:
        pool = found = _match_streamed_text(found, fact) or found
    if len(pool) > 1 and found:
        draft.ambiguous = True
    if len(pool) != 1 or not found:
        return None
    _name_part(draft, fact, found[0], kind, message_id if place is None else None)
    return found[0]


def _match_streamed_text(pool: "Sequence[PartHandle]", fact: Fact) -> "list[PartHandle]":
    """Of several open texts the one that a whole text goes on from: what was streamed of it is how
    the whole one begins, and is the longest of which that is true.
    """
    whole = fact.payload.get("text")
    if type(whole) is not str:
        return []
    streamed = [(str(getattr(handle.part, "text", "")), handle) for handle in pool]
    begun = [(text, handle) for text, handle in streamed if text and whole.startswith(text)]
    longest = max((len(text) for text, _ in begun), default=0)
    return [handle for text, handle in begun if len(text) == longest][-1:]


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
        and getattr(part, "state", None) in ("streaming", "stale")
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


MessageStatus = Literal["streaming", "final", "interrupted", "stale", "retracted"]
PartState = Literal["streaming", "final", "interrupted", "stale"]


class TextPart(View, tag_field="type", tag="text"):
    """Text to read: the answer, or what the user wrote."""

    part_id: str
    message_id: str
    text: Text
    state: PartState
    settles: PartState | None = None
    aliases: list[str] | None = None


class ReasoningPart(View, tag_field="type", tag="reasoning"):
    """That the model reasoned, and the summary it gave; the raw chain of thought is not kept."""

    part_id: str
    message_id: str
    summary: Text
    characters: int
    state: PartState
    settles: PartState | None = None
    encrypted_ref: str | None = None
    aliases: list[str] | None = None


class ToolPreviewPart(View, tag_field="type", tag="tool-preview"):
    """A tool call in its place among the text; the tool itself is in `tools`."""

    part_id: str
    message_id: str
    tool_call_id: str
    status: str
    output_ref: str | None = None


class ArtifactCardPart(View, tag_field="type", tag="artifact-card"):
    """A thing that was made, in its place; the thing itself is in `artifacts`."""

    part_id: str
    message_id: str
    artifact_id: str
    version_id: str | None = None


class EvidenceCitationPart(View, tag_field="type", tag="evidence-citation"):
    """A citation in its place; the evidence itself is in `evidence`."""

    part_id: str
    message_id: str
    evidence_id: str
    verdict: str | None = None


class DiagnosticRefPart(View, tag_field="type", tag="diagnostic-ref"):
    """A way to a diagnostic; its words are in `diagnostics` and not here."""

    part_id: str
    message_id: str
    diagnostic_id: str


Part = (
    TextPart
    | ReasoningPart
    | ToolPreviewPart
    | ArtifactCardPart
    | EvidenceCitationPart
    | DiagnosticRefPart
)


TEXT_PARTS: Final = (TextPart, ReasoningPart)
"""Types of the parts that hold a text."""

_PART_KINDS: Final = {kind: str(kind.__struct_config__.tag) for kind in get_args(Part)}


class Message(View):
    """One message of the conversation, with its parts in the order of their first facts.
    `origin_thread_id` is the thread that a fork has it from, `by` the person who wrote it.
    """

    message_id: str
    role: str
    status: MessageStatus
    sequence: int | None
    parts: list[Part]
    turn_id: str | None = None
    thread_id: str | None = None
    agent_id: str | None = None
    subagent_id: str | None = None
    task_id: str | None = None
    optimistic_id: str | None = None
    input_refs: list[str] | None = None
    by: Person | None = None
    origin_thread_id: str | None = None
    created_at: str | None = None
    completed_at: str | None = None
    settles: PartState | None = None
    aliases: list[str] | None = None


def kind_of_part(part: Part) -> str:
    """The word by which parts of a type go: `text`, `tool-preview` …"""
    return _PART_KINDS[type(part)]


class PartHandle(msgspec.Struct, eq=False, gc=False):
    """A part with the places where it stands, so that a delta finds them without a search."""

    message: Message
    place: int
    part: Part
    path: str
    message_path: str = ""
    text_path: str = ""

    def __post_init__(self) -> None:
        self.message_path = f"/messages/{self.place}"
        self.text_path = f"{self.path}/text"


MESSAGES_PATH: Final = "/messages"


def add_text(draft: "StateDraft", fact: Fact) -> None:
    """An increment, or with `text` the whole text so far."""
    payload = fact.payload
    message_id = fact.message_id or payload.get("messageId")
    handle = None
    if type(message_id) is str and "partId" not in payload and "part_id" not in payload:
        handle = draft.memory.parts.get((fact.turn_id, message_id, fact.part_id))  # pyright: ignore[reportArgumentType]
    if handle is None:
        handle = _ensure_text_part(draft, fact, ends=False)
        if handle is None:
            return
    part = cast("TextPart", handle.part)
    if part.state != "streaming" or part.settles is not None:
        handle = _reopen_part(draft, fact, handle)
        part = cast("TextPart", handle.part)
    draft.part = handle
    piece = payload.get("delta")
    if type(piece) is str:
        # What `Text.append` does; here it is done for every second fact of a stream.
        text = part.text
        text.pieces.append(piece)
        text.length += len(piece)
        draft.ops.append(Operation("append", handle.text_path, piece))
    elif type(whole := payload.get("text")) is str:
        draft.rewrite(part, handle.path, "text", whole)


def add_last_piece(draft: "StateDraft", fact: Fact) -> None:
    """The rest of a text that redaction held back until a failure ended it; a failure alone puts no
    words into a conversation.
    """
    if type(fact.payload.get("delta")) is not str:
        return
    open_part = find_streamed_part(draft, fact, message_of(draft, fact), "text", ends=True)
    if open_part is not None:
        add_text(draft, fact)


def finish_text(draft: "StateDraft", fact: Fact) -> None:
    """The whole text: it replaces what was streamed into the same part, and closes it. Without it,
    the last piece.
    """
    spanned = _match_spanned_texts(draft, fact)
    if spanned:
        _finish_spanned_texts(draft, fact, spanned)
        return
    draft.part = handle = _ensure_text_part(draft, fact, ends=True)
    if handle is None:
        return
    whole, part = fact.payload.get("text"), cast("TextPart", handle.part)
    if type(whole) is str:
        draft.rewrite(part, handle.path, "text", whole)
    elif type(rest := fact.payload.get("delta")) is str:
        draft.grow(part.text, handle.text_path, rest)
    if type(whole) is str or part.state != "stale":  # An end without the text mends no hole.
        _settle_text(draft, fact, handle)
    for superseded in texts_of(fact.payload.get("supersedes")):
        retract_message(draft, superseded)


def _settle_text(draft: "StateDraft", fact: Fact, handle: PartHandle) -> None:
    state = state_at_end(fact)
    if draft.memory.unreconciled:
        draft.put(cast("TextPart", handle.part), handle.path, "settles", state)
    else:
        finish_part(draft, handle, fact.completed_at or fact.created_at, state)


_TEXT_JOINTS: Final = ("", "\n", "\n\n")
"""What stands between the texts of a message where a source gives them as one."""


def _match_spanned_texts(draft: "StateDraft", fact: Fact) -> list[PartHandle]:
    """The texts of a message that a whole text without a part id repeats one after the other, the
    last of which it may go on; none where it is the text of one part.
    """
    whole, memory = fact.payload.get("text"), draft.memory
    place = memory.message_place(turn_of(fact), message_of(draft, fact))
    if type(whole) is not str or place not in memory.open_messages or id_of(fact, "partId"):
        return []
    message = draft.state.messages[place]
    parts = [part for part in message.parts if isinstance(part, TextPart) and part.text]
    joined = (joint.join(str(part.text) for part in parts) for joint in _TEXT_JOINTS)
    if len(parts) < 2 or not any(map(whole.startswith, joined)):  # noqa: PLR2004 - several
        return []
    return [memory.parts_by_id[place, "text", part.part_id] for part in parts]


def _finish_spanned_texts(draft: "StateDraft", fact: Fact, handles: list[PartHandle]) -> None:
    """Close the open ones of texts that came whole, and add to the last what it lacks."""
    whole, texts = (
        cast("str", fact.payload["text"]),
        [str(cast("TextPart", each.part).text) for each in handles],
    )
    joint = next(each for each in _TEXT_JOINTS if whole.startswith(each.join(texts)))
    draft.part = last = handles[-1]
    rest = whole[len(joint.join(texts)) :]
    if rest:
        draft.rewrite(cast("TextPart", last.part), last.path, "text", texts[-1] + rest)
    for handle in handles:
        part = cast("TextPart", handle.part)
        if part.state in ("streaming", "stale"):
            _settle_text(draft, fact, handle)


def state_at_end(fact: Fact) -> "PartState":
    """How a text is after the fact that ends it: one that failed or was stopped is cut off."""
    return "final" if bad_end(fact) is None else "interrupted"


def finish_part(
    draft: "StateDraft", handle: PartHandle, at: str | None, state: PartState = "final"
) -> None:
    """Close a part, and with its last open text the message."""
    _end_part(draft, handle.part, handle.path, handle.place, state)
    message = handle.message
    is_open = message.status in ("streaming", "stale")
    if is_open and not draft.memory.open_texts.get(handle.place):
        close_message(draft, message, handle.message_path, at, state)


def close_message(
    draft: "StateDraft", message: Message, path: str, at: str | None, state: PartState = "final"
) -> None:
    """Nothing more is said in a message; one with a stale text stays stale."""
    place, end = int(path.rpartition("/")[2]), state
    for index, part in enumerate(message.parts):
        if isinstance(part, TEXT_PARTS) and part.state in ("streaming", "stale"):
            if part.state == "streaming" or part.settles is not None:
                _end_part(draft, part, f"{path}/parts/{index}", place, part.settles or state)
            elif isinstance(part, TextPart):
                end = "stale"
    draft.put(message, path, "settles", None)
    draft.put(message, path, "status", end)
    draft.fill(message, path, completed_at=at)
    if end != "stale":
        draft.memory.open_messages.pop(place, None)


def mark_message_stale(draft: "StateDraft", message: Message, path: str) -> None:
    """Facts were passed over while a message was open: what it says may lack something."""
    place = int(path.rpartition("/")[2])
    for index, part in enumerate(message.parts):
        if isinstance(part, TEXT_PARTS) and part.state == "streaming":
            _end_part(draft, part, f"{path}/parts/{index}", place, part.settles or "stale")
    draft.put(message, path, "status", "stale")


def _end_part(draft: "StateDraft", part: Part, path: str, place: int, state: PartState) -> None:
    if not isinstance(part, TEXT_PARTS):
        return
    if isinstance(part, TextPart) and part.state == "streaming" and state != "streaming":
        draft.memory.open_texts[place] -= 1
    draft.put(part, path, "settles", None)
    draft.put(part, path, "state", state)


def end_turn_messages(draft: "StateDraft", fact: Fact) -> None:
    """A turn that completed has said all; one that did not was cut off where it was."""
    state: PartState = "final" if outcome_of(fact) == "completed" else "interrupted"
    for path, message in draft.memory.open_messages_in_order():
        if not is_in_ended_turn(draft, fact, message.turn_id, message.subagent_id):
            continue
        if draft.memory.unreconciled:
            _leave_in_doubt(draft, message, path, state)
        else:
            close_message(draft, message, path, fact.created_at, state)


def _leave_in_doubt(draft: "StateDraft", message: Message, path: str, state: PartState) -> None:
    """A turn is over, and facts from before its end are missing: its texts are stale, and end as
    they are known to end once nothing is missing.
    """
    place = int(path.rpartition("/")[2])
    for index, part in enumerate(message.parts):
        if isinstance(part, TEXT_PARTS) and part.state == "streaming":
            settles, part_path = part.settles or state, f"{path}/parts/{index}"
            _end_part(draft, part, part_path, place, "stale")
            draft.put(part, part_path, "settles", settles)
    draft.put(message, path, "settles", state)
    draft.put(message, path, "status", "stale")


def settle_messages(draft: "StateDraft") -> None:
    """The state is whole again: what waited for that ends as it is known to end."""
    for path, message in draft.memory.open_messages_in_order():
        place = int(path.rpartition("/")[2])
        for index, part in enumerate(message.parts):
            if isinstance(part, TEXT_PARTS) and part.settles is not None:
                _end_part(draft, part, f"{path}/parts/{index}", place, part.settles)
        if message.settles is not None:
            close_message(draft, message, path, None, message.settles)
        elif message.status == "streaming" and _is_complete(draft, message, place):
            close_message(draft, message, path, None)


def _is_complete(draft: "StateDraft", message: Message, place: int) -> bool:
    return bool(message.parts) and not draft.memory.open_texts.get(place)


def _ensure_text_part(draft: "StateDraft", fact: Fact, *, ends: bool) -> PartHandle | None:
    """The text part that a fact is about, created by the first fact that names it; none where the
    message was taken back.
    """
    message_id, part_id = message_of(draft, fact), other_id(fact, "partId", "part_id")
    place = draft.memory.message_place(turn_of(fact), message_id)
    if place is not None and draft.state.messages[place].status == "retracted":
        return None
    handle = find_streamed_part(draft, fact, message_id, "text", ends=ends)
    own = part_id or f"{message_id}:text"
    if handle is not None and ends and is_another_text(draft, fact, handle):
        own, handle = f"{own}:{len(handle.message.parts)}", None
    if handle is None:
        state: PartState = "stale" if _may_lack_beginning(draft, fact) else "streaming"
        part = TextPart(part_id=own, message_id=message_id, text=Text(), state=state)
        handle = add_part(draft, fact, part)
    turn = fact.turn_id
    if turn is not None and handle.message.turn_id == turn:
        draft.memory.parts[turn, message_id, part_id] = handle
    return handle


def _may_lack_beginning(draft: "StateDraft", fact: Fact) -> bool:
    """Whether a text may have begun before its stream was joined: in a turn whose start nobody
    saw. Behind a read model, the thread of a child that goes on does not show that.
    """
    state, turn = draft.state, turn_of(fact)
    reason = hydration.name_doubt(draft, fact, "starts_late")
    is_restored = hydration.is_of_child(reason) and state.read_model.event_cursor is not None
    if reason not in state.hydration.reasons or is_restored:
        return False
    return not state.messages if turn is None else turn not in state.turns


def is_another_text(draft: "StateDraft", fact: Fact, handle: PartHandle) -> bool:
    """Whether a whole text that names neither message nor part comes behind one that came whole,
    too: two events without ids are two events. Behind a text that was streamed, it is that one
    again.
    """
    if id_of(fact, "partId") is not None or id_of(fact, "messageId") is not None:
        return False
    part, memory = handle.part, draft.memory
    key = f"{kind_of_part(part)}:{part_entry_key(handle.message, part)}"
    place = memory.entries.get(key)
    ended = getattr(part, "state", None) in ("final", "interrupted")
    return (ended or getattr(part, "settles", None) is not None) and (
        place is not None and len(draft.state.timeline[place].source_event_ids) == 1
    )


def part_entry_key(message: Message, part: Part) -> str:
    """What tells a part from any other of the thread."""
    turn = _quote_name(message.turn_id or "")
    return f"{turn}:{_quote_name(message.message_id)}:{_quote_name(part.part_id)}"


def _quote_name(name: str) -> str:
    return name.replace("%", "%25").replace(":", "%3A") if ":" in name or "%" in name else name


def _reopen_part(draft: "StateDraft", fact: Fact, closed: PartHandle) -> PartHandle:
    """Text behind a final text: without a part id it is the message's next text; with one, the
    same part goes on and its final text will settle it. A stale text goes on where it is, and only
    the whole of it makes it good.
    """
    part = cast("TextPart", closed.part)
    if part.state == "stale" and part.settles is None:
        if "delta" in fact.payload or type(fact.payload.get("text")) is not str:
            return closed
    elif other_id(fact, "partId", "part_id") is None:
        message_id = part.message_id
        own = f"{message_id}:text:{len(closed.message.parts)}"
        part = TextPart(part_id=own, message_id=message_id, text=Text(), state="streaming")
        return add_part(draft, fact, part)
    draft.put(part, closed.path, "settles", None)
    if part.state != "streaming":
        draft.memory.open_texts[closed.place] = draft.memory.open_texts.get(closed.place, 0) + 1
        draft.put(part, closed.path, "state", "streaming")
    _reopen_message(draft, closed.message, closed.place)
    return closed


def _reopen_message(draft: "StateDraft", message: Message, place: int) -> None:
    if message.status in ("final", "interrupted", "stale"):
        draft.put(message, f"{MESSAGES_PATH}/{place}", "status", "streaming")
        draft.memory.open_messages[place] = message


def message_of(draft: "StateDraft", fact: Fact) -> str:
    """The message that a fact speaks in; one that names none speaks in its turn's answer."""
    named = other_id(fact, "messageId", "message_id")
    if named is None:
        return anonymous_message_id(fact)
    memory = draft.memory
    alias = memory.aliases.get((turn_of(fact), named)) if memory.aliases else None
    return alias or memory.renamed.get(named, named)


def message_beside(draft: "StateDraft", fact: Fact) -> str:
    """The message beside whose text a card or a tool call stands: the one that the fact names, or
    the newest that its speaker has begun in this turn.
    """
    if fact.message_id is None:
        begun = draft.memory.newest.get((turn_of(fact), subagent_of(fact)))
        if begun is not None and id_in_payload(fact.payload, "messageId") is None:
            return draft.state.messages[begun].message_id
    return message_of(draft, fact)


def add_part(draft: "StateDraft", fact: Fact, part: Part) -> PartHandle:
    """Put a new part at the end of its message, which is created where it is new. An id that a
    part of another kind has taken is made its own.
    """
    message, place = ensure_message(draft, fact, part.message_id)
    kind, path = kind_of_part(part), f"{MESSAGES_PATH}/{place}"
    while (place, part.part_id) in draft.memory.part_ids:
        part.part_id = f"{part.part_id}:{kind}"
    handle = PartHandle(message, place, part, f"{path}/parts/{len(message.parts)}")
    if isinstance(part, TextPart) and part.state == "streaming":
        _reopen_message(draft, message, place)
    draft.push(message.parts, f"{path}/parts", part)
    draft.memory.keep_part(handle)
    return handle


def add_reference(draft: "StateDraft", fact: Fact, part: Part) -> PartHandle:
    """Put a part that points elsewhere into its message, once."""
    existing = find_part(draft, fact, part.message_id, part.part_id, kind_of_part(part))
    return existing or add_part(draft, fact, part)


def find_part(
    draft: "StateDraft", fact: Fact, message_id: str, part_id: str, kind: str
) -> PartHandle | None:
    """The part of a kind with this id, in the message that the fact means."""
    memory = draft.memory
    place = memory.message_place(turn_of(fact), message_id)
    while place is not None and (place, part_id) in memory.part_ids:
        handle = memory.parts_by_id.get((place, kind, part_id))
        if handle is not None:
            return handle
        part_id = f"{part_id}:{kind}"
    return None


def find_streamed_part(
    draft: "StateDraft", fact: Fact, message_id: str, kind: str, *, ends: bool
) -> PartHandle | None:
    """The part of a kind that a fact means: by its names, or where it `ends` a text, by what its
    speaker has open. Without a part id it is the newest part that has none.
    """
    part_id = other_id(fact, "partId", "part_id")
    if part_id is None:
        latest = find_latest_part(draft, fact, message_id, kind)
        if not ends or getattr(latest and latest.part, "state", None) == "streaming":
            return latest
        return match_open_part(draft, fact, message_id, kind) or latest
    exact = find_part(draft, fact, message_id, part_id, kind)
    if exact is not None or not ends:
        return exact
    if other_id(fact, "messageId", "message_id") is None:
        exact = match_named_part(draft, fact, part_id, kind)
    return exact or match_open_part(draft, fact, message_id, kind)


def find_latest_part(
    draft: "StateDraft", fact: Fact, message_id: str, kind: str
) -> PartHandle | None:
    """The newest part of a kind that goes by a name of ours, which facts without a part id mean."""
    place = draft.memory.message_place(turn_of(fact), message_id)
    return None if place is None else draft.memory.own_parts.get((place, kind))


def ensure_message(
    draft: "StateDraft", fact: Fact, message_id: str, role: str | None = None
) -> tuple[Message, int]:
    """The message with this id in the fact's turn, created where it is new, and its place."""
    place = draft.memory.message_place(turn_of(fact), message_id)
    if place is not None:
        return draft.state.messages[place], place
    message = Message(
        message_id=message_id,
        role=role or text_at(fact.payload, "role") or "assistant",
        status="streaming",
        sequence=fact.sequence,
        parts=[],
        turn_id=turn_of(fact),
        thread_id=fact.thread_id,
        agent_id=fact.agent_id,
        subagent_id=subagent_of(fact),
        task_id=fact.task_id,
        created_at=fact.created_at,
    )
    place = len(draft.state.messages)
    draft.push(draft.state.messages, MESSAGES_PATH, message)
    draft.memory.keep_message(message, place)
    return message, place


def add_user_message(draft: "StateDraft", fact: Fact) -> None:
    """What the user asked, as a message of theirs; a client's own id for it is replaced. What a job
    or a task was given is no part of the conversation.
    """
    entity = find_entity(draft, fact)
    if entity is not None and entity.kind in ("job", "task"):
        return
    optimistic = text_at(fact.payload, "optimisticId", "optimistic_id", "clientMessageId")
    named = id_in_payload(fact.payload, "messageId") or fact.message_id
    message_id = named or user_message_id(fact, _speaker_of(entity))
    if optimistic:
        rename_message(draft, optimistic, message_id)
    texts = user_texts(fact.payload)
    if (named is None or fact.control == "steer") and _asks_anew(draft, fact, message_id, texts):
        message_id = f"{message_id}:{fact.id}"
    refs = input_refs(fact.payload.get("input"))
    if not texts and not refs and message_id not in draft.memory.names:
        return
    message, path = _write_user_message(draft, fact, message_id, texts, refs)
    before = (message.turn_id, message.optimistic_id)
    draft.fill(message, path, optimistic_id=optimistic, turn_id=turn_of(fact))
    draft.fill(message, path, subagent_id=_speaker_of(entity))
    if before != (message.turn_id, message.optimistic_id):
        draft.memory.index_messages(draft.state.messages)


def add_steer_message(
    draft: "StateDraft", fact: Fact, steer_id: str, texts: list[str], items: object
) -> None:
    """What a person told a turn that was running: a message of its own, whatever id it comes under,
    and never another wording of the prompt.
    """
    own = ":".join(filter(None, (turn_of(fact), "steer", steer_id)))
    named = id_in_payload(fact.payload, "messageId") or fact.message_id
    place = draft.memory.message_place(turn_of(fact), named or own)
    is_other = place is not None and _texts_of(draft.state.messages[place]) != texts
    refs = input_refs(items)
    if texts or refs:
        _write_user_message(draft, fact, own if is_other or named is None else named, texts, refs)


def _write_user_message(
    draft: "StateDraft", fact: Fact, message_id: str, texts: list[str], refs: list[str]
) -> tuple[Message, str]:
    message, place = ensure_message(draft, fact, message_id, "user")
    path = f"{MESSAGES_PATH}/{place}"
    draft.fill(message, path, input_refs=refs or None, by=to_person(fact.payload.get("by")))
    for index, text in enumerate(texts):
        _add_user_text(draft, fact, message_id, index, text)
    close_message(draft, message, path, fact.created_at)
    return message, path


def _asks_anew(draft: "StateDraft", fact: Fact, message_id: str, texts: list[str]) -> bool:
    """Whether a turn that was asked something is asked something else, and not the same again or
    the same in more detail.
    """
    place = draft.memory.message_place(turn_of(fact), message_id) if texts else None
    existing = _texts_of(draft.state.messages[place]) if place is not None else []
    if not existing:
        return False
    shorter, longer = sorted((existing, texts), key=len)
    return longer[: len(shorter)] != shorter


def _texts_of(message: Message) -> list[str]:
    return [str(part.text) for part in message.parts if isinstance(part, TextPart)]


def user_message_id(fact: Fact, subagent_id: str | None) -> str:
    """The message that holds what a turn was asked, where the fact names none."""
    return ":".join(filter(None, (turn_of(fact) or fact.id, subagent_id, "user")))


def _speaker_of(entity: RunEntity | None) -> str | None:
    return entity.id if entity is not None and entity.kind == "subagent" else None


def _add_user_text(draft: "StateDraft", fact: Fact, message_id: str, index: int, text: str) -> None:
    part_id = f"{message_id}:text" if index == 0 else f"{message_id}:text:{index}"
    handle = find_part(draft, fact, message_id, part_id, "text")
    if handle is None:
        part = TextPart(part_id=part_id, message_id=message_id, text=Text(text), state="final")
        add_part(draft, fact, part)
    else:
        draft.rewrite(handle.part, handle.path, "text", text)
        finish_part(draft, handle, fact.created_at)


def rename_message(draft: "StateDraft", optimistic: str, message_id: str) -> None:
    """Give the message that a client showed under its own id the runtime's id."""
    place = draft.memory.names.get(optimistic)
    if place is None or optimistic == message_id or message_id in draft.memory.names:
        return
    message, path = draft.state.messages[place], f"{MESSAGES_PATH}/{place}"
    draft.put(message, path, "message_id", message_id)
    draft.put(message, path, "optimistic_id", optimistic)
    for index, part in enumerate(message.parts):
        draft.put(part, f"{path}/parts/{index}", "message_id", message_id)
        own = message_id + part.part_id.removeprefix(optimistic)
        if part.part_id.startswith(f"{optimistic}:"):
            draft.put(part, f"{path}/parts/{index}", "part_id", own)
    draft.memory.index_messages(draft.state.messages)


def retract_message(draft: "StateDraft", message_id: str) -> None:
    """Take back a message: its place stays, what it said goes."""
    place = draft.memory.names.get(draft.memory.renamed.get(message_id, message_id))
    if place is None or draft.state.messages[place].status == "retracted":
        return
    message, path = draft.state.messages[place], f"{MESSAGES_PATH}/{place}"
    draft.put(message, path, "status", "retracted")
    draft.put(message, path, "parts", [])
    draft.memory.index_messages(draft.state.messages)
