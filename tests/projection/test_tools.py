"""Tools: the state of a call is told by its own facts."""

from typing import Any

import pytest

from factwire.projection.limits import ARGS_CHARACTERS, OUTPUT_CHARACTERS
from tests.projection.fact_maker import FactMaker, as_json, codes, project_facts

CALL = {"turnId": "turn", "toolCallId": "call"}


@pytest.mark.requirement("projection.tool.states")
def test_a_call_goes_through_its_states():
    tell = FactMaker()
    steps: list[tuple[str, dict[str, Any], str]] = [
        ("tool.started", {}, "running"),
        ("tool.args.delta", {"delta": "{"}, "input-streaming"),
        ("tool.args", {"args": {}}, "input-available"),
        ("tool.progress", {"progress": 1}, "progress"),
        ("tool.output.delta", {"delta": "x"}, "running"),
        ("tool.result", {"output": "x"}, "output-available"),
    ]
    facts = [tell(name, **CALL, **fields) for name, fields, _ in steps]
    found = [project_facts(*facts[: count + 1]).tools["call"].state for count in range(len(facts))]
    assert found == [state for _, _, state in steps]


@pytest.mark.requirement("projection.tool.states")
@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"failureCategory": "timeout"}, "output-error"),
        ({}, "output-error"),
        ({"failureCategory": "user_cancelled"}, "cancelled"),
        ({"status": "canceled"}, "cancelled"),
    ],
)
def test_a_failure_and_a_cancellation_are_told_apart(fields: dict[str, Any], state: str):
    tell = FactMaker()
    tool = project_facts(tell("tool.started", **CALL), tell("tool.failed", **CALL, **fields)).tools[
        "call"
    ]
    assert (tool.state, tool.completed_at is not None) == (state, True)


@pytest.mark.requirement("projection.tool.states")
def test_output_behind_the_end_of_a_call_does_not_open_it_again():
    tell = FactMaker()
    state = project_facts(
        tell("tool.started", **CALL),
        tell("tool.result", **CALL),
        tell("tool.output.delta", **CALL, delta="late"),
        tell("tool.progress", **CALL, progress=1),
        tell("tool.args.delta", **CALL, delta="late"),
    )
    assert state.tools["call"].state == "output-available"


@pytest.mark.requirement("projection.tool.states")
def test_a_call_may_begin_anew_without_what_its_last_end_said():
    tell = FactMaker()
    state = project_facts(
        tell("tool.started", **CALL),
        tell("tool.failed", **CALL, failureCategory="timeout", exitCode=1),
        tell("tool.started", **CALL),
    )
    tool = state.tools["call"]
    assert (tool.state, tool.failure_category, tool.exit_code, tool.completed_at) == (
        "running",
        None,
        None,
        None,
    )
    assert as_json(state.messages[0].parts[0])["status"] == "running"


@pytest.mark.requirement("projection.tool.preview")
def test_a_call_stands_once_in_its_message_with_its_state_and_ref():
    tell = FactMaker()
    state = project_facts(
        tell("tool.started", **CALL, messageId="m"),
        tell("tool.output.delta", **CALL, delta="x"),
        tell("tool.result", **CALL, outputRef="blob:1"),
    )
    assert as_json(state.messages[0].parts) == [
        {
            "type": "tool-preview",
            "partId": "tool:call",
            "messageId": "m",
            "toolCallId": "call",
            "status": "output-available",
            "outputRef": "blob:1",
        }
    ]


@pytest.mark.requirement("projection.tool.preview")
@pytest.mark.parametrize("name", ["tool.args.delta", "tool.output.delta", "tool.progress"])
def test_a_preview_of_an_open_call_says_that_it_runs(name: str):
    tell = FactMaker()
    state = project_facts(tell("tool.started", **CALL), tell(name, **CALL, delta="x", progress=1))
    assert as_json(state.messages[0].parts[0])["status"] in ("running", state.tools["call"].state)


@pytest.mark.requirement("projection.tool.parallel")
def test_parallel_calls_keep_their_output_apart():
    tell = FactMaker()
    ids = [{"turnId": "turn", "toolCallId": key} for key in "ab"]
    facts = [tell("tool.started", **call) for call in ids]
    facts += [
        tell("tool.output.delta", **call, delta=f"{call['toolCallId']}{number}")
        for number in range(3)
        for call in ids
    ]
    tools = project_facts(*facts, tell("tool.result", **ids[1])).tools
    assert {key: (str(tool.output_text), tool.state) for key, tool in tools.items()} == {
        "a": ("a0a1a2", "running"),
        "b": ("b0b1b2", "output-available"),
    }


