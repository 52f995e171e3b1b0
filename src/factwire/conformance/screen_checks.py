"""What facts come to on a screen, and whether anything on the way is doubled, lost or made up.

Replay: however often and in whatever pieces facts come, the screen is the same. First screen: what
a read model brings back before a single fact has been read again; it carries no text, and whether
it may end an open call is the projection's own rule. Refs: what is named by a fact can be reached
from the screen. Guesses: every end on the screen is stated by a fact, and where facts are missing
the screen does not look as if it had them all. One result a requirement, over all threads.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any, Final, cast

import msgspec

from factwire.conformance.account_checks import (
    DECISIONS,
    EDGES,
    LEFTOVERS,
    OUTCOMES,
    PROMPTS,
    SHOWN,
    TIMES,
    find_differences_shown,
)
from factwire.conformance.case import (
    Finding,
    Level,
    Projector,
    Result,
    build_finding,
    build_result,
    factwire_projector,
)
from factwire.conformance.limits import CUT_FACTS, CUTS, FEW_CUTS, ORDERED_FACTS
from factwire.conformance.reducers import call_reducer
from factwire.facts import REF_KINDS, Fact, id_of, redact_text, redact_value, write_fact
from factwire.facts.classes.class_tables import ACTION_CLOSERS, TURN_TERMINALS
from factwire.facts.inspection import carries_messages, repaired_range
from factwire.facts.json_patch import JsonDocument
from factwire.facts.json_values import object_at
from factwire.projection import (
    Projection,
    ProjectionState,
    ThreadReadModel,
    advance,
    encode_state,
    project,
    read_thread_model,
    thread_read_model,
)
from factwire.projection.repair import REPAIRS

ScreenFacts = tuple[str | None, tuple[Fact, ...]]
"""A thread that is nobody's child, and the facts of its screen. One that no fact names is None."""


def group_by_family(facts: Sequence[Fact]) -> list[ScreenFacts]:
    """Facts by screen; a fact that names no thread belongs to the one before it."""
    parents = {
        fact.thread_id: fact.parent_thread_id
        for fact in facts
        if fact.thread_id is not None and fact.parent_thread_id is not None
    }
    found: dict[str | None, list[Fact]] = {}
    current: str | None = None
    for fact in facts:
        thread = id_of(fact, "threadId")
        if thread is not None:
            root = _root(thread, parents)
            if current is None and None in found:
                found[root] = found.pop(None)
            current = root
        found.setdefault(current, []).append(fact)
    return [(thread, tuple(own)) for thread, own in found.items()]


def _root(thread: str, parents: dict[str, str]) -> str:
    seen: set[str] = set()
    while thread in parents and thread not in seen:
        seen.add(thread)
        thread = parents[thread]
    return thread


_EXCERPT = 120


def find_difference(one: object, other: object, path: str = "") -> str | None:
    """`/path: this on one side, that on the other`, for the first place that differs."""
    if one == other:
        return None
    members = _members(one), _members(other)
    for key in {**members[0], **members[1]} if type(one) is type(other) else ():
        found = find_difference(members[0].get(key), members[1].get(key), f"{path}/{key}")
        if found is not None:
            return found
    return f"{path}: {_excerpt(one)} instead of {_excerpt(other)}"


def _members(value: object) -> dict[str, Any]:
    """What stands beneath a value, by name or by place."""
    if isinstance(value, list):
        return {str(place): item for place, item in enumerate(cast("list[Any]", value))}
    return object_at(value) or {}


def to_document(state: ProjectionState) -> dict[str, Any]:
    """A state as JSON."""
    return msgspec.json.decode(encode_state(state))


def _excerpt(value: object) -> str:
    text = redact_text(msgspec.json.encode(redact_value(value)[0]).decode())[0]
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"


_REPLAY = "screen.replay"


def drop_repeat_counts(document: object) -> object:
    """A state without the counts of facts that came, which is all that a repeat changes."""
    state = object_at(document) or {}
    hydration = object_at(state.get("hydration"))
    if hydration is None:
        return document
    kept = {name: hydration[name] for name in hydration if name not in ("received", "repeated")}
    return {**state, "hydration": kept}


def check_replays(
    facts: Sequence[Fact], projector: Projector, thread: str | None = None
) -> Iterator[Finding]:
    """Every way of replaying the facts that comes to another screen."""
    whole = to_document(projector(facts, None))
    replays = {
        "each fact twice": [fact for fact in facts for _ in range(2)],
        "all facts again after the last": [*facts, *facts],
    }
    for name, repeated in replays.items():
        yield from _compare_replay(to_document(projector(repeated, None)), whole, name, facts)
    yield from _check_pieces(facts, thread)


