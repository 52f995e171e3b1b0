"""Facts given against facts shown: the account of a list of facts, compared with a state document.

Every surface that shows a thing must show the same of it: a failed call is failed among the tools,
in the timeline, in the graph and in its message. The comparison reads the JSON of a state, so that
any implementation can be judged. Each difference is about exactly one requirement.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, cast

from factwire.conformance.case import Wire
from factwire.conformance.fact_account import (
    OPEN,
    FactAccount,
    Speaker,
    build_account,
    class_of,
    id_in,
    order_events,
    refs_in,
)

SHOWN: Final = "screen.facts-shown"
OUTCOMES: Final = "screen.outcomes"
EDGES: Final = "screen.edges"
TIMES: Final = "screen.times"
LEFTOVERS: Final = "screen.nothing-left-open"
DECISIONS: Final = "screen.first-answer"
PROMPTS: Final = "screen.prompts"
REFS: Final = "screen.refs"
GUESSED: Final = "screen.nothing-guessed"

_TIMELINE_STATUS: Final = {
    "output-available": ("completed",),
    "output-error": ("failed",),
    "cancelled": ("canceled", "cancelled"),
}
_REQUEST_STATUS: Final = {
    "resolved": ("resolved", "completed"),
    "cancelled": ("cancelled", "canceled"),
    "expired": ("expired",),
}
_OPEN_CALLS: Final = frozenset({"input-streaming", "input-available", "running", "progress"})
_OPEN_STATUSES: Final = frozenset({"pending", "running", "blocked", *_OPEN_CALLS})
_OUTLIVING: Final = ("task:", "attempt:", "job:", "subagent:", "process:", "command:", "hook:")
_WORKING: Final = ("spawned", "running", "waiting")
_APART: Final = ("topology", "channelId", "remoteTaskId")
"""What may go on after the turn that began it."""

_DOUBTFUL: Final = ("stream.", "snapshot.", "state.", "messages.", "history.")
_WHOLE: Final = frozenset({"live"})


class ScreenDifference(NamedTuple):
    """One way in which a state does not show what the facts state."""

    requirement: str
    message: str
    fact_id: str | None = None


def find_differences(events: Sequence[Wire], document: Wire) -> Iterator[ScreenDifference]:
    """Everything that the facts of one screen state and the state does not show, or shows
    otherwise.
    """
    account = build_account(events)
    yield from _missing_facts(account, document)
    yield from _missing_texts(account, document)
    yield from _missing_things(account, document)
    yield from _wrong_calls(account, document)
    yield from _wrong_requests(account, document)
    yield from _wrong_work(account, document)
    yield from _wrong_turns(account, document)
    yield from _missing_edges(account, document)
    yield from _invented_times(account, document)
    yield from _left_open(account, document)


ACCOUNT_REQUIREMENTS: Final = (
    SHOWN,
    OUTCOMES,
    EDGES,
    TIMES,
    LEFTOVERS,
    DECISIONS,
    PROMPTS,
    REFS,
    GUESSED,
)
"""The requirements that a difference can be about."""


def find_differences_shown(events: Sequence[Wire], document: Wire) -> Iterator[ScreenDifference]:
    """The differences of a state that claims to be whole; that a state makes no such claim is a
    difference where the facts have no hole and nothing casts doubt on them. Where facts are
    missing, what came after them may wait.
    """
    if _has_hole(events):
        return
    if reads_whole(document):
        yield from find_differences(events, document)
    elif _is_unbroken(events):
        status = object_of(document.get("hydration")).get("status")
        yield ScreenDifference(SHOWN, f"no fact is missing, and the state reads {status}")


def _has_hole(events: Sequence[Wire]) -> bool:
    """Whether sequences of a thread are missing."""
    found: dict[str | None, set[int]] = {}
    for event in events:
        sequence = event.get("sequence")
        if isinstance(sequence, int):
            found.setdefault(id_in(event, "threadId"), set()).add(sequence)
    return any(len(each) != max(each) - min(each) + 1 for each in found.values())


def _is_unbroken(events: Sequence[Wire]) -> bool:
    """Whether facts came one after the other from the start of a turn on, without any doubt."""
    last: dict[str | None, int] = {}
    for event in events:
        thread, sequence = id_in(event, "threadId"), event.get("sequence")
        if class_of(event).startswith(_DOUBTFUL) or not isinstance(sequence, int):
            return False
        if sequence != last.get(thread, sequence - 1) + 1:
            return False
        last[thread] = sequence
    return bool(events) and class_of(events[0]) == "turn.submitted"


def reads_whole(document: Wire) -> bool:
    """Whether a state claims to show everything."""
    hydration = object_of(document.get("hydration"))
    return hydration.get("status") in _WHOLE and not hydration.get("reasons")


def _missing_facts(account: FactAccount, document: Wire) -> Iterator[ScreenDifference]:
    shown = {
        name
        for entry in rows_of(document.get("timeline"))
        for name in cast("list[str]", entry.get("sourceEventIds") or [])
    }
    for name in account.fact_ids:
        if name not in shown:
            yield ScreenDifference(SHOWN, f"fact {name} is not in the timeline", name)


def texts_by_speaker(document: Wire) -> dict[Speaker, list[tuple[str, str]]]:
    """The texts of a conversation other than the user's, with their states."""
    found: dict[Speaker, list[tuple[str, str]]] = {}
    for message in rows_of(document.get("messages")):
        if message.get("role") == "user" or message.get("status") == "retracted":
            continue
        speaker = message.get("turnId"), message.get("subagentId")
        for part in rows_of(message.get("parts")):
            if part.get("type") == "text" and part.get("text"):
                row = str(part["text"]), str(part.get("state"))
                found.setdefault(speaker, []).append(row)
    return found


