"""An independent account of what a list of facts must show, read straight from the facts.

A check that compares a projection with itself passes on lost facts. The account is made without a
projection: it orders the facts by thread and sequence, and notes each text, tool call, request,
artifact, piece of evidence, task, subagent and end of a turn, and which hangs on which.
`account_checks` compares it with a state. Where the facts alone do not decide what a screen shows
(messages that a snapshot replaces, one id with two bodies), the account leaves it out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from factwire.conformance.case import Wire

DELTA_CLASSES: Final = frozenset({"model.delta", "text.delta"})
FINAL_CLASSES: Final = frozenset({"model.completed", "text.final"})
TURN_ENDS: Final = {
    "turn.completed": "completed",
    "turn.failed": "failed",
    "turn.canceled": "canceled",
}
OPEN: Final = "open"
"""The outcome of a call or request that no fact ends."""

_ACTION_CLOSERS: Final = {
    "action.resolved": "resolved",
    "action.cancelled": "cancelled",
    "action.canceled": "cancelled",
    "action.expired": "expired",
}
_REQUEST_CLASSES: Final = frozenset({"action.required", "action.updated", *_ACTION_CLOSERS})
_CALL_STARTS: Final = frozenset({"tool.started", "tool.args", "tool.args.delta"})
_CALL_CLASSES: Final = _CALL_STARTS | {
    "tool.progress",
    "tool.output.delta",
    "tool.result",
    "tool.failed",
}
_CANCELLATIONS: Final = frozenset({"cancelled", "canceled", "user_cancelled", "user_canceled"})
_TASK_ENDS: Final = {
    "task.completed": "completed",
    "task.failed": "failed",
    "task.cancelled": "cancelled",
    "task.timed_out": "timed_out",
    "task.lost": "lost",
    "task.archived": "archived",
}
_TASK_ASIDES: Final = ("task.attempt.", "task.profile.", "task.dependency.", "task.delegated")
_SUBAGENT_STATES: Final = {
    "subagent.spawned": None,
    "subagent.started": None,
    "subagent.completed": "completed",
    "subagent.failed": "failed",
    "subagent.closed": None,
}
_SUBAGENT_STARTS: Final = frozenset({"subagent.spawned", "subagent.started", "channel.connected"})
_REPLACING: Final = frozenset(
    {"messages.snapshot", "history.rollback.completed", "history.window.loaded"}
)
_TAKING_BACK: Final = frozenset({"messages", "retractedMessageIds", "supersedes"})
_OTHER_ENTITIES: Final = ("subagentId", "jobId", "jobItemId", "remoteTaskId")
_OTHER_NAMES: Final = {
    "actionId": ("requestId",),
    "toolCallId": ("callId",),
}


def id_in(event: Wire, name: str) -> str | None:
    """An id of a fact: at the top level, or in the payload in camel or snake case."""
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    payload = payload_of(event)
    names = (name, snake, *_OTHER_NAMES.get(name, ()))
    found = (event.get(name), *(payload.get(each) for each in names))
    return next((value for value in found if isinstance(value, str) and value), None)


def class_of(event: Wire) -> str:
    found = event.get("eventClass")
    return found if isinstance(found, str) else ""


def payload_of(event: Wire) -> Wire:
    found = event.get("payload")
    return cast("Wire", found) if isinstance(found, Mapping) else {}


class TextAccount(msgspec.Struct, kw_only=True):
    """One text of a speaker, as its facts make it."""

    message_id: str | None
    part_id: str | None
    text: str = ""
    is_final: bool = False
    came_whole: bool = True


class CallAccount(msgspec.Struct, kw_only=True):
    """One tool call: how it ended, and when it began if a fact states that it did."""

    outcome: str = OPEN
    turn_id: str | None = None
    starts: set[str] = msgspec.field(default_factory=set[str])
    refs: list[str] = msgspec.field(default_factory=list[str])


class RequestAccount(msgspec.Struct, kw_only=True):
    """One request for a decision. The first answer counts."""

    outcome: str = OPEN
    decision: str | None = None
    turn_id: str | None = None
    call_id: str | None = None
    starts: set[str] = msgspec.field(default_factory=set[str])
    contrary: list[str] = msgspec.field(default_factory=list[str])


Speaker = tuple[str | None, str | None]
"""A turn and the subagent that speaks in it, if one does."""


class FactAccount(msgspec.Struct, kw_only=True):
    """Everything that a list of facts must show. `texts` is None where facts replace messages."""

    fact_ids: list[str] = msgspec.field(default_factory=list[str])
    texts: dict[Speaker, list[TextAccount]] | None = msgspec.field(
        default_factory=dict[Speaker, list[TextAccount]]
    )
    prompts: dict[str, list[str]] = msgspec.field(default_factory=dict[str, list[str]])
    calls: dict[str, CallAccount] = msgspec.field(default_factory=dict[str, CallAccount])
    requests: dict[str, RequestAccount] = msgspec.field(default_factory=dict[str, RequestAccount])
    artifacts: dict[str, dict[str, str]] = msgspec.field(default_factory=dict[str, dict[str, str]])
    evidence: set[str] = msgspec.field(default_factory=set[str])
    reviews: set[str] = msgspec.field(default_factory=set[str])
    tasks: dict[str, str | None] = msgspec.field(default_factory=dict[str, str | None])
    subagents: dict[str, str | None] = msgspec.field(default_factory=dict[str, str | None])
    subagent_starts: dict[str, set[str]] = msgspec.field(default_factory=dict[str, set[str]])
    parents: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    edges: set[tuple[str, str]] = msgspec.field(default_factory=set[tuple[str, str]])
    turn_ends: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    last_turn: tuple[str, str] | None = None
    """The thread's latest turn and how it ended, unless a later one began."""


