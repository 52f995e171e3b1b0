"""Reducers and mappings that each get one thing wrong, and are otherwise Factwire's own."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from factwire.conformance.case import Reducer
from factwire.conformance.reducers import factwire_reducer
from factwire.conformance.ui_checks import UiMapping, factwire_mapping

Wire = dict[str, Any]
Events = Sequence[Wire]


def class_of(event: Wire) -> str:
    return event.get("eventClass", "")


def payload_of(event: Wire) -> Wire:
    return event.get("payload", {})


def change_events(change: Callable[[list[Wire], bool], list[Wire]]) -> Reducer:
    """Factwire's reducer of facts that were changed before; the change sees whether they are a
    complete list.
    """

    def reduce(
        events: Events, model: Wire | None, repair: Wire | None = None, *, complete: bool = False
    ) -> Wire:
        changed = change([dict(event) for event in events], complete)
        return factwire_reducer(changed, model, repair, complete=complete)

    return reduce


def change_state(change: Callable[[Wire, list[Wire]], None]) -> Reducer:
    """Factwire's reducer with a state that is changed afterwards."""

    def reduce(
        events: Events, model: Wire | None, repair: Wire | None = None, *, complete: bool = False
    ) -> Wire:
        state = factwire_reducer(events, model, repair, complete=complete)
        change(state, list(events))
        return state

    return reduce


@change_events
def begins_with_the_first_line(events: list[Wire], complete: bool) -> list[Wire]:
    """Drops what a file holds of a thread from before its first line."""
    if not complete:
        return events
    starts: dict[str | None, int] = {}
    for event in events:
        if "sequence" in event:
            starts.setdefault(event.get("threadId"), event["sequence"])
    return [
        event
        for event in events
        if "sequence" not in event or event["sequence"] >= starts[event.get("threadId")]
    ]


@change_events
def believes_snapshots(events: list[Wire], complete: bool) -> list[Wire]:
    """Drops facts that arrive after a snapshot that claims to cover them."""
    if complete:
        return events
    kept: list[Wire] = []
    covered = 0
    for event in events:
        if class_of(event).startswith(("snapshot.", "messages.snapshot", "stream.repair.comp")):
            covered = max(covered, payload_of(event).get("toSequence", 0))
            kept.append({**event, "eventClass": "session.updated", "payload": {}})
        elif event.get("sequence", covered + 1) > covered:
            kept.append(event)
    missing = {event["id"] for event in events} - {event["id"] for event in kept}
    if not missing:
        return events
    return [{**event, "sequence": place + 1} for place, event in enumerate(kept)]


def hides_a_late_start(
    events: Events, model: Wire | None, repair: Wire | None = None, *, complete: bool = False
) -> Wire:
    """Reads live although the stream started in the middle."""
    first = events[0] if events else {}
    if complete or model is not None or first.get("sequence", 1) <= 1:
        return factwire_reducer(events, model, repair, complete=complete)
    start = first.get("sequence", 0)
    kept = [event for event in events if event.get("sequence", start) >= start]
    state = factwire_reducer(kept, model, repair)
    hydration = state["hydration"]
    lost = len(events) - len(kept)
    hydration |= {"status": "live", "reasons": [], "gaps": []}
    hydration["received"] = hydration.get("received", 0) + lost
    hydration["dropped"] = hydration.get("dropped", 0) + lost
    return state


@change_state
def counts_one_too_few(state: Wire, events: list[Wire]) -> None:
    """Received one fact more than it owns up to."""
    if events and "received" in state["hydration"]:
        state["hydration"]["received"] -= 1


def forgets_what_was_made(
    events: Events, model: Wire | None, repair: Wire | None = None, *, complete: bool = False
) -> Wire:
    """Restores no artifact from a read model."""
    state = factwire_reducer(events, model, repair, complete=complete)
    if model is not None and not events:
        state["artifacts"].clear()
    return state


@change_events
def ends_the_thread_with_its_children(events: list[Wire], _: bool) -> list[Wire]:
    """Takes every turn for the thread's own."""
    entity = ("subagentId", "jobId", "remoteTaskId", "taskId", "runtimeEntity")
    return [
        {key: value for key, value in event.items() if key not in entity}
        if class_of(event).startswith("turn.")
        else event
        for event in events
    ]


