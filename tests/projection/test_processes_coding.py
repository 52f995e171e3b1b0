"""Programs, hooks, files, patches and tests."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import Fact
from factwire.projection.limits import OUTPUT_CHARACTERS
from tests.projection.fact_maker import FactMaker, codes, project_facts

TURN = {"turnId": "turn"}
PROCESS = {"turnId": "turn", "processId": "p/1"}


@pytest.mark.requirement("projection.process.life")
@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("process.completed", "completed"),
        ("process.failed", "failed"),
        ("process.terminated", "terminated"),
    ],
)
def test_a_process_runs_and_ends(name: str, status: str):
    tell = FactMaker()
    facts = [tell("process.started", **PROCESS, command=["serve", "-v"], cwd="/work")]
    process = project_facts(*facts).processes["p/1"]
    assert (process.status, process.command) == ("running", ["serve", "-v"])
    process = project_facts(*facts, tell(name, **PROCESS, signal=15)).processes["p/1"]
    assert (process.status, process.signal, process.completed_at is None) == (status, 15, False)


@pytest.mark.requirement("projection.process.life")
@pytest.mark.parametrize(
    ("payload", "status"),
    [
        ({"exitCode": 0}, "completed"),
        ({"exitCode": 2}, "failed"),
        ({"status": "killed"}, "killed"),
    ],
)
def test_a_command_ends_as_its_exit_code_says(payload: dict[str, Any], status: str):
    fact = FactMaker()("command.exited", **TURN, payload={**payload, "commandId": "c"})
    assert project_facts(fact).processes["c"].status == status


@pytest.mark.requirement("projection.process.output")
def test_output_is_shown_with_the_offset_that_a_log_is_read_from():
    tell = FactMaker()
    state = project_facts(
        tell("process.output", **PROCESS, text="é1"),
        tell("process.output", **PROCESS, text="2", offset=3),
        tell("process.output", **PROCESS, text="3", offset=100),
    )
    process = state.processes["p/1"]
    assert (str(process.output), process.output_bytes) == ("é123", 101)


@pytest.mark.requirement("projection.process.output")
@given(
    pieces=st.lists(st.tuples(st.sampled_from(("stdout", "stderr", None)), st.text(max_size=5))),
    has_offsets=st.booleans(),
    repeat=st.integers(1, 2),
)
def test_output_counts_the_bytes_of_every_stream_once(
    pieces: list[tuple[str | None, str]], has_offsets: bool, repeat: int
):
    tell, written, facts = FactMaker(), {True: 0, False: 0}, list[Fact]()
    for stream, text in pieces:
        size, is_stderr = len(text.encode()), stream == "stderr"
        place = {"offset": written[is_stderr]} if has_offsets else {}
        written[is_stderr] += size
        for _ in range(repeat if has_offsets else 1):
            facts.append(tell("process.output", **PROCESS, text=text, stream=stream, **place))
    process = project_facts(tell("process.started", **PROCESS), *facts).processes["p/1"]
    counted = (process.output_bytes, process.stderr_bytes or 0)
    assert counted == (sum(written.values()), written[True])


@pytest.mark.requirement("projection.process.output")
@pytest.mark.parametrize("offset", [-5, 2**60, 1e300, True, "7", None, 10**400])
def test_an_offset_that_is_no_place_in_a_log_is_left_out(offset: Any):
    fact = FactMaker()("process.output", **PROCESS, text="abc", offset=offset)
    assert project_facts(fact).processes["p/1"].output_bytes == 3


@pytest.mark.requirement("projection.process.output")
def test_output_is_shown_as_far_as_there_is_room():
    tell = FactMaker()
    facts = [tell("process.output", **PROCESS, text="x" * 40_000) for _ in range(2)]
    process = project_facts(*facts).processes["p/1"]
    assert (len(str(process.output)), process.truncated) == (OUTPUT_CHARACTERS, True)
    assert process.output_bytes == 80_000


@pytest.mark.requirement("projection.hook")
def test_a_hook_runs_and_a_failed_one_is_remarked_on():
    tell = FactMaker()
    hook = {"hookId": "h", "hookName": "check"}
    facts = [
        tell("hook.started", **TURN, payload=hook),
        tell("hook.progress", **TURN, payload=hook),
        tell("hook.failed", **TURN, payload={**hook, "exitCode": 1, "message": "no"}),
    ]
    assert project_facts(*facts[:2]).hooks["h"].status == "running"
    state = project_facts(*facts)
    assert (state.hooks["h"].status, state.hooks["h"].exit_code) == ("failed", 1)
    assert codes(state) == ["hook.failed"]


@pytest.mark.requirement("projection.coding")
@pytest.mark.parametrize(("end", "status"), [("applied", "applied"), ("failed", "failed")])
def test_a_patch_is_applied_whole_or_failed(end: str, status: str):
    tell = FactMaker()
    patch = {"patchId": "p", "paths": ["a", "b"]}
    state = project_facts(
        tell("patch.started", **TURN, payload=patch),
        tell(f"patch.{end}", **TURN, payload={"patchId": "p", "failureCategory": "conflict"}),
    )
    found = state.coding.patches["p"]
    assert (found.status, found.paths) == (status, ["a", "b"])


@pytest.mark.requirement("projection.coding")
@pytest.mark.parametrize(
    ("payload", "status"),
    [
        ({"result": "passed"}, "passed"),
        ({"status": "failed"}, "failed"),
        ({"result": {"n": 1}, "failed": 2}, "failed"),
        ({"result": {"n": 1}, "failed": 0}, "passed"),
        ({"result": {"n": 1}}, "unknown"),
    ],
)
def test_a_test_run_ends_as_it_says_itself(payload: dict[str, Any], status: str):
    fact = FactMaker()("test.completed", **TURN, payload={**payload, "testRunId": "t"})
    assert project_facts(fact).coding.tests["t"].status == status


SNAKE: dict[str, dict[str, Any]] = {
    "artifact.created": {"artifact_refs": ["x"]},
    "evidence.changed": {"evidence_refs": ["x"]},
    "patch.applied": {"patch_id": "x"},
    "test.completed": {"test_run_id": "x", "status": "passed"},
    "command.exited": {"command_id": "x", "exit_code": 0},
}


@pytest.mark.requirement("projection.coding")
@pytest.mark.parametrize("name", SNAKE)
def test_ids_are_read_in_snake_case_too(name: str):
    state = project_facts(FactMaker()(name, **TURN, payload=SNAKE[name]))
    coding = [*state.coding.patches, *state.coding.tests, *state.processes]
    assert [*coding, *state.artifacts, *state.evidence.items] == ["x"]
    assert codes(state) == []


@pytest.mark.requirement("projection.coding")
def test_reasons_and_exit_codes_are_read_in_snake_case_too():
    tell = FactMaker()
    state = project_facts(
        tell("command.exited", **TURN, payload=SNAKE["command.exited"]),
        tell("sandbox.blocked", **TURN, payload={"reason_code": "network"}),
    )
    assert (state.processes["x"].status, state.processes["x"].exit_code) == ("completed", 0)
    assert state.permissions.sandbox.latest_reason_code == "network"
