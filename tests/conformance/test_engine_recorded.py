"""Recorded streams, screens and projectors: what is wrong is found, under its own requirement."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from factwire.conformance import (
    EmptyStream,
    Report,
    case_results,
    html_report,
    try_facts,
)
from factwire.conformance.case import Case, Finding, Projector, Reducer, factwire_projector
from factwire.conformance.fixture_checks import fixture, fixture_cases
from factwire.conformance.reducers import to_reducer
from factwire.conformance.runner import try_fixture
from factwire.conformance.screen_checks import check_screens
from factwire.facts import Fact, read_fact, write_fact
from factwire.projection import (
    Projection,
    ProjectionState,
    ThreadReadModel,
    decode_state,
    encode_state,
    thread_read_model,
)
from tests.conformance.broken_providers import SECRET
from tests.projection.generated_streams import build_random_facts, build_stream, spoil_facts

CLASSES = {
    "turn.submitted": "pending",
    "turn.started": "running",
    "model.delta": "running",
    "model.completed": "completed",
    "tool.started": "running",
    "tool.result": "completed",
    "turn.completed": "completed",
}


def event(place: int, event_class: str, payload: dict[str, Any] | None = None, **more: Any) -> Any:
    return {
        "id": f"evt_{place}",
        "kind": "state",
        "status": CLASSES.get(event_class, "pending"),
        "title": event_class,
        "createdAt": "2026-06-10T09:00:00Z",
        "schemaVersion": "factwire-fact/v1",
        "runtimeId": "r",
        "sequence": place,
        "eventClass": event_class,
        "sessionId": "ses",
        "threadId": "thr",
        "turnId": "trn",
        "payload": payload or {},
        **more,
    }


def turn() -> list[dict[str, Any]]:
    """A whole turn with text, and a tool with a ref."""
    call = {"toolCallId": "call"}
    return [
        event(1, "turn.started"),
        event(2, "model.delta", {"delta": "Read"}, messageId="m"),
        event(3, "model.delta", {"delta": "ing."}, messageId="m"),
        event(4, "model.completed", {"text": "Reading."}, messageId="m"),
        event(5, "tool.started", {"toolName": "read"}, **call),
        event(6, "tool.result", {"summary": "84 lines", "outputRef": "output:readme"}, **call),
        event(7, "turn.completed"),
    ]


def try_recorded(events: Sequence[object]) -> Report:
    return try_facts(events, name="recorded")


@pytest.mark.requirement("conformance.recorded")
def test_a_sound_stream_reaches_what_a_stream_can_reach():
    report = try_recorded(turn())
    assert (report.failed, report.conformant, report.level) == (set(), True, "projection")
    rows = {row.id: row for row in report.requirements}
    assert rows["provider.text"].status == "not-tried"
    assert rows["provider.text"].reason == "needs an agent: --provider module:factory"


@pytest.mark.requirement("conformance.recorded")
def test_lines_objects_and_facts_are_judged_alike():
    events = turn()
    lines = [msgspec.json.encode(each) for each in events]
    facts = [read_fact(each) for each in events]
    results = [
        [(each.id, each.status) for each in try_recorded(items).results] for items in (lines, facts)
    ]
    assert (
        results[0]
        == results[1]
        == [(each.id, each.status) for each in try_recorded(events).results]
    )


def second_turn() -> list[Any]:
    return [
        *turn()[:1],
        event(2, "turn.started", turnId="other"),
        event(3, "turn.completed"),
        event(4, "turn.completed", turnId="other"),
    ]


def asked_turn(*decisions: str) -> list[Any]:
    """A turn in which a person is asked, and answers."""
    call: Any = {"toolCallId": "call"}
    request: Any = {**call, "actionId": "act"}
    place = 3 + len(decisions)
    failure = {"failureCategory": "permission_denied"}
    return [
        event(1, "turn.started"),
        event(2, "tool.started", {"toolName": "deploy"}, **call),
        event(3, "action.required", {"actionType": "tool_approval"}, **request, status="blocked"),
        *(
            event(number, "action.resolved", {"decision": each}, **request, status="completed")
            for number, each in enumerate(decisions, 4)
        ),
        event(place + 1, "tool.failed", failure, **call, status="failed"),
        event(place + 2, "turn.completed"),
    ]


@pytest.mark.requirement("stream.decision")
def test_a_request_that_is_answered_the_other_way_afterwards_is_found():
    assert try_recorded(asked_turn("denied")).failed == set()
    assert try_recorded(asked_turn("denied", "approved")).failed == {"stream.decision"}


@pytest.mark.requirement("stream.sequence")
@pytest.mark.requirement("screen.nothing-guessed")
@pytest.mark.parametrize(
    ("covers", "failed"),
    [
        ({"toSequence": 4, "messages": []}, False),
        ({"fromSequence": 2, "toSequence": 4, "messages": []}, False),
        ({}, True),
        ({"messages": []}, True),
        ({"toSequence": 4}, True),
        ({"toSequence": 3, "messages": []}, True),
        ({"fromSequence": 4, "toSequence": 4, "messages": []}, True),
    ],
)
def test_a_gap_is_excused_only_by_a_repair_that_covers_it(covers: Any, failed: bool):
    """Facts 2 to 4 are missing."""
    repair = event(6, "stream.repair.completed", covers, status="completed")
    events = [event(1, "turn.started"), event(5, "run.status"), repair, event(7, "turn.completed")]
    assert ("stream.sequence" in try_recorded(events).failed) is failed


SPOILT: dict[str, tuple[Callable[[], list[Any]], set[str]]] = {
    "no JSON": (lambda: [*turn(), b"{"], {"stream.schema"}),
    "not an object": (lambda: [*turn(), 5], {"stream.schema"}),
    "two turns": (second_turn, {"stream.one-turn"}),
    "a gap": (lambda: [*turn()[:4], event(9, "turn.completed")], {"stream.sequence"}),
    "no end": (lambda: turn()[:-1], {"stream.terminal"}),
    "an old end": (
        lambda: [*turn()[:-1], event(7, "turn.done"), event(8, "turn.completed")],
        {"stream.schema"},
    ),
}


@pytest.mark.requirement("conformance.recorded")
@pytest.mark.requirement("stream.one-turn")
@pytest.mark.parametrize("name", SPOILT)
def test_a_spoilt_stream_fails_what_it_breaks(name: str):
    spoil, broken = SPOILT[name]
    assert try_recorded(spoil()).failed == broken


@pytest.mark.requirement("stream.terminal")
def test_a_turn_that_waits_for_a_person_need_not_have_ended():
    request = event(2, "action.required", {"actionType": "tool_approval"}, actionId="act")
    request["status"] = "blocked"
    assert try_recorded([event(1, "turn.started"), request]).failed == set()


@pytest.mark.requirement("screen.final-text")
def test_text_that_lost_a_piece_on_the_way_is_not_called_doubled():
    events = [each for each in turn() if each["id"] != "evt_3"]
    assert try_recorded(events).failed == {"stream.sequence"}


@pytest.mark.requirement("screen.stable-ids")
def test_a_message_that_a_snapshot_renames_is_found():
    rows = [{"messageId": "other", "role": "assistant", "text": "Reading."}]
    snapshot = event(8, "messages.snapshot", {"messages": rows})
    report = try_recorded([*turn(), snapshot])
    assert report.failed == {"screen.stable-ids"}
    named = [{**rows[0], "messageId": "m"}]
    assert (
        try_recorded([*turn(), event(8, "messages.snapshot", {"messages": named})]).failed == set()
    )


@pytest.mark.requirement("conformance.recorded")
def test_threads_of_one_recording_are_judged_one_by_one():
    other = [{**each, "id": f"other_{each['id']}", "threadId": "thr2"} for each in turn()]
    mixed = [each for pair in zip(turn(), other, strict=True) for each in pair]
    report = try_recorded([{**each, "turnId": each["threadId"]} for each in mixed])
    assert report.failed == set()


@pytest.mark.requirement("conformance.recorded")
def test_an_empty_stream_is_an_error_and_no_pass():
    with pytest.raises(EmptyStream, match="nothing to judge"):
        try_recorded([])


@pytest.mark.requirement("screen.expected")
def test_a_fixture_is_held_to_what_it_expects():
    value = msgspec.to_builtins(fixture("text-basic"))
    assert try_fixture(value, name="text-basic").failed == set()
    value["expected"]["messagePartCount"] = 99
    assert try_fixture(value, name="text-basic").failed == {"screen.expected"}


@pytest.mark.requirement("screen.repair")
@pytest.mark.requirement("provider.repair")
@pytest.mark.requirement("screen.first-screen")
def test_a_block_is_on_the_first_screen_and_comes_back_with_a_repair():
    facts = [read_fact(each) for each in msgspec.to_builtins(fixture("sandbox-blocked"))["events"]]
    whole, cut = Projection(), Projection()
    whole.apply_all(facts)
    cut.apply_all(facts[:3])
    cut.repair(thread_read_model(whole.state))
    assert (whole.state.runtime.status, cut.state.runtime.status) == ("blocked", "blocked")
    restored = Projection.from_read_model(thread_read_model(whole.state))
    assert restored.state.runtime.status == "blocked"


def project_twice(
    facts: Sequence[Fact], model: ThreadReadModel | None, *, complete: bool = False
) -> ProjectionState:
    """Takes a fact that came before for a new one."""
    seen: set[str] = set()
    renamed: list[Fact] = []
    for place, fact in enumerate(facts):
        repeated = fact.id in seen
        seen.add(fact.id)
        again = msgspec.structs.replace(fact, id=f"{fact.id}_{place}", sequence=None)
        renamed.append(again if repeated else fact)
    return factwire_projector(renamed, model, complete=complete)


def project_without_refs(
    facts: Sequence[Fact], model: ThreadReadModel | None, *, complete: bool = False
) -> ProjectionState:
    """Loses refs."""
    text = encode_state(factwire_projector(facts, model, complete=complete)).replace(
        b"output:readme", b"lost"
    )
    return decode_state(text)


def project_completed_calls(
    facts: Sequence[Fact], model: ThreadReadModel | None, *, complete: bool = False
) -> ProjectionState:
    """Takes every call for completed."""
    state = factwire_projector(facts, model, complete=complete)
    for tool in state.tools.values():
        tool.state = "output-available"
    return state


def project_without_gaps(
    facts: Sequence[Fact], model: ThreadReadModel | None, *, complete: bool = False
) -> ProjectionState:
    """Says that nothing is missing."""
    state = factwire_projector(facts, model, complete=complete)
    state.hydration.status = "live"
    return state


def running_turn() -> list[Any]:
    return turn()[:5]


def turn_with_gap() -> list[Any]:
    return [*turn()[:2], *turn()[4:]]


@pytest.mark.requirement("conformance.projectors")
@pytest.mark.requirement("screen.replay")
@pytest.mark.requirement("screen.refs")
@pytest.mark.requirement("screen.nothing-guessed")
@pytest.mark.parametrize(
    ("projector", "events", "broken"),
    [
        (project_twice, turn, "screen.replay"),
        (project_without_refs, turn, "screen.refs"),
        (project_completed_calls, running_turn, "screen.nothing-guessed"),
        (project_without_gaps, turn_with_gap, "screen.nothing-guessed"),
    ],
)
def test_a_projection_that_doubles_loses_guesses_or_hides_is_caught(
    projector: Projector, events: Callable[[], list[Any]], broken: str
):
    facts = [read_fact(each) for each in events()]
    found = {name for each in check_screens(facts, projector) for name in each.broken}
    assert found == {broken}
    assert {name for each in check_screens(facts) for name in each.broken} == set()


def raise_key_error(facts: Sequence[Fact], model: ThreadReadModel | None) -> ProjectionState:
    raise KeyError(len(facts), model)


@pytest.mark.requirement("conformance.projectors")
def test_a_projection_that_raises_is_a_finding():
    found = check_screens([read_fact(each) for each in turn()], raise_key_error)
    broken = {name for each in found for name in each.broken}
    judged = {"screen.replay", "screen.refs", "screen.nothing-guessed"}
    assert broken == judged | {"screen.facts-shown", "screen.order"}
    assert "KeyError" in found[0].findings[0].message


@pytest.mark.requirement("conformance.projectors")
def test_fixtures_catch_a_broken_projector_too():
    cases = [case for case in fixture_cases() if case.id == "fixture.tool-success.screen"]
    [result] = case_results(cases, to_reducer(project_twice))
    assert "screen.replay" in result.broken


def case_that(run: Callable[[Reducer], list[Finding]]) -> Case:
    return Case(
        id="case",
        title="A case",
        source="here",
        requirements=("screen.replay",),
        level="projection",
        run=run,
    )


@pytest.mark.requirement("conformance.time")
def test_a_case_that_takes_too_long_or_raises_is_a_finding():
    def endless(_: Reducer) -> list[Finding]:
        while not stop:
            pass
        return []

    def raise_value_error(_: Reducer) -> list[Finding]:
        raise ValueError("no state")

    stop: list[bool] = []
    [slow, raised] = case_results([case_that(endless), case_that(raise_value_error)], seconds=0.1)
    stop.append(True)
    assert [each.message for each in slow.findings] == ["took more than 0.1 s"]
    assert [each.message for each in raised.findings] == ["ValueError: no state"]
    assert slow.broken == raised.broken == {"screen.replay"}


@pytest.mark.requirement("conformance.recorded")
@pytest.mark.parametrize("seed", range(4))
def test_whatever_a_recording_holds_it_is_judged(seed: int):
    source = random.Random(seed)
    facts = [*spoil_facts(source, build_stream(seed, hostile=True)), *build_random_facts(seed, 60)]
    html_report(try_recorded(facts))
    lines = [msgspec.json.encode(write_fact(fact)) for fact in facts]
    cut = [
        line[: source.randrange(1, len(line))] if source.random() < 0.1 else line for line in lines
    ]
    assert "stream.schema" in try_recorded(cut).failed


@pytest.mark.requirement("screen.refs")
def test_a_ref_in_a_message_that_was_taken_back_is_not_lost():
    asset = {"type": "asset", "kind": "image", "ref": "asset:1"}
    submitted = event(0, "turn.submitted", {"input": [asset]})
    rows = [{"messageId": "m", "role": "assistant", "text": "Reading."}]
    snapshot = event(8, "messages.snapshot", {"messages": rows})
    assert try_recorded([submitted, *turn(), snapshot]).failed == set()


@pytest.mark.requirement("conformance.discreet")
def test_half_a_secret_is_not_shown_either():
    text = f"{'word ' * 9}{SECRET}"
    events = [
        event(1, "turn.started"),
        event(2, "model.delta", {"delta": text}, messageId="m"),
        event(3, "model.completed", {"text": f"{text}!"}, messageId="m"),
        event(4, "turn.completed"),
    ]
    report = try_recorded(events)
    assert report.failed == {"stream.secrets", "screen.final-text"}
    assert SECRET[:10] not in msgspec.json.encode(report).decode()