@change_events
def reads_lineage_at_the_top_only(events: list[Wire], _: bool) -> list[Wire]:
    """Passes over lineage that a payload states."""
    names = ("parent_task_id", "parent_thread_id", "parent_session_id")
    names += ("parentTaskId", "parentThreadId", "parentSessionId")
    return [
        {**event, "payload": {k: v for k, v in payload_of(event).items() if k not in names}}
        if not set(names).isdisjoint(payload_of(event))
        else event
        for event in events
    ]


@change_events
def opens_a_second_part(events: list[Wire], _: bool) -> list[Wire]:
    """Shows a final text that names no message beside the one that streamed."""
    return [
        {**event, "messageId": "msg_unnamed"}
        if class_of(event) == "model.completed" and "messageId" not in event
        else event
        for event in events
    ]


@change_events
def keeps_the_first_input(events: list[Wire], _: bool) -> list[Wire]:
    """Reads the first text of an input of texts alone."""
    for event in events:
        rows = payload_of(event).get("input", [])
        if class_of(event) == "turn.submitted" and all(row["type"] == "text" for row in rows[1:]):
            event["payload"] = {**payload_of(event), **({"input": rows[:1]} if rows else {})}
    return events


@change_events
def takes_results_for_successes(events: list[Wire], _: bool) -> list[Wire]:
    """Calls every result a success, whatever its status."""
    return [
        {
            **event,
            "status": "completed",
            "payload": {k: v for k, v in payload_of(event).items() if k != "isError"},
        }
        if class_of(event) == "tool.result"
        else event
        for event in events
    ]


@change_state
def leaves_entries_pending(state: Wire, _: list[Wire]) -> None:
    """Leaves the request to the model pending for ever."""
    for entry in state["timeline"]:
        if entry["eventClass"] == "model.requested":
            entry["status"] = "pending"


@change_events
def takes_the_last_answer(events: list[Wire], _: bool) -> list[Wire]:
    """Lets a second answer replace the first."""
    answers: dict[str, int] = {}
    for place, event in enumerate(events):
        action = event.get("actionId", "")
        if class_of(event) != "action.resolved":
            continue
        first = answers.setdefault(action, place)
        if first != place and event["id"] != events[first]["id"]:
            payload = payload_of(events[first]) | payload_of(event)
            events[first] = {**events[first], "payload": payload}
            events[place] = {**event, "eventClass": "session.updated", "payload": {}}
    return events


@change_state
def invents_starts(state: Wire, _: list[Wire]) -> None:
    """Lets a call begin when it ended, where nobody knows when it began."""
    for tool in state["tools"].values():
        if tool.get("completedAt"):
            tool.setdefault("startedAt", tool["completedAt"])


@change_state
def leaves_cancelled_calls_running(state: Wire, events: list[Wire]) -> None:
    """Shows calls of a cancelled turn as running."""
    ended = {e.get("toolCallId") for e in events if class_of(e) in ("tool.result", "tool.failed")}
    cancelled = any(class_of(event) == "turn.canceled" for event in events)
    for name, tool in state["tools"].items():
        if cancelled and name not in ended:
            tool["state"] = "running"


@change_events
def loses_transcripts(events: list[Wire], _: bool) -> list[Wire]:
    """Passes over the refs in what a subagent states."""
    return [
        {**event, "payload": {k: v for k, v in payload_of(event).items() if not k.endswith("Ref")}}
        if class_of(event).startswith("subagent.")
        else event
        for event in events
    ]


@change_events
def wants_every_field(events: list[Wire], _: bool) -> list[Wire]:
    """Refuses facts without a sequence."""
    if any("sequence" not in event for event in events):
        raise ValueError("expected a sequence")
    return events


@change_state
def names_one_source(state: Wire, _: list[Wire]) -> None:
    """Names only the first fact of each entry."""
    for entry in state["timeline"]:
        del entry["sourceEventIds"][1:]


@change_state
def draws_no_edges_of_calls(state: Wire, _: list[Wire]) -> None:
    """Draws no edge from a call to what it began."""
    edges = state["graph"]["edges"]
    state["graph"]["edges"] = {
        name: edge for name, edge in edges.items() if not name.startswith("tool:")
    }


@change_state
def believes_empty_repairs(state: Wire, events: list[Wire]) -> None:
    """Takes a repair that carries nothing for the facts that are missing."""
    repairs = ("stream.repair.completed", "snapshot.repaired")
    if any(class_of(event) in repairs and "messages" not in payload_of(event) for event in events):
        state["hydration"] |= {"status": "live", "gaps": [], "reasons": []}


