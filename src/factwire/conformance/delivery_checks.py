"""Deliveries: the facts of a stream, given in another way, must show the same things.

Each check changes how facts arrive (another order, an early snapshot, a start in the middle, ids on
one side only) or adds facts whose meaning is certain (a child's turn, a second answer, a cancelled
turn), and compares the state with the account of the facts. What a reducer gets wrong about the
unchanged stream is reported there and not again here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from random import Random
from typing import Final

import msgspec

from factwire.conformance.account_checks import (
    LEFTOVERS,
    ScreenDifference,
    find_differences,
    find_differences_shown,
    object_of,
    reads_whole,
    rows_of,
    texts_by_speaker,
)
from factwire.conformance.case import Case, Finding, Reducer, Wire
from factwire.conformance.delivery_streams import (
    LATE_FACTS,
    DeliveredStream,
    build_late_stream,
    build_two_runs,
    insert_after,
    insert_beside_runs,
    renumber,
)
from factwire.conformance.fact_account import (
    DELTA_CLASSES,
    FINAL_CLASSES,
    TURN_ENDS,
    FactAccount,
    build_account,
    class_of,
    id_in,
    is_own_turn,
    order_events,
    payload_of,
)
from factwire.conformance.limits import SHUFFLES
from factwire.conformance.reducers import call_reducer
from factwire.facts import read_fact
from factwire.projection import Projection, thread_read_model

Problems = Iterator[str]
Judge = Callable[["Delivery"], Problems]

_COUNTS: Final = ("eventCount", "repeated", "late", "dropped", "held")


class DeliveryCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement that is judged by delivering streams in another way. `extra` are streams that
    only this check needs.
    """

    requirement: str
    title: str
    source: str
    judge: Judge
    extra: Callable[[], Iterable[DeliveredStream]] = tuple


def delivery_cases(streams: Sequence[DeliveredStream]) -> tuple[Case, ...]:
    """Every check as a case over all streams."""
    return tuple(
        Case(
            id=f"delivery.{check.requirement.partition('.')[2]}",
            title=check.title,
            source=check.source,
            requirements=(check.requirement,),
            level="projection",
            run=partial(_run_check, check, streams),
        )
        for check in DELIVERY_CHECKS
    )


def _run_check(
    check: DeliveryCheck, streams: Sequence[DeliveredStream], reduce: Reducer
) -> Iterator[Finding]:
    for stream in (*streams, *check.extra()):
        for problem in check.judge(Delivery(stream, reduce)):
            yield Finding(
                requirement=check.requirement,
                message=f"{stream.name}: {problem}",
                level="projection",
            )


class Delivery:
    """A stream that is delivered to a reducer, as it is and in other ways."""

    def __init__(self, stream: DeliveredStream, reduce: Reducer) -> None:
        self.stream = stream
        self.events = stream.events
        self.reducer = reduce

    def reduce(self, events: Sequence[Wire], *, complete: bool = False) -> Wire:
        return call_reducer(self.reducer, list(events), None, complete=complete)

    @cached_property
    def faults(self) -> frozenset[str]:
        """The requirements that the reducer breaks on the unchanged stream."""
        document = self.reduce(self.events)
        found = find_differences_shown(self.events, document)
        return frozenset(difference.requirement for difference in found)

    def differences(self, events: Sequence[Wire]) -> Iterator[ScreenDifference]:
        """What the state of a changed delivery does not show. One that does not claim to be whole
        hides nothing.
        """
        document = self.reduce(events)
        if reads_whole(document):
            yield from self.new_differences(events, document)

    def new_differences(self, events: Sequence[Wire], document: Wire) -> Iterator[ScreenDifference]:
        for difference in find_differences(events, document):
            if difference.requirement not in self.faults:
                yield difference


def shuffles(events: Sequence[Wire]) -> Iterator[tuple[str, list[Wire]]]:
    """Other orders of the same facts, by name; always the same ones."""
    yield "in reverse", list(reversed(events))
    yield "with the first fact last", [*events[1:], *events[:1]]
    for number in range(SHUFFLES if len(events) < LATE_FACTS else 0):
        mixed = list(events)
        Random(number).shuffle(mixed)  # noqa: S311 - not for secrets
        yield f"in shuffle {number}", mixed


