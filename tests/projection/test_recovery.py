"""Recovery from a read model: the same screen, from any place on, and no text whole that is not."""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import Fact, decode_fact
from factwire.projection import (
    Projection,
    ProjectionState,
    ThreadReadModel,
    project,
    read_thread_model,
    thread_read_model,
)
from factwire.projection.limits import READ_MODEL_MESSAGES, READ_MODEL_TEXT_CHARACTERS
from factwire.projection.messages import TextPart
from tests.projection.fact_maker import THREAD, FactMaker, WatchedProjection, as_json, watch_facts
from tests.projection.generated_streams import build_stream

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "streams"
STREAMS = sorted(path.stem for path in FOLDER.glob("*.ndjson"))

every_stream = pytest.mark.parametrize("name", STREAMS)


@cache
def facts_of(name: str) -> tuple[Fact, ...]:
    lines = (FOLDER / f"{name}.ndjson").read_bytes().splitlines()
    return tuple(decode_fact(line) for line in lines)


def send(state: ProjectionState) -> ThreadReadModel:
    """The read model of a state, as it arrives on the other side of a wire."""
    return read_thread_model(msgspec.json.encode(thread_read_model(state)))


def places_of(facts: Sequence[Fact]) -> Iterator[int]:
    """Every prefix of a stream; of one with hundreds of facts, some sixty."""
    yield from range(1, len(facts) + 1, max(1, len(facts) // 64))


def facts_after(
    facts: Sequence[Fact], place: int, cursor: int | None, thread: str | None
) -> list[Fact]:
    """What a reader gets that takes up after the cursor: all that is newer, whenever it came."""
    found: list[Fact] = []
    for index, fact in enumerate(facts):
        own = fact.thread_id in (None, thread) and fact.sequence is not None
        newer = own and cursor is not None and (fact.sequence or 0) > cursor
        if newer or (index >= place and not own):
            found.append(fact)
    return found


ARRIVAL_CODES = ("conflicting_fact", "sequence_conflict", "foreign_thread", "window_overflow")
"""Remarks of a reader about how facts came to it; another reader has others."""


def shown_by(state: ProjectionState) -> dict[str, Any]:
    """All that a read model carries of a state, but for remarks about how facts arrived."""
    model = as_json(thread_read_model(state))
    for name in ("incidents", "diagnostics"):
        model[name] = [row for row in model[name] if row["code"] not in ARRIVAL_CODES]
    return model


def final_texts(state: ProjectionState) -> dict[tuple[str | None, str, str], str]:
    """The texts that a state shows as whole."""
    return {
        (message.turn_id, message.message_id, part.part_id): str(part.text)
        for message in state.messages
        for part in message.parts
        if isinstance(part, TextPart) and part.state == "final"
    }


def live_state(facts: Sequence[Fact]) -> ProjectionState:
    """What a screen shows that got all facts as they came."""
    projection = Projection()
    projection.apply_all(facts)
    return projection.state


@pytest.mark.requirement("projection.read-model.recovery")
@every_stream
def test_a_read_model_of_any_prefix_and_the_rest_come_to_the_same_screen(name: str):
    facts = facts_of(name)
    whole, prefix = live_state(facts), Projection()
    places = set(places_of(facts))
    for place, fact in enumerate(facts, 1):
        prefix.apply(fact)
        if place not in places:
            continue
        model = send(prefix.state)
        screen = Projection.from_read_model(model)
        assert shown_by(screen.state) == shown_by(prefix.state), fact.id
        assert final_texts(screen.state).items() <= final_texts(prefix.state).items(), fact.id
        screen.apply_all(facts_after(facts, place, model.event_cursor, model.thread_id))
        assert shown_by(screen.state) == shown_by(whole), fact.id
        assert final_texts(screen.state) == final_texts(whole), fact.id


@pytest.mark.requirement("projection.read-model.recovery")
@pytest.mark.parametrize("seed", range(6))
def test_the_law_holds_for_generated_streams(seed: int):
    facts = build_stream(seed)
    whole, prefix = live_state(facts), Projection()
    for place, fact in enumerate(facts, 1):
        prefix.apply(fact)
        if place % 17:
            continue
        model = send(prefix.state)
        screen = Projection.from_read_model(model)
        assert shown_by(screen.state) == shown_by(prefix.state), fact.id
        screen.apply_all(facts_after(facts, place, model.event_cursor, model.thread_id))
        assert shown_by(screen.state) == shown_by(whole), fact.id


TURN = {"turnId": "turn"}
PART = {**TURN, "messageId": "m", "partId": "p"}
CALL = {**TURN, "toolCallId": "call"}


def mid_answer() -> list[Fact]:
    """A turn with something on every surface, in the middle of its answer."""
    tell = FactMaker()
    queued = {"queuedTurns": [{"queuedTurnId": "next", "prompt": "Then?"}]}
    return [
        tell("turn.submitted", **TURN, prompt="Go."),
        tell("turn.started", **TURN),
        tell("task.started", **TURN, taskId="task", objective="All of it"),
        tell("subagent.started", **TURN, taskId="task", subagentId="sub", name="Ada"),
        tell("artifact.created", **TURN, artifactId="art", kind="code", contentRef="artifact:1"),
        tell("evidence.changed", **TURN, evidenceId="evd", summaryRef="evidence:1"),
        tell("review.completed", **TURN, evidenceId="evd", reviewId="rev", verdict="pass"),
        tell("runtime.error", **TURN, payload={"code": "odd", "message": "Odd."}),
        tell("queue.changed", payload=queued),
        tell("tool.started", **CALL, toolName="shell"),
        tell("tool.output.delta", **CALL, delta="line"),
        tell("tool.result", **CALL, outputRef="output:1", refIds=["output:2"]),
        tell("model.delta", **PART, delta="Half of "),
        tell("action.required", **TURN, actionId="act", prompt="Sure?"),
    ]


@pytest.mark.requirement("projection.read-model.recovery")
def test_every_surface_of_a_first_screen_comes_back():
    state = project(mid_answer())
    screen = Projection.from_read_model(send(state)).state
    for surface in ("messages", "tasks", "artifacts", "evidence", "actions"):
        assert as_json(getattr(screen, surface)) == as_json(getattr(state, surface)), surface
    assert as_json(screen.subagents.threads) == as_json(state.subagents.threads)
    assert screen.subagents.active_thread_ids == ["sub"]
    assert as_json(screen.team_workbench.roster_nodes) == as_json(state.team_workbench.roster_nodes)
    assert as_json(screen.team_workbench.work_items) == as_json(state.team_workbench.work_items)
    assert as_json(screen.queue.turns) == as_json(state.queue.turns)
    tool = screen.tools["call"]
    assert (tool.state, tool.output_ref, tool.ref_ids) == (
        "output-available",
        "output:1",
        ["output:2"],
    )
    assert (tool.output_characters, tool.output_truncated) == (4, True)
    assert [row.code for row in screen.diagnostics.items.values()] == ["odd"]


def restore_cut(facts: list[Fact], **changes: Any) -> WatchedProjection:
    """A screen from a read model whose last text was changed on its way."""
    wire = as_json(thread_read_model(project(facts)))
    part = next(row for row in wire["messages"][-1]["parts"] if row["type"] == "text")
    for name, value in changes.items():
        part[name] = value
    kept = {name: value for name, value in part.items() if value is not None}
    wire["messages"][-1]["parts"] = [kept]
    return WatchedProjection(Projection.from_read_model(read_thread_model(wire)))


def last_text(state: ProjectionState) -> tuple[str, str, str]:
    message = state.messages[-1]
    (part,) = [part for part in message.parts if isinstance(part, TextPart)]
    return message.status, part.state, str(part.text)


def answer(*pieces: str, final: bool = False) -> list[Fact]:
    tell = FactMaker()
    found = [tell("turn.started", **TURN)]
    found += [tell("model.delta", **PART, delta=piece) for piece in pieces]
    if final:
        found.append(tell("model.completed", **PART, text="".join(pieces)))
    return found


@pytest.mark.requirement("projection.read-model.whole-text")
@given(st.text(min_size=1, max_size=40), st.data())
def test_a_text_that_was_cut_on_its_way_is_never_shown_as_whole(text: str, data: st.DataObject):
    end = data.draw(st.integers(0, len(text) - 1))
    is_final = data.draw(st.booleans())
    facts = answer(text, final=is_final)
    seen = restore_cut(facts, text=text[:end])
    assert last_text(seen.state) == ("stale", "stale", text[:end])
    tell = FactMaker(len(facts) + 1)
    seen.apply(tell("model.delta", **PART, delta="more"))
    assert last_text(seen.state) == ("stale", "stale", text[:end] + "more")
    seen.apply(tell("model.completed", **PART, text=text + "more"))
    assert last_text(seen.state) == ("final", "final", text + "more")


@pytest.mark.requirement("projection.read-model.whole-text")
@pytest.mark.parametrize("is_final", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {"digest": None},
        {"length": None},
        {"length": None, "digest": None},
        {"length": 7},
        {"digest": "blake2b:00"},
        {"digest": "other:1"},
    ],
)
def test_a_text_without_its_measure_is_not_known_to_be_whole(
    changes: dict[str, Any], is_final: bool
):
    facts = answer("Half of ", final=is_final)
    seen = restore_cut(facts, **changes)
    assert last_text(seen.state) == ("stale", "stale", "Half of ")
    seen.apply(FactMaker(len(facts) + 1)("turn.completed", **TURN))
    assert last_text(seen.state) == ("stale", "stale", "Half of ")


@pytest.mark.requirement("projection.read-model.whole-text")
def test_a_text_that_is_whole_so_far_goes_on_and_ends_with_its_turn():
    seen = restore_cut(answer("Half of ", "it, "))
    assert last_text(seen.state) == ("streaming", "streaming", "Half of it, ")
    tell = FactMaker(4)
    seen.apply(tell("model.delta", **PART, delta="all."))
    seen.apply(tell("turn.completed", **TURN))
    assert last_text(seen.state) == ("final", "final", "Half of it, all.")


@pytest.mark.requirement("projection.read-model.whole-text")
@pytest.mark.parametrize(
    ("own", "stated", "shown"),
    [
        (("All", " of it."), "All", ("final", "final", "All of it.")),
        (("All",), "All of it.", ("final", "final", "All of it.")),
        (("All",), "All of", ("stale", "stale", "All of")),
        (("All of",), "All", ("stale", "stale", "All of")),
    ],
)
def test_a_repair_takes_the_text_that_matches_the_measure(
    own: tuple[str, ...], stated: str, shown: tuple[str, str, str]
):
    newer = send(project(answer("All", " of", " it.", final=True)))
    assert newer.messages is not None
    wire = as_json(newer)
    wire["messages"][0]["parts"][0]["text"] = stated
    wire["eventCursor"] = 9
    seen = watch_facts(answer(*own))
    seen.projection.repair(read_thread_model(wire))
    assert last_text(seen.state) == shown


@pytest.mark.requirement("projection.read-model.whole-text")
def test_facts_that_were_missing_are_still_missed_after_a_recovery():
    tell = FactMaker()
    facts = [
        tell("turn.started", **TURN),
        tell("model.delta", **PART, delta="Half "),
        tell("stream.gap.detected", **TURN),
    ]
    model = send(project(facts))
    assert model.doubts == ["gap_reported"]
    screen = Projection.from_read_model(model)
    screen.apply(tell("model.delta", **PART, delta="of it"))
    screen.apply(tell("turn.completed", **TURN))
    assert screen.state.hydration.status == "stale"
    assert last_text(screen.state) == ("stale", "stale", "Half of it")


@pytest.mark.requirement("projection.read-model.extensions")
def test_fields_that_are_not_known_survive_a_recovery():
    wire = as_json(thread_read_model(project(mid_answer())))
    model = read_thread_model({**wire, "mood": {"is": "good"}})
    screen = Projection.from_read_model(model)
    assert send(screen.state).extensions == {"mood": {"is": "good"}}
    assert send(Projection.from_read_model(send(screen.state)).state) == send(screen.state)


@pytest.mark.requirement("projection.read-model.bounded")
def test_a_long_conversation_is_carried_from_its_end_and_what_is_left_out_is_counted():
    tell, count = FactMaker(), READ_MODEL_MESSAGES + 3
    long_text = "x" * (READ_MODEL_TEXT_CHARACTERS + 1)
    facts = [
        tell("model.completed", turnId=f"turn-{n}", messageId=f"m-{n}", text="Yes.")
        for n in range(count)
    ]
    facts.append(tell("model.completed", turnId="last", messageId="last", text=long_text))
    model = send(project(facts))
    assert model.messages is not None
    assert (len(model.messages), model.earlier_messages) == (READ_MODEL_MESSAGES, 4)
    screen = Projection.from_read_model(model).state
    assert [message.message_id for message in screen.messages][:1] == ["m-4"]
    assert last_text(screen) == ("stale", "stale", long_text[:-1])
    assert send(screen).earlier_messages == 4


@pytest.mark.requirement("projection.read-model.recovery")
def test_a_read_model_stays_as_it_was_when_the_state_goes_on():
    projection = Projection(THREAD)
    projection.apply_all(mid_answer())
    model = thread_read_model(projection.state)
    before = as_json(model)
    tell = FactMaker(15)
    for fact in (
        tell("model.delta", **PART, delta="it."),
        tell("task.completed", **TURN, taskId="task"),
        tell("artifact.updated", **TURN, artifactId="art", title="New"),
        tell("action.resolved", **TURN, actionId="act", decision="approved"),
    ):
        projection.apply(fact)
    assert as_json(model) == before