def build_account(events: Sequence[Wire]) -> FactAccount:
    """The account of facts in shape A that belong to one screen, in whatever order they come."""
    account = FactAccount()
    ordered = order_events(events)
    root = _root_thread(ordered)
    if any(_replaces_messages(event) for event in ordered):
        account.texts = None
    ambiguous: set[Speaker] = set()
    for event in ordered:
        account.fact_ids += [] if _is_increment(event) else [str(event.get("id"))]
        _note_turn(account, event, root)
        _note_text(account, event, ambiguous)
        _note_call(account, event)
        _note_request(account, event)
        _note_things(account, event)
        _note_work(account, event)
    for speaker in ambiguous:
        if account.texts is not None:
            account.texts.pop(speaker, None)
    _cancel_open_work(account)
    return account


def order_events(events: Sequence[Wire]) -> list[Wire]:
    """Facts by thread and sequence, each id once. Where runs of a thread count by themselves, by
    run; a fact without a sequence stays behind the one that it follows. Ids with two bodies are
    left out.
    """
    bodies: dict[str, Wire] = {}
    contradictory: set[str] = set()
    for event in events:
        first = bodies.setdefault(str(event.get("id")), event)
        if first != event:
            contradictory.add(str(event.get("id")))
    kept = [event for name, event in bodies.items() if name not in contradictory]
    runs = _run_starts(kept, _threads_counted_by_run(kept))
    places: dict[str, int] = {}
    keyed: list[tuple[tuple[str, tuple[str, str], int, int], Wire]] = []
    for place, event in enumerate(kept):
        thread = id_in(event, "threadId") or ""
        name = id_in(event, "runId") or ""
        run = runs.get((thread, name), ""), name if (thread, name) in runs else ""
        sequence = event.get("sequence")
        if isinstance(sequence, int):
            places[thread] = sequence
        keyed.append(((thread, run, places.get(thread, -1), place), event))
    return [event for _, event in sorted(keyed, key=lambda pair: pair[0])]