def take_for_conflicts(spare: str) -> Reducer:
    """Drops facts without an id whose place in the thread another one has, and reads live."""

    def reduce(
        events: Events, model: Wire | None, repair: Wire | None = None, *, complete: bool = False
    ) -> Wire:
        places: set[tuple[Any, Any]] = set()
        kept: list[Wire] = []
        for event in events:
            place = event.get("threadId"), event.get("sequence")
            if spare in event or place[1] is None or place not in places:
                kept.append(event)
            places.add(place)
        state = factwire_reducer(kept, model, repair, complete=complete)
        lost = len(events) - len(kept)
        if lost and len({event["id"] for event in events}) == len(events):
            state["hydration"]["received"] += lost
            state["hydration"]["dropped"] += lost
            return state
        return factwire_reducer(events, model, repair, complete=complete)

    return reduce


@change_state
def loses_text_in_silence(state: Wire, _: list[Wire]) -> None:
    """Does not remark that a snapshot took text away."""
    items = state["diagnostics"]["items"]
    state["diagnostics"]["items"] = {
        name: item for name, item in items.items() if item["code"] != "snapshot_lacks_text"
    }


def forgets_doubts(
    events: Events, model: Wire | None, repair: Wire | None = None, *, complete: bool = False
) -> Wire:
    """Restores what a read model doubts as if it were certain."""
    if model is not None:
        model = {key: value for key, value in model.items() if key != "doubts"}
    return factwire_reducer(events, model, repair, complete=complete)


@change_events
def ends_the_thread_by_lineage(events: list[Wire], _: bool) -> list[Wire]:
    """Takes a turn for the thread's own unless an id of somebody else says otherwise."""
    parents = ("parentTaskId", "parentThreadId", "parentSessionId")
    return [
        {key: value for key, value in event.items() if key not in parents}
        if class_of(event).startswith("turn.")
        else event
        for event in events
    ]


@change_events
def keeps_the_last_text(events: list[Wire], _: bool) -> list[Wire]:
    """Lets a whole text without ids replace the one before it."""
    for before, event in pairwise(events):
        pair = [each for each in (before, event) if class_of(each) == "model.completed"]
        if len(pair) > 1 and not any("messageId" in each for each in pair):
            before |= {"eventClass": "session.updated", "payload": {}}
    return events


@change_events
def passes_over_statuses_in_payloads(events: list[Wire], _: bool) -> list[Wire]:
    """Reads how a call ended from its class and its own status alone."""
    return [
        {**event, "payload": {k: v for k, v in payload_of(event).items() if k != "status"}}
        if class_of(event) == "tool.result"
        else event
        for event in events
    ]


@change_state
def leaves_subagents_at_work(state: Wire, _: list[Wire]) -> None:
    """Shows a subagent as spawned for ever, if no fact of its own ends it."""
    for thread in state["subagents"]["threads"].values():
        if thread["status"] == "unknown":
            thread["status"] = "spawned"


_NAMED_REFS = ("diff", "outputRefs", "replayRef", "reviewRef", "packRef", "summaryRef")


@change_state
def forgets_what_refs_are_for(state: Wire, _: list[Wire]) -> None:
    """Lists refs, but not under the names that facts have for them, and shows no inline diff."""
    rows = [*state["tools"].values(), *state["tasks"].values(), *state["context"]["compactions"]]
    for row in (*rows, *state["evidence"]["items"].values()):
        for name in _NAMED_REFS:
            row.pop(name, None)


@change_state
def keeps_the_latest_failure(state: Wire, _: list[Wire]) -> None:
    """Forgets why a turn failed once another one has ended."""
    for turn in [*state["turns"].values()][:-1]:
        turn.pop("failureCategory", None)


@change_state
def ticks_what_is_closed(state: Wire, events: list[Wire]) -> None:
    """Shows a subagent that failed as closed."""
    for event in events:
        if class_of(event) == "subagent.closed":
            state["subagents"]["threads"][event["subagentId"]]["status"] = "closed"