@pytest.mark.requirement("projection.tool.bounded")
def test_output_is_shown_as_far_as_there_is_room_and_counted_whole():
    tell = FactMaker()
    piece = "x" * 40_000
    facts = [tell("tool.output.delta", **CALL, delta=piece) for _ in range(3)]
    tool = project_facts(*facts).tools["call"]
    assert len(str(tool.output_text)) == OUTPUT_CHARACTERS
    assert (tool.output_characters, tool.output_truncated) == (120_000, True)


@pytest.mark.requirement("projection.tool.bounded")
def test_output_that_just_fits_is_not_cut():
    tool = project_facts(
        FactMaker()("tool.output.delta", **CALL, delta="x" * OUTPUT_CHARACTERS)
    ).tools["call"]
    assert tool.output_truncated is None


@pytest.mark.requirement("projection.tool.bounded")
def test_input_is_bounded_too():
    tell = FactMaker()
    facts = [tell("tool.args.delta", **CALL, delta="x" * 40_000) for _ in range(2)]
    tool = project_facts(*facts).tools["call"]
    assert (len(str(tool.args_text)), tool.args_truncated) == (ARGS_CHARACTERS, True)


@pytest.mark.requirement("projection.tool.turn-end")
def test_a_cancelled_turn_cancels_its_open_calls_and_no_others():
    tell = FactMaker()
    state = project_facts(
        tell("tool.started", **CALL),
        tell("tool.started", turnId="turn", toolCallId="done"),
        tell("tool.result", turnId="turn", toolCallId="done"),
        tell("tool.started", turnId="other", toolCallId="elsewhere"),
        tell("turn.canceled", turnId="turn"),
    )
    assert {key: tool.state for key, tool in state.tools.items()} == {
        "call": "cancelled",
        "done": "output-available",
        "elsewhere": "running",
    }


@pytest.mark.requirement("projection.tool.turn-end")
@pytest.mark.parametrize("end", ["turn.completed", "turn.failed"])
def test_after_any_other_end_an_open_call_reads_unknown_and_is_remarked_on_once(end: str):
    tell = FactMaker()
    state = project_facts(
        tell("tool.started", **CALL), tell(end, turnId="turn"), tell(end, turnId="turn")
    )
    assert state.tools["call"].state == "unknown"
    assert codes(state) == ["tool_unclosed_at_turn_end"]


WRONG: list[Any] = [None, True, 5, 1.5, [], {}, [1], {"a": 1}, "", 10**400]


@pytest.mark.requirement("projection.wrong-types")
@pytest.mark.parametrize("value", WRONG, ids=lambda value: repr(value)[:9])
def test_fields_of_a_wrong_type_count_as_absent(value: Any):
    names = """toolName title delta message progress total summary outputRef exitCode durationMs
        failureCategory recoveryHint artifactRefs""".split()  # noqa: SIM905
    tell = FactMaker()
    payload = dict.fromkeys(names, value)
    state = project_facts(
        *(
            tell(f"tool.{name}", **CALL, payload=payload)
            for name in (
                "started",
                "args.delta",
                "args",
                "progress",
                "output.delta",
                "result",
                "failed",
            )
        )
    )
    assert state.tools["call"].state == "output-error"


@pytest.mark.requirement("projection.wrong-types")
def test_a_value_of_another_type_replaces_one_that_python_takes_for_equal():
    tell = FactMaker()
    state = project_facts(
        tell("tool.args", **CALL, args={"n": 1}), tell("tool.args", **CALL, args={"n": True})
    )
    assert as_json(state.tools["call"].args) == {"n": True}
    assert state.tools["call"].args["n"] is True


@pytest.mark.requirement("projection.tool.diagnostic")
def test_a_failed_call_is_among_the_diagnostics_and_not_in_the_conversation():
    tell = FactMaker()
    payload = {"failureCategory": "timeout", "message": "Took too long.", "recoveryHint": "Retry."}
    state = project_facts(
        tell("tool.started", **CALL), tell("tool.failed", **CALL, payload=payload)
    )
    (remark,) = state.diagnostics.items.values()
    assert (remark.code, remark.severity, remark.message) == (
        "timeout",
        "warning",
        "Took too long.",
    )
    assert (remark.subject, remark.recovery_hint) == ("call", "Retry.")
    (part,) = as_json(state.messages[0].parts)
    assert (part["type"], part["status"]) == ("tool-preview", "output-error")


@pytest.mark.requirement("projection.tool.diagnostic")
@pytest.mark.parametrize("fields", [{"failureCategory": "cancelled"}, {"status": "canceled"}])
def test_a_call_that_was_stopped_is_no_diagnostic(fields: dict[str, str]):
    tell = FactMaker()
    state = project_facts(tell("tool.started", **CALL), tell("tool.failed", **CALL, **fields))
    assert (state.tools["call"].state, state.diagnostics.total) == ("cancelled", 0)