def _run_starts(events: Sequence[Wire], threads: set[str]) -> dict[tuple[str, str], str]:
    """When each run of these threads began: they follow each other in time, not by name."""
    starts: dict[tuple[str, str], str] = {}
    for event in events:
        thread, run = id_in(event, "threadId") or "", id_in(event, "runId")
        if thread in threads and run is not None:
            at = str(event.get("createdAt"))
            starts[thread, run] = min(at, starts.get((thread, run), at))
    return starts


def _threads_counted_by_run(events: Sequence[Wire]) -> set[str]:
    runs: dict[tuple[str, int], str | None] = {}
    found: set[str] = set()
    for event in events:
        thread, sequence = id_in(event, "threadId") or "", event.get("sequence")
        if not isinstance(sequence, int):
            continue
        run = id_in(event, "runId")
        first = runs.setdefault((thread, sequence), run)
        if None not in (first, run) and first != run:
            found.add(thread)
    return found


def _root_thread(events: Sequence[Wire]) -> str | None:
    """The thread of the screen: the one that is nobody's child."""
    children = {id_in(event, "threadId") for event in events if id_in(event, "parentThreadId")}
    threads = [id_in(event, "threadId") for event in events]
    return next((name for name in threads if name is not None and name not in children), None)


def is_own_turn(event: Wire, root: str | None) -> bool:
    """Whether a fact is about a turn of the thread itself, and not of something within it."""
    if any(id_in(event, name) for name in _OTHER_ENTITIES):
        return False
    entity = event.get("runtimeEntity") or payload_of(event).get("runtimeEntity")
    thread = id_in(event, "threadId")
    is_own = entity in (None, "agent_turn", "unknown") and thread in (None, root)
    return is_own and (entity == "agent_turn" or not _is_below(event))


def _is_below(event: Wire) -> bool:
    """Whether lineage marks a fact as a child's on its parent's thread."""
    for above, own in (("parentThreadId", "threadId"), ("parentSessionId", "sessionId")):
        parent = id_in(event, above)
        if parent is not None:
            return id_in(event, own) in (None, parent)
    return id_in(event, "parentTaskId") is not None


def _is_increment(event: Wire) -> bool:
    """Pieces of which a timeline names only the first; the text they come to is compared."""
    name = class_of(event)
    return name.endswith((".delta", ".progress", ".output")) or name.startswith("job.item.")


def _replaces_messages(event: Wire) -> bool:
    return class_of(event) in _REPLACING or not _TAKING_BACK.isdisjoint(payload_of(event))


def _note_turn(account: FactAccount, event: Wire, root: str | None) -> None:
    name, turn = class_of(event), id_in(event, "turnId")
    if turn is None or not name.startswith("turn.") or not is_own_turn(event, root):
        return
    if name == "turn.submitted":
        texts = _input_texts(payload_of(event))
        if texts:
            account.prompts.setdefault(turn, []).extend(texts)
    elif name in TURN_ENDS:
        account.turn_ends.setdefault(turn, TURN_ENDS[name])
        account.last_turn = turn, account.turn_ends[turn]
    if name in ("turn.submitted", "turn.started") and account.last_turn is not None:
        account.last_turn = account.last_turn if account.last_turn[0] == turn else None


def _input_texts(payload: Wire) -> list[str]:
    prompt = payload.get("prompt", payload.get("text"))
    found = [prompt] if isinstance(prompt, str) and prompt else []
    parts = payload.get("input")
    rows = cast("list[Any]", parts) if isinstance(parts, list) else [parts]
    inner = cast("Wire", parts).get("parts") if isinstance(parts, Mapping) else None
    rows = [*rows, *(cast("list[Any]", inner) if isinstance(inner, list) else ())]
    for row in rows:
        text = cast("Wire", row).get("text") if isinstance(row, Mapping) else row
        if isinstance(text, str) and text and text not in found:
            found.append(text)
    return found


