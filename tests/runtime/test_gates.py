"""The append gates, each in a table of what passes and what does not."""

from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import Fact
from factwire.projection import Projection
from factwire.runtime import FactScope, GateRefused, Gates, Mint, TurnAlreadyActive

MINT = Mint("test")
SCOPE = FactScope(session_id="s", thread_id="t", turn_id="u")


def build_fact(event_class: str, **fields: object) -> Fact:
    turn = fields.pop("turn", "u")
    scope = SCOPE.within(turn_id=turn if isinstance(turn, str) else None)
    payload = cast("dict[str, Any]", fields.pop("payload", {}))
    return MINT.fact(scope, event_class, payload, **fields)


def start_tool(call: str = "c") -> Fact:
    return build_fact("tool.started", tool_call_id=call, payload={"toolName": "x"})


def result(call: str = "c") -> Fact:
    return build_fact("tool.result", tool_call_id=call)


def require_action(call: str | None = "c", kind: str = "tool_approval") -> Fact:
    payload = {"actionType": kind}
    return build_fact("action.required", action_id="a", tool_call_id=call, payload=payload)


def resolve_action(decision: str) -> Fact:
    return build_fact("action.resolved", action_id="a", payload={"decision": decision})


CANCELLED_CALL = build_fact(
    "tool.failed", tool_call_id="c", payload={"failureCategory": "cancelled"}
)
CANCELLED_ACTION = build_fact("action.cancelled", action_id="a")


def code_of(*facts: Fact) -> str | None:
    gates = Gates()
    for fact in facts[:-1]:
        gates.feed(fact)
    try:
        gates.feed(facts[-1])
    except GateRefused as error:
        return error.code
    return None


@pytest.mark.requirement("runtime.gate.schema")
@pytest.mark.parametrize(
    ("fact", "code"),
    [
        (build_fact("tool.started"), "missing_scope_id"),
        (build_fact("command.exited", tool_call_id="c"), "missing_scope_id"),
        (build_fact("tool.started", tool_call_id="c", payload={"toolName": 5}), "schema_mismatch"),
        (build_fact("run.status"), None),
        (build_fact("acme.unheard"), None),
    ],
)
def test_a_fact_must_have_what_its_class_needs(fact: Fact, code: str | None):
    assert code_of(fact) == code


@pytest.mark.requirement("runtime.gate.sequence")
@pytest.mark.parametrize(
    ("sequences", "code"),
    [((5, 6), None), ((5, 7), "sequence_gap"), ((5, 5), "sequence_gap"), ((None, 9), None)],
)
def test_stated_sequences_rise_by_one(sequences: tuple[int | None, int], code: str | None):
    facts = [build_fact("run.status", sequence=sequence) for sequence in sequences]
    assert code_of(*facts) == code


@pytest.mark.requirement("runtime.gate.tool")
@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ([start_tool(), result()], None),
        ([result()], "tool_not_open"),
        ([start_tool(), result(), result()], "tool_not_open"),
        ([start_tool(), start_tool()], "tool_already_open"),
        ([start_tool(), result(), start_tool()], None),
        (
            [build_fact("tool.args.delta", tool_call_id="c", payload={"delta": "x"})],
            "tool_not_open",
        ),
        ([start_tool("other"), build_fact("tool.progress", tool_call_id="c")], "tool_not_open"),
        ([start_tool(), build_fact("tool.failed", tool_call_id="c")], None),
    ],
)
def test_only_a_started_tool_goes_on_and_ends(facts: list[Fact], code: str | None):
    assert code_of(*facts) == code


@pytest.mark.requirement("runtime.gate.approval")
@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ([require_action(), result()], "approval_pending"),
        ([require_action(), resolve_action("approved"), result()], None),
        ([require_action(), resolve_action("denied"), result()], "approval_denied"),
        (
            [require_action(), build_fact("action.expired", action_id="a"), result()],
            "approval_denied",
        ),
        (
            [require_action(), build_fact("action.cancelled", action_id="a"), result()],
            "approval_denied",
        ),
        (
            [
                require_action(),
                resolve_action("denied"),
                build_fact("tool.failed", tool_call_id="c"),
            ],
            None,
        ),
        ([require_action(), require_action()], "action_already_open"),
        ([resolve_action("approved")], "action_not_open"),
        (
            [require_action(), resolve_action("approved"), resolve_action("denied")],
            "action_already_decided",
        ),
        (
            [require_action(), resolve_action("approved"), resolve_action("approve")],
            "action_not_open",
        ),
        ([require_action(), CANCELLED_CALL, CANCELLED_ACTION], None),
        ([require_action(), CANCELLED_CALL, resolve_action("approved")], "action_already_decided"),
        ([require_action(), CANCELLED_CALL, start_tool(), result()], None),
        ([require_action(None), result()], None),
        ([require_action(kind="structured_input"), resolve_action("denied"), result()], None),
        ([require_action(kind="clarification"), result()], None),
        ([require_action(kind="never_heard"), result()], "approval_pending"),
    ],
)
def test_no_output_without_a_yes(facts: list[Fact], code: str | None):
    assert code_of(start_tool(), *facts) == code


