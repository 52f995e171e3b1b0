"""A projection that was stopped goes on as if it had never stopped."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import Fact
from factwire.projection import (
    STATE_VERSION,
    Projection,
    UnreadableCheckpoint,
    decode_state,
    encode_state,
    thread_read_model,
)
from tests.projection.fact_maker import THREAD, FactMaker
from tests.projection.generated_streams import THREAD as STREAM_THREAD
from tests.projection.generated_streams import build_stream

TURN = {"turnId": "t"}
PART = {"turnId": "t", "messageId": "m", "partId": "p"}
Tell = Callable[..., Fact]


def unclosed_tool(tell: Tell) -> list[Fact]:
    return [
        tell("turn.started", **TURN),
        tell("tool.started", **TURN, toolCallId="c"),
        tell("turn.completed", **TURN),
        tell("run.finished", **TURN),
    ]


def unclosed_tool_of_a_turn_that_is_cancelled_afterwards(tell: Tell) -> list[Fact]:
    return [
        tell("tool.started", **TURN, toolCallId="c"),
        tell("turn.completed", **TURN),
        tell("turn.canceled", **TURN),
    ]


def tools_that_began_anew(tell: Tell) -> list[Fact]:
    return [
        tell("tool.started", **TURN, toolCallId="a"),
        tell("tool.started", **TURN, toolCallId="b"),
        tell("tool.result", **TURN, toolCallId="a"),
        tell("tool.started", **TURN, toolCallId="a"),
        tell("turn.completed", **TURN),
    ]


def tools_that_are_cancelled(tell: Tell) -> list[Fact]:
    return [*tools_that_began_anew(tell)[:-1], tell("turn.canceled", **TURN)]


def optimistic_id_that_nobody_used(tell: Tell) -> list[Fact]:
    return [
        tell("turn.submitted", **TURN, prompt="x", optimisticId="tmp"),
        tell("model.delta", **TURN, messageId="tmp", delta="x"),
    ]


def optimistic_id_that_was_used(tell: Tell) -> list[Fact]:
    return [
        tell("model.delta", messageId="tmp", role="user", delta="x"),
        tell("turn.submitted", **TURN, prompt="x", optimisticId="tmp", payload={"messageId": "m"}),
        tell("model.delta", **TURN, messageId="tmp", delta="y"),
    ]


def message_that_got_its_turn_later(tell: Tell) -> list[Fact]:
    return [
        tell("model.delta", messageId="m", delta="x"),
        tell("turn.submitted", turnId="t", messageId="m", prompt="hi"),
        tell("model.delta", turnId="other", messageId="m", delta="y"),
    ]


def text_that_names_no_turn(tell: Tell) -> list[Fact]:
    return [
        tell("model.delta", turnId="one", messageId="m", partId="p", delta="a"),
        tell("model.delta", messageId="m", partId="p", delta="b"),
        tell("model.delta", turnId="two", messageId="m", partId="p", delta="c"),
        tell("model.delta", messageId="m", partId="p", delta="d"),
    ]


def ids_in_the_payload(tell: Tell) -> list[Fact]:
    return [
        tell(
            "model.delta", payload={"turnId": turn, "messageId": "m", "partId": "p", "delta": turn}
        )
        for turn in ("one", "two", "one")
    ]


def part_id_like_an_own_one(tell: Tell) -> list[Fact]:
    return [
        tell("model.delta", **TURN, messageId="m", delta="a"),
        tell("model.delta", **TURN, messageId="m", partId="m:textual", delta="b"),
        tell("model.delta", **TURN, messageId="m", delta="c"),
    ]


def messages_that_were_opened_again(tell: Tell) -> list[Fact]:
    return [
        tell("model.delta", **PART, delta="a"),
        tell("model.delta", **TURN, messageId="n", partId="p", delta="b"),
        tell("model.completed", **PART, text="a"),
        tell("model.delta", **PART, delta="c"),
        tell("turn.completed", **TURN),
    ]


def texts_that_wait_for_a_repair(tell: Tell) -> list[Fact]:
    return [
        tell("stream.gap.detected"),
        tell("model.completed", **PART, text="one"),
        tell("model.completed", **TURN, messageId="n", partId="p", text="two"),
        tell("history.window.loaded", messages=[{"messageId": "old", "text": "old"}]),
        tell("stream.repair.completed"),
    ]


def body_that_python_takes_for_equal(tell: Tell) -> list[Fact]:
    fact = tell("run.status", value=1)
    twin = msgspec.structs.replace(fact, payload={"value": True})
    return [fact, tell("run.status"), twin]


def body_in_another_order(tell: Tell) -> list[Fact]:
    fact = tell("run.status", a=1, b=2)
    return [fact, tell("run.status"), msgspec.structs.replace(fact, payload={"b": 2, "a": 1})]


def superseded_message(tell: Tell) -> list[Fact]:
    return [
        tell("model.delta", **TURN, messageId="a", delta="x"),
        tell("model.completed", **TURN, messageId="b", text="new", supersedes=["a"]),
        tell("model.delta", **TURN, messageId="a", delta="y"),
        tell("turn.completed", **TURN),
    ]


def hole_below_zero(tell: Tell) -> list[Fact]:
    return [
        tell("run.status", sequence=-9),
        tell("run.status", sequence=-7),
        tell("run.status", sequence=-8),
    ]


def threads_of_children(tell: Tell) -> list[Fact]:
    child = FactMaker(thread="")
    ids = {"parentThreadId": THREAD, "subagentId": "s", "taskId": "k", "turnId": "inner"}
    nameless = tell("run.status", sequence=3)
    return [
        tell("turn.started", sequence=1, **TURN),
        child("model.delta", **ids, delta="a"),
        msgspec.structs.replace(nameless, thread_id=None),
        child("model.delta", sequence=2, **ids, delta="b"),
        tell("turn.completed", sequence=2, **TURN),
    ]


HARD = (
    unclosed_tool,
    unclosed_tool_of_a_turn_that_is_cancelled_afterwards,
    tools_that_began_anew,
    tools_that_are_cancelled,
    optimistic_id_that_nobody_used,
    optimistic_id_that_was_used,
    message_that_got_its_turn_later,
    text_that_names_no_turn,
    ids_in_the_payload,
    part_id_like_an_own_one,
    messages_that_were_opened_again,
    texts_that_wait_for_a_repair,
    body_that_python_takes_for_equal,
    body_in_another_order,
    superseded_message,
    hole_below_zero,
    threads_of_children,
)


@pytest.mark.requirement("projection.checkpoint.exact")
@pytest.mark.parametrize("build_facts", HARD, ids=lambda build_facts: build_facts.__name__)
def test_a_restored_projection_remembers_whatever_the_next_fact_needs(
    build_facts: Callable[[Tell], list[Fact]],
):
    facts = build_facts(FactMaker())
    straight = Projection(THREAD)
    sent = [straight.apply(fact) for fact in facts]
    for place in range(1, len(facts)):
        stopped = Projection(THREAD)
        stopped.apply_all(facts[:place])
        restored = Projection.restore(stopped.checkpoint())
        assert [restored.apply(fact) for fact in facts[place:]] == sent[place:]
        assert restored.snapshot() == straight.snapshot()


@pytest.mark.requirement("projection.checkpoint.exact")
def test_a_checkpoint_of_a_restored_projection_is_the_same_checkpoint():
    projection = Projection(STREAM_THREAD)
    projection.apply_all(build_stream(3)[:70])
    data = projection.checkpoint()
    assert Projection.restore(data).checkpoint() == data


@pytest.mark.requirement("projection.checkpoint.exact")
def test_a_projection_that_was_repaired_by_a_read_model_is_restored_with_it():
    tell = FactMaker()
    seen = Projection(THREAD)
    seen.apply_all([tell("turn.started", **TURN), tell("action.required", **TURN, actionId="a")])
    model = Projection.from_read_model(thread_read_model(seen.state))
    more = [tell("action.resolved", **TURN, actionId="a"), tell("turn.completed", **TURN)]
    restored = Projection.restore(model.checkpoint())
    model.apply_all(more)
    restored.apply_all(more)
    assert restored.snapshot() == model.snapshot()


@pytest.mark.requirement("projection.checkpoint.exact")
@pytest.mark.parametrize("number", [2**63, 2**64, 10**30, -(10**30)])
def test_a_checkpoint_holds_whole_numbers_of_any_size(number: int):
    tell = FactMaker()
    projection = Projection(THREAD)
    projection.apply_all(
        [
            tell("tool.args", **TURN, toolCallId="c", args={"number": number}),
            tell("cost.recorded", inputTokens=number),
            tell("job.created", jobId="j", totalItems=number),
            tell("process.output", processId="p", offset=number, text="x"),
            tell("run.status", queuedTurnCount=number),
        ]
    )
    assert Projection.restore(projection.checkpoint()).snapshot() == projection.snapshot()


@pytest.mark.requirement("projection.checkpoint.refused")
@pytest.mark.parametrize(
    "data",
    [b"", b"\xc1", b"{}", msgspec.msgpack.encode({}), msgspec.msgpack.encode([1, 2])],
    ids=["nothing", "no msgpack", "JSON", "an empty object", "a list"],
)
def test_what_is_no_checkpoint_is_refused_by_name(data: bytes):
    with pytest.raises(UnreadableCheckpoint) as refused:
        Projection.restore(data)
    assert refused.value.code == "unreadable_checkpoint"


def fields_of_a_checkpoint() -> dict[str, Any]:
    projection = Projection(THREAD)
    tell = FactMaker()
    projection.apply_all([tell("turn.started", **TURN), tell("run.status", sequence=4)])
    return msgspec.msgpack.decode(projection.checkpoint())


WRONG_PARTS: list[tuple[str, Any]] = [
    ("version", "factwire-projection/v0"),
    ("version", 5),
    ("state", b"{}"),
    ("state", b"[" * 5_000),
    ("lanes", []),
    ("lanes", [{}]),
    ("ids", []),
    ("ids", [["a"]]),
    ("bodies", [{}, {}, {}]),
]


@pytest.mark.requirement("projection.checkpoint.refused")
@pytest.mark.parametrize(("field", "value"), WRONG_PARTS)
def test_a_checkpoint_with_a_wrong_part_is_refused_by_name(field: str, value: object):
    with pytest.raises(UnreadableCheckpoint):
        Projection.restore(msgspec.msgpack.encode({**fields_of_a_checkpoint(), field: value}))


@pytest.mark.requirement("projection.checkpoint.refused")
@pytest.mark.parametrize("version", ["factwire-projection/v1", STATE_VERSION, f"{STATE_VERSION}/0"])
def test_a_checkpoint_of_another_shape_is_refused_by_its_version(version: str):
    fields = fields_of_a_checkpoint()
    assert fields["version"].startswith(f"{STATE_VERSION}/")
    for other in ({**fields, "version": version}, {"version": version, "state": "another shape"}):
        with pytest.raises(UnreadableCheckpoint, match=f"got {version}$") as refused:
            Projection.restore(msgspec.msgpack.encode(other))
        assert refused.value.code == "unreadable_checkpoint"


@pytest.mark.requirement("projection.checkpoint.refused")
def test_a_checkpoint_that_holds_what_is_no_fact_is_refused_by_name():
    fields = fields_of_a_checkpoint()
    fields["lanes"][0]["held"] = [b'{"id": 5}']
    with pytest.raises(UnreadableCheckpoint):
        Projection.restore(msgspec.msgpack.encode(fields))


@pytest.mark.fuzz
@pytest.mark.requirement("projection.checkpoint.refused")
@given(st.binary(max_size=60), st.integers(0, 2_000))
def test_damaged_bytes_are_refused_or_restored_and_nothing_else(noise: bytes, at: int):
    data = msgspec.msgpack.encode(fields_of_a_checkpoint())
    damaged = data[: at % len(data)] + noise + data[at % len(data) + len(noise) :]
    with suppress(UnreadableCheckpoint):
        Projection.restore(damaged).snapshot()


@pytest.mark.requirement("projection.state.decodes")
def test_a_text_in_a_snapshot_is_text_and_nothing_else():
    projection = Projection(THREAD)
    projection.apply(FactMaker()("model.delta", **PART, delta="hello"))
    snapshot = projection.snapshot()
    assert encode_state(decode_state(snapshot)) == snapshot
    with pytest.raises(msgspec.ValidationError):
        decode_state(snapshot.replace(b'"text":"hello"', b'"text":["hello"]'))