def _note_text(account: FactAccount, event: Wire, ambiguous: set[Speaker]) -> None:
    name = class_of(event)
    if account.texts is None or name not in DELTA_CLASSES | FINAL_CLASSES:
        return
    speaker = id_in(event, "turnId"), id_in(event, "subagentId")
    texts = account.texts.setdefault(speaker, [])
    text = _text_of(event, texts)
    if text is None:
        ambiguous.add(speaker)
    elif name in DELTA_CLASSES:
        _add_piece(text, payload_of(event))
    else:
        final = payload_of(event).get("text")
        text.text = final if isinstance(final, str) else text.text
        text.is_final = True


def _add_piece(text: TextAccount, payload: Wire) -> None:
    text.is_final = text.came_whole = False
    if isinstance(payload.get("delta"), str):
        text.text += payload["delta"]
    elif isinstance(payload.get("text"), str):
        text.text = payload["text"]


def _text_of(event: Wire, texts: list[TextAccount]) -> TextAccount | None:
    """The text that a fact is about, a new one where it opens one; None where it could be several.
    A final text that names fewer or more ids than the pieces did is about the only open text that
    its ids do not rule out.
    """
    message, part = id_in(event, "messageId"), id_in(event, "partId")
    is_final = class_of(event) in FINAL_CLASSES
    same = [text for text in texts if (text.message_id, text.part_id) == (message, part)]
    if is_final and message is part is None and same and same[-1].is_final:
        # Two events without ids are two events, unless the first one was streamed.
        same = [] if same[-1].came_whole else same
    if same and (part is not None or is_final or not same[-1].is_final):
        return same[-1]
    candidates = [
        text
        for text in texts
        if not text.is_final
        and None in (message, text.message_id, part, text.part_id)
        and (message == text.message_id or None in (message, text.message_id))
        and (part == text.part_id or None in (part, text.part_id))
    ]
    if len(candidates) > 1 or (candidates and not is_final):
        return None
    if candidates:
        return candidates[0]
    texts.append(TextAccount(message_id=message, part_id=part))
    return texts[-1]


def _note_call(account: FactAccount, event: Wire) -> None:
    name, call_id = class_of(event), id_in(event, "toolCallId")
    if name not in _CALL_CLASSES or call_id is None:
        return
    call = account.calls.setdefault(call_id, CallAccount())
    call.turn_id = call.turn_id or id_in(event, "turnId")
    if name in _CALL_STARTS:
        call.outcome = OPEN
        call.starts |= _times_of(event, "startedAt")
    elif name in ("tool.result", "tool.failed"):
        call.outcome = _call_outcome(event)
        call.refs += [ref for ref in event.get("refIds") or () if isinstance(ref, str)]


def _call_outcome(event: Wire) -> str:
    payload, statuses = payload_of(event), {event.get("status"), payload_of(event).get("status")}
    category = payload.get("failureCategory")
    if not statuses.isdisjoint(_CANCELLATIONS) or category in _CANCELLATIONS:
        return "cancelled"
    is_error = payload.get("isError") is True or payload.get("is_error") is True
    if class_of(event) == "tool.failed" or statuses & {"failed", "error"} or is_error:
        return "output-error"
    return "output-available"


def _times_of(event: Wire, name: str) -> set[str]:
    found = (event.get(name), payload_of(event).get(name), event.get("createdAt"))
    return {value for value in found if isinstance(value, str)}


def _note_request(account: FactAccount, event: Wire) -> None:
    name, action_id = class_of(event), id_in(event, "actionId")
    if name not in _REQUEST_CLASSES or action_id is None:
        return
    request = account.requests.setdefault(action_id, RequestAccount())
    request.turn_id = request.turn_id or id_in(event, "turnId")
    request.call_id = request.call_id or id_in(event, "toolCallId")
    if name == "action.required":
        request.outcome, request.decision = OPEN, None
        request.starts |= _times_of(event, "requestedAt")
    elif name in _ACTION_CLOSERS:
        decision = payload_of(event).get("decision")
        answer = _ACTION_CLOSERS[name], decision if isinstance(decision, str) else None
        if request.outcome == OPEN:
            request.outcome, request.decision = answer
        elif answer != (request.outcome, request.decision):
            request.contrary.append(str(event.get("id")))