def _missing_texts(account: FactAccount, document: Wire) -> Iterator[ScreenDifference]:
    if account.texts is None:
        return
    shown = texts_by_speaker(document)
    for speaker, texts in account.texts.items():
        wanted = Counter(text.text for text in texts if text.text)
        got = Counter(text for text, _ in shown.get(speaker, ()))
        if wanted != got:
            message = (
                f"the texts of turn {speaker[0]} read {_quote(got)}; "
                f"the facts state {_quote(wanted)}"
            )
            yield ScreenDifference(SHOWN, message)
        states = dict(shown.get(speaker, ()))
        for text in texts:
            is_open = text.is_final and states.get(text.text, "final") != "final"
            if is_open and reads_whole(document):
                message = f"the final text {text.text[:60]!r} reads {states[text.text]}"
                yield ScreenDifference(SHOWN, message)
    yield from _missing_prompts(account, document)


def _missing_prompts(account: FactAccount, document: Wire) -> Iterator[ScreenDifference]:
    written: dict[object, str] = {}
    for message in rows_of(document.get("messages")):
        if message.get("role") == "user":
            texts = [str(part.get("text", "")) for part in rows_of(message.get("parts"))]
            turn = message.get("turnId")
            written[turn] = "\n".join([written.get(turn, ""), *texts])
    for turn, texts in account.prompts.items():
        for text in texts:
            if text not in written.get(turn, ""):
                message = f"the user's text {text[:60]!r} of turn {turn} is not shown"
                yield ScreenDifference(PROMPTS, message)


def _quote(texts: Counter[str]) -> str:
    shown = [repr(text if len(text) <= 40 else f"{text[:40]}…") for text in texts.elements()]  # noqa: PLR2004
    return ", ".join(shown[:5]) or "nothing"


def _missing_things(account: FactAccount, document: Wire) -> Iterator[ScreenDifference]:
    evidence = object_of(document.get("evidence"))
    places: tuple[tuple[str, object, object], ...] = (
        ("call", account.calls, document.get("tools")),
        ("request", account.requests, document.get("actions")),
        ("artifact", account.artifacts, document.get("artifacts")),
        ("evidence", account.evidence, evidence.get("items")),
        ("review", account.reviews, evidence.get("reviews")),
        ("task", account.tasks, document.get("tasks")),
        (
            "subagent",
            account.subagents,
            object_of(document.get("subagents")).get("threads"),
        ),
    )
    for noun, wanted, shown in places:
        for name in cast("Iterator[str]", wanted):
            if name not in object_of(shown):
                yield ScreenDifference(SHOWN, f"{noun} {name} is not shown")
    for name, owners in account.artifacts.items():
        row = object_of(object_of(document.get("artifacts")).get(name))
        for field, owner in owners.items() if row else ():
            if row.get(field) != owner:
                message = f"artifact {name} does not name {owner} as its {field}"
                yield ScreenDifference(REFS, message)