def _check_pieces(facts: Sequence[Fact], thread: str | None) -> Iterator[Finding]:
    """Factwire's own: saved and restored at many places, and followed by changes alone."""
    straight, saved = Projection(thread), Projection(thread)
    copy = JsonDocument(msgspec.json.decode(straight.snapshot()))
    places = cut_places(len(facts))
    for place, fact in enumerate(facts):
        advance(copy, straight.apply(fact))
        if place in places:
            saved = Projection.restore(saved.checkpoint())
        saved.apply(fact)
    whole = to_document(straight.state)
    yield from _compare_replay(
        to_document(saved.state), whole, "saved and restored on the way", facts
    )
    yield from _compare_replay(copy.root, whole, "a copy that follows the changes", facts)


def cut_places(length: int) -> frozenset[int]:
    """Places in a stream at which to cut it: all of a short one, some of a long one."""
    places = max(FEW_CUTS, min(CUTS, CUT_FACTS // max(length, 1)))
    return frozenset(range(1, length, max(1, -(-length // places))))


def _compare_replay(
    found: object, expected: object, name: str, facts: Sequence[Fact]
) -> Iterator[Finding]:
    differs = find_difference(drop_repeat_counts(found), drop_repeat_counts(expected))
    if differs is not None:
        last = facts[-1] if facts else None
        yield build_finding(_REPLAY, f"{name}: {differs}", level="projection", fact=last)


_FIRST_SCREEN_FIELDS: Final = (
    *("sessionId", "threadId", "status", "activeTurnId", "pendingActions", "toolCalls"),
    *("queuedTurns", "lastOutcome"),
)

_REPAIRED: Final = {
    "toolCalls": ("toolCallId", "state", "outputRef", "failureCategory"),
    "pendingActions": ("actionId", "status"),
}
"""List → the id of its rows, and what else a repair must bring."""


def build_first_screen(state: ProjectionState) -> dict[str, Any]:
    """What a first screen shows of a state."""
    model = msgspec.to_builtins(thread_read_model(state))
    if state.hydration.event_count == 0 and state.read_model.status is not None:
        # Before the first fact, a screen shows the status that the read model states.
        model["status"] = state.read_model.status
    return {name: model.get(name) for name in _FIRST_SCREEN_FIELDS}


def check_restores(facts: Sequence[Fact], thread: str | None = None) -> Iterator[Finding]:
    """Places at which a read model alone shows something else than the facts, or from which the
    rest of the stream leads elsewhere.
    """
    whole = project(facts, thread)
    projection = Projection(thread)
    places = cut_places(len(facts)) | {len(facts)}
    for place, fact in enumerate(facts, 1):
        projection.apply(fact)
        if place not in places:
            continue
        model = send_read_model(projection.state)
        restored = Projection.from_read_model(model)
        shown, expected = build_first_screen(restored.state), build_first_screen(projection.state)
        yield from _compare_screens("screen.first-screen", shown, expected, f"at {fact.id}", fact)
        restored.apply_all(
            _facts_after(facts, place, model.event_cursor, projection.state.thread_id)
        )
        restored.close()
        went_on = f"from the read model at {fact.id} on"
        shown = build_first_screen(restored.state)
        yield from _compare_screens(
            "screen.first-screen", shown, build_first_screen(whole), went_on, fact
        )


def check_repairs(
    facts: Sequence[Fact],
    model: ThreadReadModel,
    thread: str | None = None,
    requirement: str = "screen.repair",
    level: Level = "projection",
) -> Iterator[Finding]:
    """Places at which the stream was cut and that the read model of its end does not repair."""
    whole = build_first_screen(project(facts, thread))
    for place in sorted(cut_places(len(facts))):
        cut = Projection(thread)
        cut.apply_all(facts[:place])
        known = frozenset([*cut.state.tools, *cut.state.actions])
        cut.repair(model)
        where = f"cut after {facts[place - 1].id} and repaired"
        shown, expected = (
            _keep_repaired(build_first_screen(cut.state), known),
            _keep_repaired(whole, known),
        )
        for each in _compare_screens(requirement, shown, expected, where, facts[place - 1]):
            yield msgspec.structs.replace(each, level=level)


def _keep_repaired(screen: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """A first screen with what a repair brings: of calls and requests that a reader knew already
    only that they are there, of others what matters about them.
    """
    return screen | {
        name: [
            {key: row.get(key) for key in (keys if row[keys[0]] not in known else keys[:1])}
            for row in screen[name]
        ]
        for name, keys in _REPAIRED.items()
    }


def _facts_after(
    facts: Sequence[Fact], place: int, cursor: int | None, thread: str | None
) -> Iterator[Fact]:
    """What a reader gets that takes up after the cursor: all that is newer, whenever it came."""
    for index, fact in enumerate(facts):
        own = fact.thread_id in (None, thread) and fact.sequence is not None
        newer = own and cursor is not None and (fact.sequence or 0) > cursor
        if newer or (index >= place and not own):
            yield fact


def send_read_model(state: ProjectionState) -> ThreadReadModel:
    """The read model of a state, as it arrives on the other side of a wire."""
    return read_thread_model(msgspec.json.encode(thread_read_model(state)))


def _compare_screens(
    requirement: str,
    shown: dict[str, Any],
    expected: dict[str, Any],
    where: str,
    fact: Fact,
) -> Iterator[Finding]:
    differs = find_difference(shown, expected)
    if differs is not None:
        yield build_finding(requirement, f"{where}: {differs}", level="projection", fact=fact)


_OWN: Final = re.compile(rf"(?:{'|'.join(REF_KINDS)}):sha256:[0-9a-f]{{64}}")

_MESSAGE_CLASSES: Final = ("turn.submitted", "model.")
_REPLACING: Final = frozenset({"messages.snapshot", "history.rollback.completed"})
_TAKING_BACK: Final = frozenset({"messages", "retractedMessageIds", "supersedes"})


def refs_of(fact: Fact) -> Iterator[tuple[str, str]]:
    """Every ref that a fact states, with its path: in its lists, and in the payload under names
    that end in `ref` or `refs`.
    """
    lists = {
        "refIds": fact.ref_ids,
        "artifactRefs": fact.artifact_refs,
        "evidenceRefs": fact.evidence_refs,
    }
    for name, refs in lists.items():
        yield from ((ref, f"$.{name}[{index}]") for index, ref in enumerate(refs))
    yield from _refs_in_payload(fact.payload, "$.payload")


def find_lost_refs(facts: Sequence[Fact], state: ProjectionState) -> Iterator[Finding]:
    """Refs that facts state and a state does not. Notes about output are about other facts; what a
    gap holds back, and what was said in messages that were taken back since, is not lost.
    """
    shown = frozenset(_strings_in(to_document(state)))
    reported: set[str] = set()
    replaced = max((place for place, fact in enumerate(facts) if _takes_back(fact)), default=-1)
    for place, fact in enumerate(facts):
        is_said = place < replaced and (fact.event_class or "").startswith(_MESSAGE_CLASSES)
        if is_said or _is_held(fact, state) or (fact.event_class or "").startswith("output."):
            continue
        for ref, path in refs_of(fact):
            if ref not in shown and ref not in reported:
                reported.add(ref)
                message = f"{ref[:120]} is nowhere on the screen"
                yield build_finding(
                    "screen.refs", message, level="projection", fact=fact, path=path
                )


def _takes_back(fact: Fact) -> bool:
    """Whether a fact can replace messages, or take some back."""
    return fact.event_class in _REPLACING or not _TAKING_BACK.isdisjoint(fact.payload)


def _is_held(fact: Fact, state: ProjectionState) -> bool:
    cursor, own = state.hydration.cursor, fact.thread_id in (None, state.thread_id)
    return own and None not in (fact.sequence, cursor) and (fact.sequence or 0) > (cursor or 0)


def own_refs(facts: Sequence[Fact]) -> Iterator[str]:
    """Refs of Factwire's own form, each once: what they name must be kept somewhere."""
    seen: set[str] = set()
    for fact in facts:
        for ref, _ in refs_of(fact):
            if ref not in seen and _OWN.fullmatch(ref):
                seen.add(ref)
                yield ref


def _refs_in_payload(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _refs_in_payload(item, f"{path}[{index}]")
    if not isinstance(value, Mapping):
        return
    for key, item in cast("Mapping[str, Any]", value).items():
        here = f"{path}.{key}"
        if key.lower().endswith(("ref", "refs")):
            yield from _refs_in_value(item, here)
        else:
            yield from _refs_in_payload(item, here)


def _refs_in_value(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str) and value:
        yield value, path
    elif isinstance(value, Mapping):
        yield from _refs_in_value(cast("Mapping[str, Any]", value).get("ref"), f"{path}.ref")
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _refs_in_value(item, f"{path}[{index}]")


def _strings_in(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            waiting += cast("list[object]", item)
        elif isinstance(item, dict):
            fields = cast("dict[str, object]", item)
            yield from fields
            waiting += fields.values()


_GUESSES: Final = "screen.nothing-guessed"


class _Ending(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of thing on the screen: which id names it, how it reads when ended, what ends it."""

    noun: str
    id_name: str
    shown: Callable[[ProjectionState], dict[str, str]]
    ended: frozenset[str]
    classes: frozenset[str]


_ENDINGS: Final = (
    _Ending(
        noun="call",
        id_name="toolCallId",
        shown=lambda state: {key: tool.state for key, tool in state.tools.items()},
        ended=frozenset({"output-available", "output-error"}),
        classes=frozenset({"tool.result", "tool.failed"}),
    ),
    _Ending(
        noun="request",
        id_name="actionId",
        shown=lambda state: {key: action.status for key, action in state.actions.items()},
        ended=frozenset({"resolved", "cancelled", "expired"}),
        classes=frozenset(ACTION_CLOSERS),
    ),
    _Ending(
        noun="task",
        id_name="taskId",
        shown=lambda state: {key: task.status for key, task in state.tasks.items()},
        ended=frozenset({"completed"}),
        classes=frozenset({"task.completed", "subagent.completed", "worker.completed"}),
    ),
    _Ending(
        noun="turn",
        id_name="turnId",
        shown=lambda state: {
            state.runtime.latest_turn_id or "": state.runtime.latest_turn_status or ""
        },
        ended=frozenset({"completed", "failed", "canceled"}),
        classes=frozenset({*TURN_TERMINALS, "run.finished", "run.failed"}),
    ),
)


def find_guesses(facts: Sequence[Fact], state: ProjectionState) -> Iterator[Finding]:
    """What a state that no read model had a part in says without a fact."""
    for ending in _ENDINGS:
        stated = {id_of(f, ending.id_name) for f in facts if f.event_class in ending.classes}
        for name, status in ending.shown(state).items():
            if status in ending.ended and name not in stated:
                message = f"{ending.noun} {name} reads {status}, and no fact states it"
                yield build_finding(
                    _GUESSES, message, level="projection", fact=_fact_about(facts, name)
                )
    yield from _hidden_gap(facts, state)


def _fact_about(facts: Sequence[Fact], name: str) -> Fact | None:
    ids = ("toolCallId", "actionId", "taskId", "turnId")
    return next((f for f in reversed(facts) if name in {id_of(f, key) for key in ids}), None)


def _hidden_gap(facts: Sequence[Fact], state: ProjectionState) -> Iterator[Finding]:
    """A gap in the sequences of the thread that the screen does not show."""
    own = [fact for fact in facts if fact.thread_id in (None, state.thread_id)]
    present = sorted({fact.sequence for fact in own if fact.sequence is not None})
    repairs = [fact for fact in own if fact.event_class in REPAIRS and carries_messages(fact)]
    covered = [stated for stated in map(repaired_range, repairs) if stated is not None]
    for before, after in pairwise(present):
        missing = before + 1, after - 1
        excused = any(first <= missing[0] and missing[1] <= last for first, last in covered)
        if missing[0] <= missing[1] and not excused and state.hydration.status == "live":
            message = (
                f"sequences {missing[0]} to {missing[1]} are missing, no repair covers them, "
                "and the screen reads as if nothing was missing"
            )
            yield build_finding(_GUESSES, message, level="projection", fact=own[-1])


NO_REFS: Final = "no fact states a ref"
NO_SCREEN: Final = "there are no facts"


class ScreenCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement of screens."""

    requirement: str
    title: str
    check: Callable[[ScreenFacts, Projector], Iterator[Finding]]


def _check_replay(family: ScreenFacts, projector: Projector) -> Iterator[Finding]:
    thread, facts = family
    return check_replays(facts, projector, thread)


def _check_first_screen(family: ScreenFacts, _: Projector) -> Iterator[Finding]:
    thread, facts = family
    return check_restores(facts, thread)


def _check_repair(family: ScreenFacts, _: Projector) -> Iterator[Finding]:
    thread, facts = family
    return check_repairs(facts, send_read_model(project(facts, thread)), thread)


def _check_state(
    check: Callable[[Sequence[Fact], ProjectionState], Iterator[Finding]],
    family: ScreenFacts,
    projector: Projector,
) -> Iterator[Finding]:
    return check(family[1], projector(family[1], None))


SCREEN_CHECKS: Final = (
    ScreenCheck(requirement="screen.replay", title="Replay repeats nothing", check=_check_replay),
    ScreenCheck(
        requirement="screen.first-screen",
        title="A read model restores the first screen",
        check=_check_first_screen,
    ),
    ScreenCheck(requirement="screen.repair", title="A cut stream is repaired", check=_check_repair),
    ScreenCheck(
        requirement="screen.refs",
        title="No ref is lost",
        check=partial(_check_state, find_lost_refs),
    ),
    ScreenCheck(
        requirement="screen.nothing-guessed",
        title="Nothing is guessed",
        check=partial(_check_state, find_guesses),
    ),
)


def check_screens(facts: Sequence[Fact], projector: Projector = factwire_projector) -> list[Result]:
    """A result for each requirement of screens, over all threads among the facts."""
    found = group_by_family(facts)
    return [
        *(_screen_result(check, found, projector) for check in SCREEN_CHECKS),
        *_account_results(found, projector),
        _order_result(found, projector),
    ]


ACCOUNT_TITLES: Final = {
    SHOWN: "Every fact is shown",
    OUTCOMES: "One outcome on every surface",
    EDGES: "Every edge is drawn",
    TIMES: "No invented times",
    LEFTOVERS: "Nothing of an ended turn is left open",
    DECISIONS: "The first answer counts",
    PROMPTS: "Every prompt is shown",
}
"""Requirement → title, for those that facts given are compared with facts shown by."""

ORDER: Final = "screen.order"


def _account_results(found: list[ScreenFacts], projector: Projector) -> Iterator[Result]:
    """Facts given against facts shown, a result for each requirement."""
    findings: dict[str, list[Finding]] = {name: [] for name in ACCOUNT_TITLES}
    for family in found:
        for each in _run_check(_ACCOUNT_CHECK, family, projector):
            findings.setdefault(each.requirement, []).append(each)
    reason = None if found else NO_SCREEN
    for name, title in ACCOUNT_TITLES.items():
        yield build_result(name, title, "projection", (name,), findings[name], reason=reason)


def _find_unshown(family: ScreenFacts, projector: Projector) -> Iterator[Finding]:
    facts = {fact.id: fact for fact in family[1]}
    events = [write_fact(fact, "facts") for fact in family[1]]
    document = to_document(projector(family[1], None))
    for requirement, message, name in find_differences_shown(events, document):
        if requirement in ACCOUNT_TITLES:
            fact = facts.get(name or "")
            yield build_finding(requirement, message, level="projection", fact=fact)


def _order_result(found: list[ScreenFacts], projector: Projector) -> Result:
    """The same facts as a complete list, in other orders."""
    reason = None if found else NO_SCREEN
    if sum(len(facts) for _, facts in found) > ORDERED_FACTS:
        reason, found = f"more than {ORDERED_FACTS:,} facts are not put in other orders", []
    findings = [each for family in found for each in _run_check(_ORDER_CHECK, family, projector)]
    title = "The same state in any order"
    return build_result(ORDER, title, "projection", (ORDER,), findings, reason=reason)


def _check_orders(family: ScreenFacts, projector: Projector) -> Iterator[Finding]:
    facts = family[1]
    mixed = list(facts)
    Random(len(facts)).shuffle(mixed)  # noqa: S311 - not for secrets
    orders = {"in reverse": list(reversed(facts)), "shuffled": mixed}
    straight = to_document(call_reducer(projector, facts, None, complete=True))
    for name, order in orders.items():
        document = to_document(call_reducer(projector, order, None, complete=True))
        differs = find_difference(document | {"hydration": None}, straight | {"hydration": None})
        if differs is not None:
            yield build_finding(ORDER, f"{name}: {differs}", level="projection", fact=facts[-1])


_ACCOUNT_CHECK: Final = ScreenCheck(
    requirement=SHOWN, title=ACCOUNT_TITLES[SHOWN], check=_find_unshown
)
_ORDER_CHECK: Final = ScreenCheck(
    requirement=ORDER, title="The same state in any order", check=_check_orders
)


def _screen_result(check: ScreenCheck, found: list[ScreenFacts], projector: Projector) -> Result:
    reason = None if found else NO_SCREEN
    if check.requirement == "screen.refs" and not any(
        True for _, facts in found for fact in facts for _ in refs_of(fact)
    ):
        reason = NO_REFS
    findings = [finding for family in found for finding in _run_check(check, family, projector)]
    needs = (check.requirement,)
    return build_result(
        check.requirement, check.title, "projection", needs, findings, reason=reason
    )


def _run_check(check: ScreenCheck, family: ScreenFacts, projector: Projector) -> list[Finding]:
    try:
        return list(check.check(family, projector))
    except Exception as error:  # noqa: BLE001 - a projection that raises shows nothing at all
        message = f"the projection raised {type(error).__name__}: {error}"
        last = family[1][-1]
        return [build_finding(check.requirement, message, level="projection", fact=last)]