def check_order(delivery: Delivery) -> Problems:
    """A complete list of facts comes to one state, whatever its order, and shows all of them."""
    straight = delivery.reduce(delivery.events, complete=True)
    for difference in delivery.new_differences(delivery.events, straight):
        yield f"in order: {difference.message}"
    for name, events in shuffles(delivery.events):
        document = delivery.reduce(events, complete=True)
        roots = {*straight, *document} - {"hydration"}
        changed = sorted(root for root in roots if straight.get(root) != document.get(root))
        if changed:
            yield f"{name}, the same facts show other {', '.join(changed)}"


_SNAPSHOT_PAYLOADS: Final[dict[str, Callable[[int], Wire]]] = {
    "snapshot.updated": lambda last: {"toSequence": last},
    "snapshot.repaired": lambda last: {"toSequence": last},
    "stream.repair.completed": lambda last: {"toSequence": last},
    "messages.snapshot": lambda last: {"toSequence": last, "messages": []},
}


def check_early_snapshots(delivery: Delivery) -> Problems:
    """A snapshot that arrives before facts that it claims to cover hides none of them."""
    events = [
        event for event in order_events(delivery.events) if not id_in(event, "parentThreadId")
    ]
    if not delivery.stream.is_plain or len(events) != len(delivery.events):
        return
    for name, payload in _SNAPSHOT_PAYLOADS.items():
        for place in sorted({len(events) // 2, len(events) - 1}):
            numbered, snapshot = insert_after(
                events, place, name, payload(int(events[place]["sequence"]))
            )
            others = [event for event in numbered if event is not snapshot]
            for back in sorted({1, 3, place}):
                arrived = [*others[: place + 1 - back], snapshot, *others[place + 1 - back :]]
                for difference in delivery.differences(arrived):
                    yield f"{name} {back} facts early: {difference.message}"


def check_late_facts(delivery: Delivery) -> Problems:
    """A stream that starts in the middle does not read whole, and what comes from before its start
    is shown, or counted as lost where it shows.
    """
    events = delivery.events
    if not delivery.stream.is_plain:
        return
    for place in sorted({3, len(events) // 2}):
        if place >= len(events) or class_of(events[place]) in ("turn.submitted", "turn.started"):
            continue
        if reads_whole(delivery.reduce(events[place:])):
            yield f"it starts at fact {place + 1}, and reads as if nothing was missing"
        arrived = [*events[place:], *events[:place]]
        for difference in delivery.differences(arrived):
            yield f"{place} first facts came last: {difference.message}"
        document = delivery.reduce(arrived)
        lost = _unshown_ids(arrived, document) - _unshown_ids(events, delivery.reduce(events))
        hydration = object_of(document.get("hydration"))
        counted = sum(_count_at(hydration, name) for name in ("late", "dropped", "held"))
        if lost > counted:
            yield f"{place} first facts came last: {lost} are not shown, {counted} are counted"


def _unshown_ids(events: Sequence[Wire], document: Wire) -> int:
    account = build_account(events)
    entries = rows_of(document.get("timeline"))
    shown = {name for entry in entries for name in entry.get("sourceEventIds") or ()}
    return sum(name not in shown for name in account.fact_ids)


def check_counts(delivery: Delivery) -> Problems:
    """Facts received are facts taken, repeated, late, dropped and held, whatever arrives."""
    events = delivery.events
    contradicted = {**events[-1], "title": "Another body"}
    foreign = {**events[0], "id": "foreign-fact", "threadId": "thr_of_nobody", "sequence": 1}
    foreign.pop("parentThreadId", None)
    deliveries = {
        "in order": events,
        "each fact twice": [event for event in events for _ in range(2)],
        "in reverse": list(reversed(events)),
        "one id with two bodies": [*events, contradicted],
        "a fact of another thread": [*events, foreign],
    }
    for name, arrived in deliveries.items():
        hydration = object_of(delivery.reduce(arrived).get("hydration"))
        received = hydration.get("received")
        parts = {part: _count_at(hydration, part) for part in _COUNTS}
        if received != len(arrived):
            yield f"{name}: {len(arrived)} facts were given, and {received} are counted as received"
        elif received != sum(parts.values()):
            yield f"{name}: {received} facts were received, and the counts are {parts}"


def _count_at(hydration: Wire, name: str) -> int:
    found = hydration.get(name)
    return found if isinstance(found, int) else 0


def check_recovery(delivery: Delivery) -> Problems:
    """A read model restores what it carries, and no text of which only a part is there reads
    final.
    """
    events = delivery.events
    if not delivery.stream.is_plain:
        return
    whole = build_account(events)
    for place in sorted({len(events) // 3, len(events) // 2, len(events)} - {0}):
        model = read_model_of(events[:place])
        restored = call_reducer(delivery.reducer, [], model)
        yield from _find_truncated_texts(
            restored, build_account(events[:place]), f"restored at fact {place}"
        )
        yield from _not_restored(events[:place], restored, place)
        went_on = call_reducer(delivery.reducer, events[place:], model)
        yield from _find_truncated_texts(went_on, whole, f"restored at fact {place} and gone on")


def read_model_of(events: Sequence[Wire]) -> Wire:
    """The read model that Factwire makes of facts, as JSON."""
    projection = Projection()
    projection.apply_all([read_fact(event, "facts") for event in events])
    return msgspec.json.decode(msgspec.json.encode(thread_read_model(projection.state)))


def _find_truncated_texts(document: Wire, account: FactAccount, where: str) -> Problems:
    texts = account.texts or {}
    for speaker, rows in texts_by_speaker(document).items():
        finished = account.turn_ends.get(speaker[0] or "") == "completed"
        allowed = {text.text for text in texts.get(speaker, ()) if text.is_final or finished}
        for text, state in rows:
            if state == "final" and text not in allowed:
                yield f"{where}, {text[:40]!r} reads final and is not the whole text"


def _not_restored(events: Sequence[Wire], restored: Wire, place: int) -> Problems:
    account = build_account(events)
    evidence = object_of(restored.get("evidence"))
    places = (
        ("task", account.tasks, restored.get("tasks")),
        ("artifact", account.artifacts, restored.get("artifacts")),
        ("evidence", account.evidence, evidence.get("items")),
    )
    for noun, wanted, shown in places:
        for name in sorted(wanted):
            if name not in object_of(shown):
                yield f"restored at fact {place}, {noun} {name} is not shown"


_EMPTY_REPAIRS: Final = ("stream.repair.completed", "snapshot.repaired")


def check_empty_repairs(delivery: Delivery) -> Problems:
    """A stream that lost a fact does not read whole because a repair says so."""
    events = delivery.events
    if not delivery.stream.is_plain:
        return
    last = len(events) - 1
    for name in _EMPTY_REPAIRS:
        claims: tuple[Wire, ...] = ({}, {"fromSequence": 1, "toSequence": last})
        for payload in claims:
            repaired, _ = insert_after(events, last, name, payload)
            for place in sorted({1, len(events) // 2} & set(range(last))):
                cut = [*repaired[:place], *repaired[place + 1 :]]
                for complete in (False, True):
                    if reads_whole(delivery.reduce(cut, complete=complete)):
                        stated = f"{name} with {payload}" if payload else f"an empty {name}"
                        yield f"fact {place + 1} is lost, and after {stated} nothing is missing"


def check_restarts(delivery: Delivery) -> Problems:
    """Runs or turns that each count from one on are all shown, in a file and live, and so is what
    counts beside them.
    """
    if not _counts_apart(delivery.events):
        return
    turns = [_without(event, ("runId",)) for event in delivery.events]
    beside = insert_beside_runs(delivery.events)
    for name, events in (("runs", delivery.events), ("turns", turns), ("runs", beside)):
        for complete in (False, True):
            document = delivery.reduce(events, complete=complete)
            if complete or reads_whole(document):
                found = find_differences_shown(events, document)
                for difference in (each for each in found if each[0] not in delivery.faults):
                    yield f"{name} that count by themselves: {difference.message}"
        starts = [place for place, event in enumerate(events) if event["sequence"] == 1]
        headless = [*events[: starts[-1]], *events[starts[-1] + 3 :]]
        for complete in (False, True):
            if reads_whole(delivery.reduce(headless, complete=complete)):
                yield f"the last of the {name} lacks its head, and nothing reads as missing"


def _counts_apart(events: Sequence[Wire]) -> bool:
    """Whether several facts of the thread are the first of a count."""
    firsts = [event for event in events if event.get("sequence") == 1]
    return len(firsts) > 1 and all(id_in(event, "runId") for event in events)


def _without(event: Wire, names: Sequence[str]) -> Wire:
    return {key: value for key, value in event.items() if key not in names}


def check_lost_text(delivery: Delivery) -> Problems:
    """A snapshot of the messages takes no text away in silence."""
    events, texts = delivery.events, [text for text, _ in _shown_texts(delivery)]
    if not delivery.stream.is_plain or not texts:
        return
    payload: Wire = {"messages": [], "toSequence": len(events)}
    changed, _ = insert_after(events, len(events) - 1, "messages.snapshot", payload)
    straight, document = delivery.reduce(events), delivery.reduce(changed)
    left = [text for rows in texts_by_speaker(document).values() for text, _ in rows]
    if len(left) < len(texts) and _count_remarks(document) <= _count_remarks(straight):
        yield f"a snapshot without messages leaves {len(left)} of {len(texts)} texts, in silence"


def _shown_texts(delivery: Delivery) -> list[tuple[str, str]]:
    rows = texts_by_speaker(delivery.reduce(delivery.events)).values()
    return [row for found in rows for row in found if row[0]]


def _count_remarks(document: Wire) -> int:
    return len(object_of(object_of(document.get("diagnostics")).get("items")))


def check_restored_doubts(delivery: Delivery) -> Problems:
    """A read model of a stream that was joined in the middle, or that lost a fact, restores no
    state that reads whole.
    """
    events = delivery.events
    if not delivery.stream.is_plain:
        return
    middle = len(events) // 2
    gap, _ = insert_after(events, len(events) - 2, "stream.gap.detected", {"reason": "cut"})
    streams = {"was joined in the middle": events[middle:], "reports a gap": gap}
    for name, arrived in streams.items():
        if class_of(arrived[0]) == "turn.submitted" and arrived is not gap:
            continue
        model = read_model_of(arrived[:-1])
        if reads_whole(call_reducer(delivery.reducer, arrived[-1:], model)):
            yield f"restored from a stream that {name}, it reads as if nothing was missing"


_CARRIERS: Final[dict[str, Wire]] = {
    "a subagent": {"subagentId": "sub_child", "taskId": "tsk_child"},
    "a job": {"jobId": "job_child"},
    "an external task": {"remoteTaskId": "remote_child", "runtimeEntity": "external_task"},
    "a work item": {"taskId": "tsk_item", "runtimeEntity": "work_item"},
    "a subagent's turn": {"runtimeEntity": "subagent_turn", "subagentId": "sub_child"},
    "a child of a task": {"parentTaskId": "tsk_above"},
    "a task below another": {"parentTaskId": "tsk_above", "taskId": "tsk_below"},
}
_OWN_RUNTIME: Final = ("status", "latestTurnId", "latestTurnStatus", "activeTurnId")


def check_child_turns(delivery: Delivery) -> Problems:
    """A turn of something within the thread ends that, and not the thread."""
    if not delivery.stream.is_plain:
        return
    straight = object_of(delivery.reduce(delivery.events).get("runtime"))
    child = {"parentThreadId": delivery.stream.thread_id}
    for name, ids in {**_CARRIERS, "a child of the thread": child}.items():
        for end in TURN_ENDS:
            for place in sorted({len(delivery.events) // 2, len(delivery.events) - 1}):
                if not _is_marked_enough(ids, delivery.events[:place]):
                    continue
                events, _ = insert_after(delivery.events, place, "turn.started", {}, **ids)
                failure = {"failureCategory": "timeout", "recoveryHint": "Try again."}
                payload = failure if end == "turn.failed" else {}
                events, _ = insert_after(events, place + 1, end, payload, **ids)
                shown = object_of(delivery.reduce(events).get("runtime"))
                changed = [key for key in _OWN_RUNTIME if shown.get(key) != straight.get(key)]
                if changed:
                    yield f"{end} of {name} changes the thread's {', '.join(changed)}"


def _is_marked_enough(ids: Mapping[str, str | None], before: Sequence[Wire]) -> bool:
    """Whether what a turn carries makes it a child's. A task above it alone does so only beside
    turns of the thread, because an agent's own turn may carry one.
    """
    is_loose = "parentTaskId" in ids
    return not is_loose or any(event.get("eventClass") == "turn.started" for event in before)


_ID_COMBINATIONS: Final = tuple(
    (deltas, final)
    for deltas in (frozenset[str](), {"messageId"}, {"messageId", "partId"})
    for final in (frozenset[str](), {"messageId"}, {"messageId", "partId"})
    if deltas != final
)


def check_one_part(delivery: Delivery) -> Problems:
    """Pieces and final text are one part, whichever of them carries the ids."""
    account = build_account(delivery.events)
    if not delivery.stream.is_plain or not account.texts or _has_many_texts(delivery.events):
        return
    for deltas, final in _ID_COMBINATIONS:
        events = [_with_ids(event, deltas, final) for event in delivery.events]
        document = delivery.reduce(events)
        shown = {
            key: [text for text, _ in rows] for key, rows in texts_by_speaker(document).items()
        }
        for speaker, texts in account.texts.items():
            wanted = [text.text for text in texts if text.text]
            if shown.get(speaker, []) != wanted:
                names = " and ".join(sorted(deltas)) or "no id"
                others = " and ".join(sorted(final)) or "no id"
                yield (
                    f"pieces with {names} and a final text with {others} read "
                    f"{shown.get(speaker, [])}"
                )
    yield from _check_two_texts(delivery)


def _check_two_texts(delivery: Delivery) -> Problems:
    """Two whole texts without ids are two texts."""
    events = [e for e in delivery.events if class_of(e) not in DELTA_CLASSES | FINAL_CLASSES]
    starts = [place for place, event in enumerate(events) if class_of(event) == "turn.started"]
    if not starts:
        return
    turn = {"turnId": id_in(events[starts[0]], "turnId")}
    for text in ("Ho.", "Ha."):
        payload = {"text": text}
        events, _ = insert_after(events, starts[0], "model.completed", payload, **turn)
        events[starts[0] + 1]["id"] += text
    shown = texts_by_speaker(delivery.reduce(events)).get((turn["turnId"], None), [])
    if [text for text, _ in shown] != ["Ha.", "Ho."]:
        yield f"two whole texts without ids read {[text for text, _ in shown]}"


def _has_many_texts(events: Sequence[Wire]) -> bool:
    """Whether one speaker has several texts, of which ids tell which is meant."""
    finals = [
        (id_in(event, "turnId"), id_in(event, "subagentId"))
        for event in events
        if class_of(event) in FINAL_CLASSES
    ]
    pieces = {
        (id_in(event, "turnId"), id_in(event, "subagentId"), id_in(event, "messageId"))
        for event in events
        if class_of(event) in DELTA_CLASSES
    }
    return len(finals) != len(set(finals)) or len(pieces) != len({key[:2] for key in pieces})


def _with_ids(event: Wire, deltas: Iterable[str], final: Iterable[str]) -> Wire:
    name = class_of(event)
    if name not in DELTA_CLASSES | FINAL_CLASSES:
        return event
    kept = deltas if name in DELTA_CLASSES else final
    changed = {key: value for key, value in event.items() if key not in ("messageId", "partId")}
    message = id_in(event, "messageId")
    values = {"messageId": message, "partId": f"{message}-part"}
    return {**changed, **{key: values[key] for key in kept if message is not None}}


def check_outcomes(delivery: Delivery) -> Problems:
    """A result whose status is failed is a failure on every surface."""
    if not any(class_of(event) == "tool.result" for event in delivery.events):
        return
    variants: dict[str, tuple[Wire, Wire]] = {
        "a failed status": ({"status": "failed"}, {}),
        "isError": ({}, {"isError": True}),
        "a failed status in its payload": ({}, {"status": "failed"}),
    }
    for name, (fields, payload) in variants.items():
        events = [
            {**event, **fields, "payload": {**payload_of(event), **payload}}
            if class_of(event) == "tool.result"
            else event
            for event in delivery.events
        ]
        for difference in delivery.differences(events):
            yield f"a result with {name}: {difference.message}"


def check_first_answer(delivery: Delivery) -> Problems:
    """The first answer to a request counts; a contrary one is remarked on and changes nothing."""
    events = delivery.events
    answers = [event for event in events if class_of(event) == "action.resolved"]
    if not delivery.stream.is_plain or not answers:
        return
    answer = answers[0]
    contrary = "approved" if payload_of(answer).get("decision") in _NOES else "denied"
    ids = {key: answer[key] for key in ("turnId", "actionId", "toolCallId") if key in answer}
    payload = {**payload_of(answer), "decision": contrary}
    changed, _ = insert_after(events, events.index(answer), "action.resolved", payload, **ids)
    for difference in delivery.differences(changed):
        yield f"answered {contrary} afterwards: {difference.message}"


_NOES: Final = frozenset({"deny", "denied", "reject", "rejected", "decline"})


def check_cancelled_work(delivery: Delivery) -> Problems:
    """A turn that is cancelled takes its open calls and requests with it, on every surface."""
    events = delivery.events
    if not delivery.stream.is_plain:
        return
    for place, event in enumerate(events):
        own = is_own_turn(event, delivery.stream.thread_id)
        if class_of(event) not in ("tool.started", "action.required") or not own:
            continue
        ids = {"turnId": id_in(event, "turnId")}
        cut, _ = insert_after(
            events[: place + 1], place, "turn.canceled", {"reason": "user"}, **ids
        )
        for difference in delivery.differences(cut):
            yield f"cancelled after {class_of(event)}: {difference.message}"


def check_left_open(delivery: Delivery) -> Problems:
    """A subagent that is at work when its turn ends does not read as at work afterwards."""
    events = delivery.events
    if not delivery.stream.is_plain:
        return
    for place, event in enumerate(events):
        own = is_own_turn(event, delivery.stream.thread_id)
        if class_of(event) not in TURN_ENDS or not own or place == 0:
            continue
        ids = {"turnId": id_in(event, "turnId"), "subagentId": "sub_left", "taskId": "tsk_left"}
        changed, _ = insert_after(events, place - 1, "subagent.spawned", {}, **ids)
        for difference in delivery.differences(changed):
            if difference.requirement == LEFTOVERS:
                yield f"spawned before {class_of(event)}: {difference.message}"


def check_times(delivery: Delivery) -> Problems:
    """A thing whose beginning no fact states has no time at which it began."""
    starts = ("tool.started", "action.required", "tool.args", "tool.args.delta")
    if not delivery.stream.is_plain:
        return
    events = renumber([event for event in delivery.events if class_of(event) not in starts])
    if len(events) == len(delivery.events):
        return
    document = delivery.reduce(events)
    for difference in find_differences(events, document):
        if difference.requirement == "screen.times":
            yield f"without the start: {difference.message}"


def check_lineage(delivery: Delivery) -> Problems:
    """Who a thing descends from shows the same, whichever form of the fact states it."""
    names = ("parentTaskId", "parentThreadId", "parentSessionId")
    if not any(name in event for event in delivery.events for name in names):
        return
    straight = delivery.reduce(delivery.events)
    for form in ("camel", "snake"):
        events = [_move_lineage(event, names, form) for event in delivery.events]
        document = delivery.reduce(events)
        for root in ("graph", "subagents", "teamWorkbench"):
            if document.get(root) != straight.get(root):
                yield f"lineage in the payload, in {form} case, shows another {root}"


def _move_lineage(event: Wire, names: Sequence[str], form: str) -> Wire:
    moved = {name: event[name] for name in names if name in event}
    if not moved:
        return event
    spelled = {
        name
        if form == "camel"
        else "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name): value
        for name, value in moved.items()
    }
    kept = {key: value for key, value in event.items() if key not in moved}
    return {**kept, "payload": {**payload_of(event), **spelled}}


def check_lenient(delivery: Delivery) -> Problems:
    """Facts without schemaVersion, runtimeId and sequence, as seed 000 allows them, are shown."""
    left_out = ("schemaVersion", "runtimeId", "sequence")
    if not delivery.stream.is_plain or any("parentThreadId" in event for event in delivery.events):
        return
    events = [
        {key: value for key, value in event.items() if key not in left_out}
        for event in delivery.events
    ]
    document = delivery.reduce(events, complete=True)
    for difference in delivery.new_differences(events, document):
        yield f"without {', '.join(left_out)}: {difference.message}"


def check_prompts(delivery: Delivery) -> Problems:
    """Every text of an input is shown, and a steer that is delivered does not replace a prompt."""
    events = delivery.events
    asks = [event for event in events if class_of(event) == "turn.submitted"]
    if not delivery.stream.is_plain or not asks or not payload_of(asks[0]).get("prompt"):
        return
    first, prompt = asks[0], payload_of(asks[0])["prompt"]
    texts = [{"type": "text", "text": prompt}, {"type": "text", "text": "And in short."}]
    variants = {
        "a prompt and an input of two texts": {"prompt": prompt, "input": texts},
        "an input of two texts": {"input": texts},
    }
    for name, payload in variants.items():
        changed = [{**event, "payload": payload} if event is first else event for event in events]
        for difference in delivery.differences(changed):
            yield f"{name}: {difference.message}"
    unnamed = [
        {key: value for key, value in event.items() if event is not first or key != "messageId"}
        for event in events
    ]
    steer = {"prompt": "Only the short version.", "delivery": "steer"}
    turn = {"turnId": id_in(first, "turnId")}
    for name, before in (("with a message id", events), ("without message ids", unnamed)):
        steered, _ = insert_after(before, min(4, len(events) - 1), "turn.submitted", steer, **turn)
        for difference in delivery.differences(steered):
            yield f"a steer {name}: {difference.message}"


_SEEDS: Final = "seed 000; facts.md §1, §4"

DELIVERY_CHECKS: Final = (
    DeliveryCheck(
        requirement="screen.order",
        title="A complete list of facts shows the same in any order",
        source="facts.md §4, rule 2",
        judge=check_order,
        extra=lambda: (build_late_stream(), build_two_runs()),
    ),
    DeliveryCheck(
        requirement="screen.early-snapshots",
        title="An early snapshot hides nothing",
        source="facts.md §4, rules 2 and 5",
        judge=check_early_snapshots,
    ),
    DeliveryCheck(
        requirement="screen.late-facts",
        title="A stream that starts in the middle",
        source="facts.md §4, rule 2",
        judge=check_late_facts,
    ),
    DeliveryCheck(
        requirement="screen.counts",
        title="The counts of facts add up",
        source="facts.md §4, hydration",
        judge=check_counts,
    ),
    DeliveryCheck(
        requirement="screen.recovery",
        title="A read model restores no truncated text as whole",
        source="facts.md §4, read models",
        judge=check_recovery,
    ),
    DeliveryCheck(
        requirement="screen.child-turns",
        title="A child's turn ends the child",
        source=_SEEDS,
        judge=check_child_turns,
    ),
    DeliveryCheck(
        requirement="screen.one-part",
        title="One part, whichever side the id is on",
        source="facts.md §4, rule 3",
        judge=check_one_part,
    ),
    DeliveryCheck(
        requirement="screen.prompts",
        title="Prompts, steers and inputs of several texts",
        source="seed 003, multimodal input",
        judge=check_prompts,
    ),
    DeliveryCheck(
        requirement="screen.outcomes",
        title="A failed result is a failure everywhere",
        source=_SEEDS,
        judge=check_outcomes,
    ),
    DeliveryCheck(
        requirement="screen.first-answer",
        title="The first answer counts",
        source="facts.md §4, rule 6",
        judge=check_first_answer,
    ),
    DeliveryCheck(
        requirement="screen.cancelled-work",
        title="A turn that is cancelled in the middle of a call",
        source=_SEEDS,
        judge=check_cancelled_work,
    ),
    DeliveryCheck(
        requirement=LEFTOVERS,
        title="What is at work when its turn ends",
        source=_SEEDS,
        judge=check_left_open,
    ),
    DeliveryCheck(
        requirement="screen.times",
        title="No invented times",
        source="facts.md §4, rule 13",
        judge=check_times,
    ),
    DeliveryCheck(
        requirement="screen.edges",
        title="Lineage in every form",
        source="facts.md §1, §4",
        judge=check_lineage,
    ),
    DeliveryCheck(
        requirement="screen.lenient",
        title="Facts without the optional fields",
        source="facts.md §1",
        judge=check_lenient,
    ),
    DeliveryCheck(
        requirement="screen.empty-repairs",
        title="A repair that carries nothing",
        source="facts.md §4, rules 2 and 5",
        judge=check_empty_repairs,
    ),
    DeliveryCheck(
        requirement="screen.restarts",
        title="Runs and turns that count by themselves",
        source="facts.md §1, sequence",
        judge=check_restarts,
        extra=lambda: (build_two_runs(),),
    ),
    DeliveryCheck(
        requirement="screen.lost-text",
        title="Text that a snapshot leaves out",
        source="facts.md §4, rule 5",
        judge=check_lost_text,
    ),
    DeliveryCheck(
        requirement="screen.restored-doubts",
        title="A read model passes on what is in doubt",
        source="facts.md §4, read models",
        judge=check_restored_doubts,
    ),
)