def _wrong_calls(account: FactAccount, document: Wire) -> Iterator[ScreenDifference]:
    tools, nodes = objects_of(document.get("tools")), _nodes(document)
    entries = _entries(document)
    previews = {
        str(part.get("toolCallId")): part
        for message in rows_of(document.get("messages"))
        for part in rows_of(message.get("parts"))
        if part.get("type") == "tool-preview"
    }
    for name, call in account.calls.items():
        if name not in tools:
            continue
        surfaces = {
            "tools": tools[name].get("state"),
            "the graph": nodes.get(f"tool:{name}", {}).get("status", call.outcome),
            "its message": previews.get(name, {}).get("status", call.outcome),
        }
        for place, state in surfaces.items():
            if not _is_call_state(state, call.outcome):
                message = f"call {name} is {call.outcome} and reads {state} in {place}"
                yield ScreenDifference(GUESSED if call.outcome == OPEN else OUTCOMES, message)
        entry = entries.get(f"tool:{name}")
        wanted = _TIMELINE_STATUS.get(call.outcome)
        if entry is not None and wanted is not None and entry.get("status") not in wanted:
            message = (
                f"call {name} is {call.outcome} and reads {entry.get('status')} in the timeline"
            )
            yield ScreenDifference(OUTCOMES, message)


def _is_call_state(state: object, outcome: str) -> bool:
    return state not in _TIMELINE_STATUS if outcome == OPEN else state == outcome


def _wrong_requests(account: FactAccount, document: Wire) -> Iterator[ScreenDifference]:
    actions, nodes = objects_of(document.get("actions")), _nodes(document)
    for name, request in account.requests.items():
        if name not in actions:
            continue
        requirement = GUESSED if request.outcome == OPEN else OUTCOMES
        requirement = DECISIONS if request.contrary else requirement
        row, wanted = actions[name], _REQUEST_STATUS.get(request.outcome, ("pending",))
        surfaces = {
            "actions": row.get("status"),
            "the graph": nodes.get(f"action:{name}", {}).get("status", wanted[0]),
        }
        for place, status in surfaces.items():
            if status not in wanted:
                message = f"request {name} is {request.outcome} and reads {status} in {place}"
                yield ScreenDifference(requirement, message)
        if request.decision is not None and row.get("decision") != request.decision:
            message = (
                f"request {name} was answered {request.decision!r} first "
                f"and reads {row.get('decision')!r}"
            )
            yield ScreenDifference(requirement, message)
        if request.contrary and not _has_remark(document, request.contrary):
            message = f"request {name} was answered again, and no diagnostic remarks on it"
            yield ScreenDifference(DECISIONS, message, request.contrary[0])


def _has_remark(document: Wire, fact_ids: list[str]) -> bool:
    items = objects_of(object_of(document.get("diagnostics")).get("items"))
    return any(row.get("eventId") in fact_ids for row in items.values())


def _wrong_work(account: FactAccount, document: Wire) -> Iterator[ScreenDifference]:
    nodes = _nodes(document)
    threads = objects_of(object_of(document.get("subagents")).get("threads"))
    kinds = (
        ("task", account.tasks, objects_of(document.get("tasks"))),
        ("subagent", account.subagents, threads),
    )
    for noun, wanted, shown in kinds:
        for name, outcome in wanted.items():
            if outcome is None or name not in shown:
                continue
            node = nodes.get(f"{noun}:{name}", {})
            for status in (shown[name].get("status"), node.get("status", outcome)):
                if status != outcome:
                    message = f"{noun} {name} is {outcome} and reads {status}"
                    yield ScreenDifference(OUTCOMES, message)


def _wrong_turns(account: FactAccount, document: Wire) -> Iterator[ScreenDifference]:
    entries, nodes = _entries(document), _nodes(document)
    for turn, outcome in account.turn_ends.items():
        for place, row in (
            ("the timeline", entries.get(f"turn:{turn}")),
            ("the graph", nodes.get(f"turn:{turn}")),
        ):
            status = None if row is None else row.get("status")
            if status != outcome:
                message = f"turn {turn} is {outcome} and reads {status} in {place}"
                yield ScreenDifference(OUTCOMES, message)
    runtime = object_of(document.get("runtime"))
    shown = runtime.get("latestTurnId"), runtime.get("latestTurnStatus")
    if account.last_turn is not None and shown != account.last_turn:
        message = f"the latest turn is {account.last_turn} and reads {shown}"
        yield ScreenDifference(OUTCOMES, message)


def _missing_edges(account: FactAccount, document: Wire) -> Iterator[ScreenDifference]:
    rows = objects_of(object_of(document.get("graph")).get("edges"))
    drawn = {(row.get("source"), row.get("target")) for row in rows.values()}
    for source, target in sorted(account.edges):
        if (source, target) not in drawn:
            yield ScreenDifference(EDGES, f"no edge leads from {source} to {target}")
    threads = objects_of(object_of(document.get("subagents")).get("threads"))
    for name, parent in account.parents.items():
        shown = threads.get(name, {}).get("parentThreadId")
        if name in threads and shown != parent:
            yield ScreenDifference(
                EDGES, f"subagent {name} has the parent {parent} and reads {shown}"
            )