@pytest.mark.requirement("runtime.gate.turn")
@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ([build_fact("turn.started", turn="v")], "turn_already_active"),
        ([build_fact("turn.completed"), build_fact("turn.started", turn="v")], None),
        ([build_fact("turn.completed"), build_fact("turn.started")], "turn_ended"),
        ([build_fact("turn.completed"), build_fact("turn.failed")], "turn_ended"),
        (
            [build_fact("turn.completed"), build_fact("model.delta", payload={"delta": "x"})],
            "turn_ended",
        ),
        ([build_fact("turn.completed"), start_tool()], "turn_ended"),
        ([build_fact("turn.completed"), build_fact("snapshot.updated")], None),
    ],
)
def test_one_turn_at_a_time_and_nothing_after_its_end(facts: list[Fact], code: str | None):
    assert code_of(build_fact("turn.started"), *facts) == code


@pytest.mark.requirement("runtime.gate.turn")
def test_the_refusal_of_a_second_turn_names_the_first():
    gates = Gates().after_batch([build_fact("turn.started")])
    with pytest.raises(TurnAlreadyActive, match="turn u is active"):
        gates.feed(build_fact("turn.started", turn="v"))


@pytest.mark.requirement("runtime.gate.atomic")
def test_a_refused_batch_changes_nothing():
    gates = Gates().after_batch([build_fact("turn.started"), start_tool()])
    before = {name: getattr(gates, name) for name in Gates.__slots__}
    copies = {name: str(value) for name, value in before.items()}
    with pytest.raises(GateRefused):
        gates.after_batch(
            [result(), require_action(), build_fact("turn.completed"), start_tool("late")]
        )
    assert {name: str(getattr(gates, name)) for name in Gates.__slots__} == copies


CLASSES = [
    *("tool.started", "tool.result", "tool.failed", "tool.output.delta", "model.delta"),
    *("action.required", "action.resolved", "action.expired", "turn.started", "turn.completed"),
]


@st.composite
def accepted_facts(draw: st.DrawFn) -> list[Fact]:
    """Facts that passed the gates one after the other."""
    gates, found = Gates(), list[Fact]()
    for _ in range(draw(st.integers(1, 40))):
        name, call = draw(st.sampled_from(CLASSES)), draw(st.sampled_from(["c", "d"]))
        # A request is about one call, which may ask more than once.
        action = f"{call}{draw(st.sampled_from('ab'))}" if name.startswith("action.") else None
        fact = build_fact(
            name,
            turn=draw(st.sampled_from(["u", "v"])),
            tool_call_id=call,
            action_id=action,
            payload={
                "delta": "x",
                "decision": draw(st.sampled_from(["approved", "denied"])),
                "failureCategory": draw(st.sampled_from(["timeout", "cancelled"])),
            },
        )
        try:
            gates.feed(fact)
        except GateRefused:
            continue
        found.append(msgspec.structs.replace(fact, sequence=len(found) + 1))
    return found


@pytest.mark.requirement("runtime.gate.rebuilt")
@given(facts=accepted_facts())
def test_gates_follow_from_the_state_alone(facts: list[Fact]):
    gates, projection = Gates(), Projection()
    for fact in facts:
        gates.feed(msgspec.structs.replace(fact, sequence=None))
        projection.apply(fact)
    rebuilt = Gates.of(projection.state)
    assert rebuilt.active_turn == gates.active_turn
    assert set(rebuilt.open_actions) == set(gates.open_actions)
    active = {call for call, turn in gates.open_tools.items() if turn == gates.active_turn}
    assert set(rebuilt.open_tools) == active or gates.active_turn is None
    if gates.active_turn is not None:
        assert rebuilt.denied & active == gates.denied & active


LATE_ANSWERS = [
    build_fact(name, turn=turn, action_id="a", payload={"decision": decision})
    for name in ("action.resolved", "action.cancelled", "action.expired", "action.updated")
    for turn in ("u", None)
    for decision in ("approved", "denied")
]


@pytest.mark.requirement("runtime.gate.rebuilt")
@pytest.mark.parametrize("end", ["turn.completed", "turn.failed", "turn.canceled", "tool.failed"])
@pytest.mark.parametrize("first", [None, "approved", "denied"])
def test_a_late_answer_is_judged_alike_before_and_after_a_restart(end: str, first: str | None):
    facts = [build_fact("turn.started"), start_tool(), require_action()]
    facts += [] if first is None else [resolve_action(first)]
    facts.append(CANCELLED_CALL if end == "tool.failed" else build_fact(end))
    live, projection = Gates(), Projection()
    for place, fact in enumerate(facts, 1):
        live.feed(fact)
        projection.apply(msgspec.structs.replace(fact, sequence=place))
    for late in LATE_ANSWERS:
        found = judge(live.copy(), late), judge(Gates.of(projection.state), late)
        assert found[0] == found[1], (late.event_class, late.turn_id, late.payload)


def judge(gates: Gates, fact: Fact) -> str | None:
    try:
        gates.feed(fact)
    except GateRefused as error:
        return error.code
    return None


@pytest.mark.requirement("runtime.gate.rebuilt")
@pytest.mark.parametrize(("decision", "code"), [("denied", "approval_denied"), ("approved", None)])
def test_a_decision_about_an_open_call_holds_after_a_restart(decision: str, code: str | None):
    projection = Projection()
    facts = [build_fact("turn.started"), start_tool(), require_action(), resolve_action(decision)]
    for place, fact in enumerate(facts, 1):
        projection.apply(msgspec.structs.replace(fact, sequence=place))
    assert judge(Gates.of(projection.state), result()) == code
