"""The lifecycle verifier: every code, the rules around them, and the laws of incremental checks."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import (
    VERIFIER_MODES,
    VIOLATION_CODES,
    Fact,
    FactError,
    LifecycleError,
    LifecycleVerifier,
    Violation,
    read_fact,
    verify,
)
from tests.facts import spec
from tests.facts.samples import fact

Step = tuple[str, dict[str, Any]]

SUBJECTS: dict[str, dict[str, Any]] = {
    "tool": {"toolCallId": "x1"},
    "patch": {"payload": {"patchId": "x1"}},
    "command": {"payload": {"commandId": "x1"}},
    "test": {"payload": {"testRunId": "x1"}},
    "action": {"actionId": "x1"},
}
STARTS = {
    "tool": "tool.started",
    "patch": "patch.started",
    "command": "command.started",
    "test": "test.started",
    "action": "action.required",
}
CLOSERS = {
    "tool": ("tool.result", "tool.failed"),
    "patch": ("patch.applied", "patch.failed"),
    "command": ("command.exited",),
    "test": ("test.completed",),
    "action": ("action.resolved", "action.cancelled", "action.canceled", "action.expired"),
}
UNCLOSED = {
    "tool": "tool_unclosed_at_turn_end",
    "patch": "patch_unclosed_at_turn_end",
    "command": "command_unclosed_at_turn_end",
    "test": "test_unclosed_at_turn_end",
    "action": "action_unresolved_at_turn_end",
}
TERMINALS = ("turn.completed", "turn.failed", "turn.canceled")


def stream(*names: str, turn: str = "t1") -> list[Fact]:
    """Facts of these classes in one turn, each about the one subject of its family."""
    return [
        fact(name, number, turnId=turn, **SUBJECTS.get(name.split(".")[0], {}))
        for number, name in enumerate(names, 1)
    ]


def codes(*names: str) -> list[str]:
    return [violation.code for violation in verify(stream(*names))]


def only_violation(*names: str) -> str:
    """The one violation, which the last fact commits."""
    facts = stream(*names)
    assert verify(facts[:-1]) == []
    (violation,) = verify(facts)
    assert violation.fact_id == facts[-1].id
    return violation.code


@pytest.mark.requirement("lifecycle.codes")
def test_the_codes_are_those_of_the_specification():
    assert sorted(VIOLATION_CODES) == sorted(spec.VIOLATIONS)


@pytest.mark.requirement("lifecycle.duplicate_event_id")
def test_an_id_that_came_before_is_a_violation():
    first = fact("run.status", 1)
    assert verify([first, first]) == [
        Violation("duplicate_event_id", "fact_1", "fact_1", "this id came before")
    ]
    assert [v.code for v in verify(stream("model.delta") * 3)] == ["duplicate_event_id"] * 2


@pytest.mark.requirement("lifecycle.tool_result_without_start")
def test_a_result_needs_an_open_tool():
    assert only_violation("tool.result") == "tool_result_without_start"
    assert only_violation("tool.started", "tool.result", "tool.result") == (
        "tool_result_without_start"
    )


@pytest.mark.requirement("lifecycle.tool_failed_without_start")
def test_a_tool_that_failed_was_open():
    assert only_violation("tool.failed") == "tool_failed_without_start"


@pytest.mark.requirement("lifecycle.patch_terminal_without_start")
@pytest.mark.parametrize("name", CLOSERS["patch"])
def test_a_patch_that_ended_was_open(name: str):
    assert only_violation(name) == "patch_terminal_without_start"


@pytest.mark.requirement("lifecycle.command_output_without_start")
def test_output_comes_from_an_open_command_and_leaves_it_open():
    assert only_violation("command.output") == "command_output_without_start"
    assert codes("command.started", "command.output", "command.output", "command.exited") == []
    assert only_violation("command.started", "command.exited", "command.output") == (
        "command_output_without_start"
    )


@pytest.mark.requirement("lifecycle.command_exited_without_start")
def test_a_command_that_exited_was_open():
    assert only_violation("command.exited") == "command_exited_without_start"


@pytest.mark.requirement("lifecycle.test_completed_without_start")
def test_a_test_that_completed_was_open():
    assert only_violation("test.completed") == "test_completed_without_start"


@pytest.mark.requirement("lifecycle.action_resolved_without_request")
@pytest.mark.parametrize("name", CLOSERS["action"])
def test_an_action_that_is_closed_was_asked_for(name: str):
    assert only_violation(name) == "action_resolved_without_request"


ALREADY = {
    "tool": "tool_started_already_active",
    "patch": "patch_started_already_active",
    "command": "command_started_already_active",
    "test": "test_started_already_active",
    "action": "action_required_already_active",
}


@pytest.mark.requirement("lifecycle.tool_started_already_active")
@pytest.mark.requirement("lifecycle.patch_started_already_active")
@pytest.mark.requirement("lifecycle.command_started_already_active")
@pytest.mark.requirement("lifecycle.test_started_already_active")
@pytest.mark.requirement("lifecycle.action_required_already_active")
@pytest.mark.parametrize(("family", "code"), ALREADY.items())
def test_what_is_open_cannot_be_opened(family: str, code: str):
    assert only_violation(STARTS[family], STARTS[family]) == code


@pytest.mark.requirement("lifecycle.tool_unclosed_at_turn_end")
@pytest.mark.requirement("lifecycle.patch_unclosed_at_turn_end")
@pytest.mark.requirement("lifecycle.command_unclosed_at_turn_end")
@pytest.mark.requirement("lifecycle.test_unclosed_at_turn_end")
@pytest.mark.requirement("lifecycle.action_unresolved_at_turn_end")
@pytest.mark.parametrize("terminal", TERMINALS)
@pytest.mark.parametrize(("family", "code"), UNCLOSED.items())
def test_a_turn_does_not_end_over_what_is_open(family: str, code: str, terminal: str):
    assert only_violation(STARTS[family], terminal) == code
    for closer in CLOSERS[family]:
        assert codes(STARTS[family], closer, terminal) == []


@pytest.mark.requirement("lifecycle.unclosed-order")
def test_the_unclosed_are_reported_family_by_family_in_the_order_they_were_opened():
    facts = [
        fact("action.required", 1, turnId="t1", actionId="a1"),
        fact("test.started", 2, turnId="t1", payload={"testRunId": "r1"}),
        fact("tool.started", 3, turnId="t1", toolCallId="c2"),
        fact("command.started", 4, turnId="t1", payload={"commandId": "m1"}),
        fact("patch.started", 5, turnId="t1", payload={"patchId": "p1"}),
        fact("tool.started", 6, turnId="t1", toolCallId="c1"),
        fact("turn.completed", 7, turnId="t1"),
    ]
    assert [(v.code, v.subject) for v in verify(facts)] == [
        ("tool_unclosed_at_turn_end", "c2"),
        ("tool_unclosed_at_turn_end", "c1"),
        ("patch_unclosed_at_turn_end", "p1"),
        ("command_unclosed_at_turn_end", "m1"),
        ("test_unclosed_at_turn_end", "r1"),
        ("action_unresolved_at_turn_end", "a1"),
    ]


@pytest.mark.requirement("lifecycle.unclosed-order")
def test_the_end_of_a_turn_clears_what_was_open():
    verifier = LifecycleVerifier("collect")
    for item in stream("tool.started", "turn.completed"):
        verifier.feed(item)
    assert verifier.open_ids("t1", "tool") == ()
    again = fact("turn.completed", 9, turnId="t1")
    assert [violation.code for violation in verifier.feed(again)] == ["turn_terminal_repeated"]


FAMILIES = {
    *("tool", "file", "patch", "command", "test", "action", "model", "reasoning"),
    *("permission", "sandbox"),
}
EXECUTION = [
    *(name for name in spec.RUNTIME_CLASSES if name.split(".")[0] in FAMILIES),
    "context.resolved",
]


@pytest.mark.requirement("lifecycle.execution_after_turn_terminal")
@pytest.mark.parametrize("name", EXECUTION)
def test_execution_does_not_follow_the_end_of_its_turn(name: str):
    assert only_violation("turn.completed", name) == "execution_after_turn_terminal"


@pytest.mark.requirement("lifecycle.after-terminal")
@pytest.mark.parametrize(
    "name", [name for name in spec.RUNTIME_CLASSES if name not in (*EXECUTION, *TERMINALS)]
)
def test_everything_else_may_follow_the_end_of_a_turn(name: str):
    assert codes("turn.completed", name) == []


@pytest.mark.requirement("lifecycle.execution_after_turn_terminal")
def test_what_came_after_the_end_opens_nothing():
    verifier = LifecycleVerifier("collect")
    for item in stream("turn.completed", "tool.started"):
        verifier.feed(item)
    assert verifier.open_ids("t1", "tool") == ()


@pytest.mark.requirement("lifecycle.turn_terminal_repeated")
@pytest.mark.parametrize("first", TERMINALS)
@pytest.mark.parametrize("second", TERMINALS)
def test_a_turn_ends_once(first: str, second: str):
    facts = [fact(first, 1, turnId="t1"), fact(second, 2, turnId="t1")]
    (violation,) = verify(facts)
    assert (violation.code, violation.subject) == ("turn_terminal_repeated", "t1")


@pytest.mark.requirement("lifecycle.reopen")
@pytest.mark.parametrize("family", STARTS)
def test_what_was_closed_may_be_opened_again(family: str):
    start, closer = STARTS[family], CLOSERS[family][0]
    assert codes(start, closer, start, closer, "turn.completed") == []


@pytest.mark.requirement("lifecycle.per-turn")
def test_turns_do_not_share_what_is_open():
    facts = [
        fact("tool.started", 1, turnId="t1", toolCallId="c1"),
        fact("tool.started", 2, turnId="t2", toolCallId="c1"),
        fact("turn.completed", 3, turnId="t2"),
        fact("tool.result", 4, turnId="t1", toolCallId="c1"),
        fact("turn.completed", 5, turnId="t1"),
    ]
    assert [(v.code, v.fact_id) for v in verify(facts)] == [("tool_unclosed_at_turn_end", "fact_3")]


@pytest.mark.requirement("lifecycle.per-turn")
def test_a_turn_may_be_named_in_the_payload():
    facts = [
        fact("tool.started", 1, turnId="t1", toolCallId="c1"),
        fact("tool.result", 2, payload={"turn_id": "t1"}, toolCallId="c1"),
        fact("turn.completed", 3, payload={"turnId": "t1"}),
        fact("model.delta", 4, turnId="t1"),
        fact("model.delta", 5, payload={"turnId": "t1"}),
    ]
    assert [(v.code, v.fact_id) for v in verify(facts)] == [
        ("execution_after_turn_terminal", "fact_4"),
        ("execution_after_turn_terminal", "fact_5"),
    ]


@pytest.mark.requirement("lifecycle.per-turn")
def test_facts_without_a_turn_are_verified_among_themselves():
    facts = [
        fact("tool.started", 1, toolCallId="c1"),
        fact("turn.completed", 2),
        fact("tool.started", 3, toolCallId="c1"),
    ]
    assert [(v.code, v.fact_id) for v in verify(facts)] == [("tool_unclosed_at_turn_end", "fact_2")]


@pytest.mark.requirement("lifecycle.incompleteness")
@pytest.mark.parametrize("family", STARTS)
def test_a_stream_that_stops_is_not_wrong(family: str):
    assert codes("turn.started", STARTS[family]) == []


@pytest.mark.requirement("lifecycle.incompleteness")
@pytest.mark.parametrize("name", ["tool.started", "action.required", "patch.applied"])
def test_a_fact_without_its_id_opens_and_closes_nothing(name: str):
    assert verify([fact(name, 1, turnId="t1"), fact("turn.completed", 2, turnId="t1")]) == []


@pytest.mark.requirement("lifecycle.subjects")
@pytest.mark.parametrize(
    ("family", "own", "snake"),
    [
        ("patch", "patchId", "patch_id"),
        ("command", "commandId", "command_id"),
        ("test", "testRunId", "test_run_id"),
    ],
)
def test_a_thing_is_known_by_its_own_id_else_by_its_call(family: str, own: str, snake: str):
    start, closer = STARTS[family], CLOSERS[family][0]
    for first, second in (
        ({"payload": {own: "x"}}, {"payload": {snake: "x"}}),
        ({"payload": {snake: "x"}, "toolCallId": "c"}, {"payload": {own: "x"}}),
        ({"toolCallId": "x"}, {"payload": {"tool_call_id": "x"}}),
        ({"toolCallId": "x", "payload": {own: 7}}, {"payload": {own: "x"}}),
    ):
        facts = [fact(start, 1, turnId="t", **first), fact(closer, 2, turnId="t", **second)]
        assert verify(facts) == []


@pytest.mark.requirement("lifecycle.modes")
def test_the_default_fails_closed_and_takes_nothing():
    assert VERIFIER_MODES == ("fail-closed", "collect", "off")
    verifier = LifecycleVerifier()
    opened, closed = stream("tool.started", "tool.result")
    with pytest.raises(LifecycleError) as caught:
        verifier.feed(closed)
    assert caught.value.violation.code == "tool_result_without_start"
    assert caught.value.code == "sequence_violation"
    assert isinstance(caught.value, FactError)
    assert str(caught.value).startswith("tool_result_without_start: tool x1")
    # Nothing was taken: the same facts in the right order are fine.
    assert verifier.feed(opened) == []
    assert verifier.feed(closed) == []


@pytest.mark.requirement("lifecycle.modes")
def test_failing_closed_at_a_terminal_leaves_the_turn_open():
    verifier = LifecycleVerifier()
    opened, ended = stream("tool.started", "turn.completed")
    verifier.feed(opened)
    with pytest.raises(LifecycleError):
        verifier.feed(ended)
    assert verifier.open_ids("t1", "tool") == ("x1",)
    assert verifier.feed(fact("tool.result", 3, turnId="t1", toolCallId="x1")) == []
    assert verifier.feed(ended) == []


@pytest.mark.requirement("lifecycle.modes")
def test_off_does_not_look():
    verifier = LifecycleVerifier("off")
    assert [verifier.feed(item) for item in stream("tool.result", "tool.result")] == [[], []]
    assert verifier.open_ids(None, "tool") == ()


@pytest.mark.requirement("lifecycle.modes")
def test_collecting_goes_on_after_a_violation():
    assert codes("tool.result", "tool.started", "tool.started", "turn.completed") == [
        "tool_result_without_start",
        "tool_started_already_active",
        "tool_unclosed_at_turn_end",
    ]


MOVES = [
    *(STARTS.values()),
    *(name for names in CLOSERS.values() for name in names),
    *("command.output", "model.delta", "run.status", "context.resolved", "turn.started"),
    *TERMINALS,
]


@st.composite
def streams(draw: st.DrawFn) -> list[Fact]:
    """Streams that violate a lot: few turns, few subjects, repeated ids."""
    size = draw(st.integers(0, 25))
    return [
        fact(
            draw(st.sampled_from(MOVES)),
            draw(st.integers(1, 40)),
            turnId=draw(st.sampled_from(["t1", "t2"])),
            toolCallId=draw(st.sampled_from(["x", "y"])),
            actionId=draw(st.sampled_from(["x", "y"])),
        )
        for _ in range(size)
    ]


@pytest.mark.requirement("lifecycle.incremental")
@given(streams(), st.lists(st.integers(0, 25)))
def test_fact_by_fact_is_in_one_go_is_any_split(facts: list[Fact], cuts: list[int]):
    whole = verify(facts)
    verifier = LifecycleVerifier("collect")
    assert [violation for item in facts for violation in verifier.feed(item)] == whole
    places = sorted({0, len(facts), *(cut for cut in cuts if cut < len(facts))})
    verifier = LifecycleVerifier("collect")
    pieces = [facts[start:end] for start, end in pairwise(places)]
    assert [v for piece in pieces for item in piece for v in verifier.feed(item)] == whole


@pytest.mark.requirement("lifecycle.incremental")
@given(streams())
def test_violations_of_a_beginning_are_the_beginning_of_the_violations(facts: list[Fact]):
    whole = verify(facts)
    for end in range(len(facts)):
        part = verify(facts[:end])
        assert whole[: len(part)] == part


@pytest.mark.requirement("lifecycle.duplicates-change-nothing")
@given(streams())
def test_repeated_facts_are_reported_and_change_nothing(facts: list[Fact]):
    seen: set[str] = set()
    unique = [item for item in facts if not (item.id in seen or seen.add(item.id))]
    others = [v for v in verify(facts) if v.code != "duplicate_event_id"]
    assert others == verify(unique)
    assert len(verify(facts)) - len(others) == len(facts) - len(unique)


@pytest.mark.requirement("lifecycle.duplicates-change-nothing")
def test_a_repeated_start_does_not_open_again():
    opened, closed, ended = stream("tool.started", "tool.result", "turn.completed")
    assert [v.code for v in verify([opened, closed, opened, ended])] == ["duplicate_event_id"]


@pytest.mark.requirement("lifecycle.modes")
@given(streams())
def test_failing_closed_stops_where_collecting_first_reports(facts: list[Fact]):
    found = verify(facts)
    if not found:
        assert verify(facts, "fail-closed") == []
        return
    with pytest.raises(LifecycleError) as caught:
        verify(facts, "fail-closed")
    assert caught.value.violation == found[0]


def state_size(verifier: LifecycleVerifier) -> int:
    """How many names the verifier holds on to."""
    held = verifier._work._open
    open_names = sum(
        1 + len(subjects) for families in held.values() for subjects in families.values()
    )
    recents = (verifier._ids, verifier._work.ended)
    return open_names + sum(len(recent) for recent in recents) + len(held)


HOSTILE: dict[str, Callable[[int], list[Fact]]] = {
    "turns that end": lambda n: [fact("turn.completed", n, turnId=f"t{n}")],
    "turns that never end": lambda n: [
        fact("tool.started", 2 * n, turnId=f"t{n}", toolCallId="c"),
        fact("tool.result", 2 * n + 1, turnId=f"t{n}", toolCallId="c"),
    ],
    "tools that never end, in many turns": lambda n: [
        fact("tool.started", n, turnId=f"t{n}", toolCallId="c")
    ],
    "tools that never end, in one turn": lambda n: [
        fact("tool.started", n, turnId="t", toolCallId=f"c{n}")
    ],
    "facts that move nothing": lambda n: [fact("model.delta", n, turnId="t")],
}


@pytest.mark.requirement("lifecycle.bounded")
@pytest.mark.parametrize("name", HOSTILE)
def test_memory_does_not_grow_with_the_stream(name: str):
    verifier = LifecycleVerifier("collect", window=20)
    sizes: list[int] = []
    for number in range(400):
        for item in HOSTILE[name](number):
            assert verifier.feed(item) == []
        sizes.append(state_size(verifier))
    assert max(sizes) <= 8 * 20
    assert max(sizes[200:]) <= max(sizes[:200])


@pytest.mark.requirement("lifecycle.bounded")
def test_within_the_window_nothing_is_forgotten():
    verifier = LifecycleVerifier("collect", window=20)
    for number in range(20):
        verifier.feed(fact("tool.started", number, turnId="t", toolCallId=f"c{number}"))
    assert len(verifier.open_ids("t", "tool")) == 20
    (violation,) = verifier.feed(fact("run.status", 0))
    assert violation.code == "duplicate_event_id"


@pytest.mark.requirement("lifecycle.duplicate_event_id")
def test_events_that_name_no_id_are_never_duplicates():
    delta = read_fact({"type": "text.delta", "payload": {"delta": "ha"}})
    piece = read_fact({"type": "plan.delta", "turnId": "t1", "payload": {"delta": "ha"}})
    assert verify([delta, delta, piece, piece, piece]) == []


@pytest.mark.requirement("lifecycle.action_already_decided")
@pytest.mark.parametrize("name", CLOSERS["action"])
@pytest.mark.parametrize("again", CLOSERS["action"])
def test_an_answered_action_is_not_answered_otherwise(name: str, again: str):
    spellings = {"action.canceled": "action.cancelled"}
    same = spellings.get(name, name) == spellings.get(again, again)
    assert codes("action.required", name, again) == ([] if same else ["action_already_decided"])


@pytest.mark.requirement("lifecycle.action_already_decided")
@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("approve", "approved", []),
        ("approve", "deny", ["action_already_decided"]),
        ("deny", "allow", ["action_already_decided"]),
        ("deny", "rejected", []),
        ("edit", "edit", []),
    ],
)
def test_spellings_of_a_decision_are_the_same_answer(first: str, second: str, found: list[str]):
    ids = {"turnId": "t1", "actionId": "a"}
    facts = [
        fact("action.required", 1, **ids),
        fact("action.resolved", 2, **ids, payload={"decision": first}),
        fact("action.resolved", 3, **ids, payload={"decision": second}),
        fact("action.required", 4, **ids),
        fact("action.resolved", 5, **ids, payload={"decision": second}),
    ]
    assert [violation.code for violation in verify(facts)] == found


@pytest.mark.requirement("lifecycle.tool_result_after_denial")
def test_what_a_copy_takes_is_not_known_to_the_original():
    ids = {"turnId": "t1", "toolCallId": "c", "actionId": "a"}
    verifier = LifecycleVerifier("collect")
    verifier.feed(fact("tool.started", 1, **ids))
    verifier.feed(fact("action.required", 2, **ids))
    trial = verifier.copy()
    trial.feed(fact("action.resolved", 3, **ids, payload={"decision": "deny"}))
    verifier.feed(fact("action.resolved", 4, **ids, payload={"decision": "approve"}))
    result = fact("tool.result", 5, **ids, status="completed")
    assert verifier.feed(result) == []
    assert [violation.code for violation in trial.feed(result)] == ["tool_result_after_denial"]


DENIALS: dict[str, tuple[str, dict[str, Any]]] = {
    "denied": ("action.resolved", {"decision": "deny"}),
    "expired": ("action.expired", {}),
}


@pytest.mark.requirement("lifecycle.tool_result_after_denial")
@pytest.mark.parametrize("denial", DENIALS)
@pytest.mark.parametrize(
    ("between", "end", "status", "found"),
    [
        ("", "tool.result", "completed", ["tool_result_after_denial"]),
        ("", "tool.result", "failed", []),
        ("", "tool.failed", "failed", []),
        ("tool.failed tool.started", "tool.result", "completed", []),
    ],
)
def test_a_call_that_was_not_allowed_does_not_succeed(
    denial: str, between: str, end: str, status: str, found: list[str]
):
    ids = {"turnId": "t1", "toolCallId": "c"}
    name, payload = DENIALS[denial]
    request = {"payload": {"actionType": "tool_approval"}, "actionId": "a"}
    steps: list[Step] = [
        ("tool.started", {}),
        ("action.required", request),
        (name, {"actionId": "a", "payload": payload}),
        *((step, {}) for step in between.split()),
        (end, {"status": status}),
    ]
    facts = [fact(step, place, **ids, **fields) for place, (step, fields) in enumerate(steps)]
    assert [violation.code for violation in verify(facts)] == found


@pytest.mark.requirement("lifecycle.tool_result_after_denial")
@pytest.mark.parametrize(
    ("kind", "closing", "decision"),
    [
        ("tool_approval", "action.resolved", "approve"),
        ("tool_approval", "action.cancelled", None),
        ("clarification", "action.resolved", "deny"),
    ],
)
def test_a_call_that_nobody_denied_succeeds(kind: str, closing: str, decision: str | None):
    ids = {"turnId": "t1", "toolCallId": "c"}
    facts = [
        fact("tool.started", 1, **ids),
        fact("action.required", 2, **ids, actionId="a", payload={"actionType": kind}),
        fact(closing, 3, **ids, actionId="a", payload={"decision": decision}),
        fact("tool.result", 4, **ids),
    ]
    assert verify(facts) == []