def _invented_times(account: FactAccount, document: Wire) -> Iterator[ScreenDifference]:
    threads = object_of(document.get("subagents")).get("threads")
    kinds = (
        ("call", "startedAt", document.get("tools"), account.calls),
        ("request", "requestedAt", document.get("actions"), account.requests),
    )
    for noun, field, rows, things in kinds:
        shown = objects_of(rows)
        for name, thing in things.items():
            time = shown.get(name, {}).get(field)
            if time is not None and time not in thing.starts:
                yield ScreenDifference(TIMES, f"{noun} {name} has a {field} that no fact states")
    for name in account.subagents:
        time = objects_of(threads).get(name, {}).get("startedAt")
        if time is not None and time not in account.subagent_starts.get(name, ()):
            yield ScreenDifference(TIMES, f"subagent {name} has a startedAt that no fact states")


def _left_open(account: FactAccount, document: Wire) -> Iterator[ScreenDifference]:
    if not reads_whole(document):
        return
    for entry in rows_of(document.get("timeline")):
        name, status = str(entry.get("entryId")), entry.get("status")
        over = account.turn_ends.get(str(entry.get("turnId")))
        is_open = status in _OPEN_STATUSES and entry.get("subagentId") is None
        if over is not None and is_open and not name.startswith(_OUTLIVING):
            message = f"turn {entry.get('turnId')} is {over}, and {name} reads {status}"
            yield ScreenDifference(LEFTOVERS, message)
    yield from _left_working(account, document)


def _left_working(account: FactAccount, document: Wire) -> Iterator[ScreenDifference]:
    """Subagents that read as at work in a turn that is over, though no fact places them outside of
    it; one that is in a turn of its own ends with that.
    """
    turns = objects_of(document.get("turns")).values()
    busy = {row.get("subagentId") for row in turns if row.get("status") == "running"}
    threads = objects_of(object_of(document.get("subagents")).get("threads"))
    for name, row in threads.items():
        over = account.turn_ends.get(str(row.get("turnId")))
        is_apart = name in busy or any(row.get(key) for key in _APART)
        if over is not None and row.get("status") in _WORKING and not is_apart:
            message = f"turn {row.get('turnId')} is {over}, and subagent {name} is at work"
            yield ScreenDifference(LEFTOVERS, message)


def missing_refs(events: Sequence[Wire], document: Wire) -> Iterator[ScreenDifference]:
    """Refs that facts state and that are nowhere in a state. Notes about output are about other
    facts; what was said in messages that were taken back since is not lost.
    """
    shown = frozenset(texts_in(document))
    held = _held_facts(events, document)
    replaced = build_account(events).texts is None
    reported: set[str] = set()
    for event, ref in refs_in(order_events(events)):
        name = class_of(event)
        is_message = name.startswith(("turn.submitted", "model."))
        if ref in shown or ref in reported or name.startswith("output."):
            continue
        if event.get("id") in held:
            continue
        if not (replaced and is_message):
            reported.add(ref)
            message = f"{name} names {ref[:120]}, which is nowhere in the state"
            yield ScreenDifference(REFS, message, str(event.get("id")))


def _held_facts(events: Sequence[Wire], document: Wire) -> set[object]:
    """Facts that wait behind a gap: they are not lost."""
    if reads_whole(document):
        return set()
    cursor = object_of(document.get("hydration")).get("cursor")
    return {
        event.get("id")
        for event in events
        if isinstance(cursor, int) and isinstance(event.get("sequence"), int)
        if event["sequence"] > cursor
    }


def _entries(document: Wire) -> dict[str, Wire]:
    return {str(row.get("entryId")): row for row in rows_of(document.get("timeline"))}


def _nodes(document: Wire) -> dict[str, Wire]:
    return objects_of(object_of(document.get("graph")).get("nodes"))


def object_of(value: object) -> Wire:
    return cast("Wire", value) if isinstance(value, Mapping) else {}


def objects_of(value: object) -> dict[str, Wire]:
    return {key: object_of(row) for key, row in object_of(value).items()}


def rows_of(value: object) -> list[Wire]:
    found = cast("list[object]", value) if isinstance(value, list) else []
    return [object_of(row) for row in found]


def texts_in(value: object) -> Iterator[str]:
    """Every text of a document, names included."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            waiting += cast("list[object]", item)
        elif isinstance(item, Mapping):
            fields = cast("Wire", item)
            yield from fields
            waiting += fields.values()