BROKEN_REDUCERS: dict[str, tuple[Reducer, str]] = {
    "begins_with_the_first_line": (begins_with_the_first_line, "screen.order"),
    "believes_snapshots": (believes_snapshots, "screen.early-snapshots"),
    "hides_a_late_start": (hides_a_late_start, "screen.late-facts"),
    "counts_one_too_few": (counts_one_too_few, "screen.counts"),
    "forgets_what_was_made": (forgets_what_was_made, "screen.recovery"),
    "ends_the_thread_with_its_children": (ends_the_thread_with_its_children, "screen.child-turns"),
    "reads_lineage_at_the_top_only": (reads_lineage_at_the_top_only, "screen.edges"),
    "draws_no_edges_of_calls": (draws_no_edges_of_calls, "screen.edges"),
    "opens_a_second_part": (opens_a_second_part, "screen.one-part"),
    "keeps_the_first_input": (keeps_the_first_input, "screen.prompts"),
    "takes_results_for_successes": (takes_results_for_successes, "screen.outcomes"),
    "leaves_entries_pending": (leaves_entries_pending, "screen.nothing-left-open"),
    "takes_the_last_answer": (takes_the_last_answer, "screen.first-answer"),
    "invents_starts": (invents_starts, "screen.times"),
    "leaves_cancelled_calls_running": (leaves_cancelled_calls_running, "screen.cancelled-work"),
    "loses_transcripts": (loses_transcripts, "screen.refs"),
    "wants_every_field": (wants_every_field, "screen.lenient"),
    "names_one_source": (names_one_source, "screen.facts-shown"),
    "believes_empty_repairs": (believes_empty_repairs, "screen.empty-repairs"),
    "takes_turns_for_conflicts": (take_for_conflicts("runId"), "screen.restarts"),
    "takes_facts_of_no_run_for_conflicts": (take_for_conflicts("turnId"), "screen.restarts"),
    "loses_text_in_silence": (loses_text_in_silence, "screen.lost-text"),
    "forgets_doubts": (forgets_doubts, "screen.restored-doubts"),
    "ends_the_thread_by_lineage": (ends_the_thread_by_lineage, "screen.child-turns"),
    "keeps_the_last_text": (keeps_the_last_text, "screen.one-part"),
    "passes_over_statuses_in_payloads": (passes_over_statuses_in_payloads, "screen.outcomes"),
    "leaves_subagents_at_work": (leaves_subagents_at_work, "screen.nothing-left-open"),
    "forgets_what_refs_are_for": (forgets_what_refs_are_for, "screen.refs"),
    "keeps_the_latest_failure": (keeps_the_latest_failure, "screen.outcomes"),
    "ticks_what_is_closed": (ticks_what_is_closed, "screen.outcomes"),
}
"""Name → a reducer, and the one requirement that it breaks."""


def _change_ui(change: Callable[[list[Wire]], list[Wire]]) -> UiMapping:
    def to_ui(events: Events) -> list[Wire]:
        return change(factwire_mapping.to_ui(events))

    return UiMapping(to_ui=to_ui, from_ui=factwire_mapping.from_ui)


def loses_subagent_failures(events: list[Wire]) -> list[Wire]:
    """Gives a failed subagent a tick."""
    done = {"eventClass": "subagent.completed", "status": "completed"}
    return [
        {**event, "status": "completed", "runtimeFact": {**event.get("runtimeFact", {}), **done}}
        if event.get("subagentId") and event.get("status") == "failed"
        else event
        for event in events
    ]


def loses_answers(events: list[Wire]) -> list[Wire]:
    """Sends no answer, so that a resolved request opens again."""
    return [event for event in events if event.get("type") != "action.resolved"]


def shares_sequences(events: list[Wire]) -> list[Wire]:
    """Gives two events one sequence."""
    return [
        {**event, "sequence": event["sequence"] - event["sequence"] % 2}
        if isinstance(event.get("sequence"), int)
        else event
        for event in events
    ]


def _merge_repeats(events: Events) -> list[Wire]:
    """Takes two events of the same content for one."""
    kept: list[Wire] = []
    for event in events:
        if event not in kept:
            kept.append(event)
    return factwire_mapping.from_ui(kept)


BROKEN_MAPPINGS: dict[str, tuple[UiMapping, str]] = {
    "loses_subagent_failures": (_change_ui(loses_subagent_failures), "screen.ui-round-trip"),
    "loses_answers": (_change_ui(loses_answers), "screen.ui-round-trip"),
    "shares_sequences": (_change_ui(shares_sequences), "screen.ui-round-trip"),
    "merges_repeats": (
        UiMapping(to_ui=factwire_mapping.to_ui, from_ui=_merge_repeats),
        "screen.ui-repeats",
    ),
}
"""Name → a mapping, and the one requirement that it breaks."""