def _note_things(account: FactAccount, event: Wire) -> None:
    family = class_of(event).partition(".")[0]
    artifact, evidence = id_in(event, "artifactId"), id_in(event, "evidenceId")
    if family == "artifact" and artifact is not None:
        owners = account.artifacts.setdefault(artifact, {})
        for name in ("taskId", "subagentId"):
            owner = id_in(event, name)
            if owner is not None:
                owners[name] = owner
    if family == "evidence" and evidence is not None:
        account.evidence.add(evidence)
    review = id_in(event, "reviewId")
    if family == "review" and review is not None and (evidence or event.get("evidenceRefs")):
        account.reviews.add(review)


def _note_work(account: FactAccount, event: Wire) -> None:
    name = class_of(event)
    task, subagent = id_in(event, "taskId"), id_in(event, "subagentId")
    if name.startswith("task.") and task is not None:
        if not name.startswith(_TASK_ASIDES):
            account.tasks[task] = _TASK_ENDS.get(name)
        else:
            account.tasks.setdefault(task, None)
        parent = id_in(event, "parentTaskId")
        account.edges |= (
            {(f"task:{parent}", f"task:{task}")} if parent not in (None, task) else set()
        )
    if name in _SUBAGENT_STATES and subagent is not None and task is not None:
        account.subagents[subagent] = _SUBAGENT_STATES[name]
        _note_lineage(account, event, subagent, task)
    if name in _SUBAGENT_STARTS and subagent is not None:
        account.subagent_starts.setdefault(subagent, set()).update(_times_of(event, "startedAt"))
    call, action = id_in(event, "toolCallId"), id_in(event, "actionId")
    if name == "action.required" and call is not None and action is not None:
        account.edges.add((f"tool:{call}", f"action:{action}"))


def _note_lineage(account: FactAccount, event: Wire, subagent: str, task: str) -> None:
    name, call = class_of(event), id_in(event, "toolCallId")
    if name in ("subagent.spawned", "subagent.started") and call is not None:
        account.edges.add((f"tool:{call}", f"subagent:{subagent}"))
    parent = payload_of(event).get("parentSubagentId")
    if not isinstance(parent, str) and not any(
        target == f"subagent:{subagent}" and not source.startswith("tool:")
        for source, target in account.edges
    ):
        account.edges.add((f"task:{task}", f"subagent:{subagent}"))
    thread = id_in(event, "parentThreadId")
    if thread is not None:
        account.parents.setdefault(subagent, thread)


def _cancel_open_work(account: FactAccount) -> None:
    """A cancelled turn takes its open calls and requests with it."""
    for call in account.calls.values():
        if call.outcome == OPEN and account.turn_ends.get(call.turn_id or "") == "canceled":
            call.outcome = "cancelled"
    for request in account.requests.values():
        if request.outcome == OPEN and account.turn_ends.get(request.turn_id or "") == "canceled":
            request.outcome = "cancelled"


def refs_in(events: Sequence[Wire]) -> Iterator[tuple[Wire, str]]:
    """Every ref that a fact states, with the fact."""
    for event in events:
        for name in ("refIds", "artifactRefs", "evidenceRefs"):
            rows = cast("list[Any]", event.get(name) or [])
            yield from ((event, ref) for ref in rows if isinstance(ref, str))
        yield from ((event, ref) for ref in _payload_refs(payload_of(event)))


def _payload_refs(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _payload_refs(item)
    elif isinstance(value, Mapping):
        for key, item in cast("Wire", value).items():
            is_ref = key.lower().endswith(("ref", "refs"))
            yield from _ref_texts(item) if is_ref else _payload_refs(item)


def _ref_texts(value: object) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _ref_texts(item)
    elif isinstance(value, Mapping):
        yield from _ref_texts(cast("Wire", value).get("ref"))
