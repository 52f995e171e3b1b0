"""A process as facts: valid ones, in order, with no secret in them once they were taken in."""

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from factwire.facts import Fact, Intake, inspect_fact, is_valid
from factwire.journal.blobs import MemoryBlobs
from factwire.runtime import FactScope, Mint
from factwire.runtime.processes import Processes, ProcessSpec, RunningProcess, stream_process_facts
from factwire.runtime.sandbox import Sandbox, SandboxPolicy
from tests.runtime.programs import BOUND, QUICK, World

pytestmark = pytest.mark.asyncio

SCOPE = FactScope(session_id="s", thread_id="t", turn_id="u", run_id="r")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def mint() -> Mint:
    numbers = count(1)
    return Mint(
        "runtime", clock=lambda: "2026-01-01T00:00:00Z", ids=lambda p: f"{p}_{next(numbers)}"
    )


def stream_facts(processes: Processes, spec: ProcessSpec, **options: Any) -> AsyncIterator[Fact]:
    options.setdefault("process_id", "proc_1")
    return stream_process_facts(processes, spec, mint=mint(), scope=SCOPE, **options)


async def all_facts(
    processes: Processes,
    spec: ProcessSpec,
    on_fact: Callable[[Fact], None] | None = None,
    **options: Any,
) -> list[Fact]:
    facts: list[Fact] = []
    async with asyncio.timeout(BOUND):
        async for fact in stream_facts(processes, spec, **options):
            facts.append(fact)
            if on_fact is not None:
                on_fact(fact)
    for number, fact in enumerate(facts):
        issues = inspect_fact(msgspec.structs.replace(fact, sequence=number))
        assert is_valid(issues), issues
        assert (fact.process_id, fact.thread_id, fact.turn_id) == ("proc_1", "t", "u")
    return facts


def summary(facts: list[Fact]) -> list[tuple[str | None, dict[str, Any]]]:
    return [(fact.event_class, fact.payload) for fact in facts]


@pytest.mark.requirement("runtime.process.facts")
async def test_a_program_is_told_from_its_start_to_its_end(world: World):
    spec = world.shell("echo hello")
    facts = await all_facts(world.processes(), spec, tool_call_id="call_1")
    assert summary(facts) == [
        (
            "process.started",
            {"command": list(spec.argv), "cwd": str(world.workspace), "maxBytes": 1024 * 1024},
        ),
        ("process.output", {"stream": "stdout", "offset": 0, "text": "hello\n"}),
        ("process.completed", {"exitCode": 0, "status": "exited"}),
    ]
    assert {fact.tool_call_id for fact in facts} == {"call_1"}


@pytest.mark.requirement("runtime.process.facts")
@pytest.mark.parametrize(
    ("code", "last"),
    [
        ("exit 3", {"exitCode": 3, "status": "exited", "failureCategory": "nonzero_exit"}),
        ("kill -9 $$", {"signal": "SIGKILL", "status": "signaled", "failureCategory": "signal"}),
    ],
)
async def test_a_program_that_fails_says_how(world: World, code: str, last: dict[str, Any]):
    facts = await all_facts(world.processes(), world.shell(code))
    assert summary(facts)[-1] == ("process.failed", last)


@pytest.mark.requirement("runtime.process.facts")
async def test_a_program_that_was_stopped_is_told_as_terminated(world: World):
    handles: list[RunningProcess] = []
    stopping: list[asyncio.Task[Any]] = []

    def stop(fact: Fact) -> None:
        if fact.event_class == "process.output":
            stopping.append(asyncio.create_task(handles[0].stop("cancelled")))

    spec = world.shell("echo ready; exec sleep 1000")
    facts = await all_facts(world.processes(), spec, stop, on_start=handles.append)
    assert summary(facts)[-1] == (
        "process.terminated",
        {"signal": "SIGTERM", "status": "cancelled", "stoppedBy": "terminate"},
    )
    await asyncio.gather(*stopping)


@pytest.mark.requirement("runtime.process.facts")
async def test_a_program_past_its_time_is_told_as_a_timeout(world: World):
    spec = world.shell("exec sleep 1000", time_limit=0.1)
    facts = await all_facts(world.processes(ladder=QUICK), spec)
    assert facts[-1].event_class == "process.terminated"
    assert facts[-1].payload["failureCategory"] == "timeout"


@pytest.mark.requirement("runtime.process.facts")
async def test_input_is_told_by_its_length_and_shown_only_when_asked(world: World):
    async def write(process: RunningProcess) -> None:
        await process.write(b"hunter2\n")
        await process.write("ja€\n".encode(), shown=True)
        await process.close_input()

    writing: list[asyncio.Task[None]] = []

    def begin(process: RunningProcess) -> None:
        writing.append(asyncio.create_task(write(process)))

    spec = world.shell("cat >/dev/null", stdin="pipe")
    facts = await all_facts(world.processes(), spec, on_start=begin)
    assert [payload for name, payload in summary(facts) if name == "process.input"] == [
        {"stream": "stdin", "offset": 0, "bytesWritten": 8},
        {"stream": "stdin", "offset": 8, "bytesWritten": 6, "text": "ja€\n"},
    ]
    assert writing[0].done()


@pytest.mark.requirement("runtime.process.facts")
async def test_truncated_output_carries_the_ref_of_all_of_it(world: World):
    blobs = MemoryBlobs()
    spec = world.shell("printf '%0100d' 7", max_output=10)
    facts = await all_facts(world.processes(blobs=blobs), spec)
    cut, settled = facts[2].payload, facts[3].payload
    assert facts[1].payload == {"stream": "stdout", "offset": 0, "text": "0" * 10}
    assert cut == {"stream": "stdout", "offset": 10, "text": "", "truncated": True, "maxBytes": 10}
    ref = settled["outputRef"]["ref"]
    assert settled == {**cut, "bytesWritten": 100, "outputRef": settled["outputRef"]}
    assert facts[3].ref_ids == (ref,)
    stored = b"".join([piece async for piece in blobs.get(ref)])
    assert stored == b"0" * 99 + b"7"


@pytest.mark.parametrize(
    ("changes", "category"),
    [({"argv": ("no-such-program",)}, "program_not_found"), ({"cwd": "/"}, "folder_refused")],
)
@pytest.mark.requirement("runtime.process.facts")
async def test_what_could_not_start_is_a_failed_process(
    world: World, changes: dict[str, Any], category: str
):
    spec = msgspec.structs.replace(world.shell("true"), **changes)
    (fact,) = await all_facts(world.processes(), spec)
    assert fact.event_class == "process.failed"
    assert fact.payload["failureCategory"] == category


@pytest.mark.requirement("runtime.sandbox.policy")
async def test_a_required_sandbox_that_cannot_be_had_is_told_and_nothing_runs(world: World):
    missing = Sandbox(home=world.home, data=[world.data], path=str(world.folder))
    spec = world.shell("touch ran", sandbox=SandboxPolicy(mode="require"))
    (fact,) = await all_facts(world.processes(sandbox=missing), spec)
    assert fact.event_class == "sandbox.blocked"
    assert fact.payload["reasonCode"] == "bubblewrap_missing"
    assert "install" in fact.payload["message"]
    assert list(world.workspace.iterdir()) == []


@pytest.mark.requirement("runtime.sandbox.policy")
async def test_a_preferred_sandbox_that_cannot_be_had_is_told_and_the_program_runs(world: World):
    missing = Sandbox(home=world.home, data=[world.data], path=str(world.folder))
    spec = world.shell("touch ran", sandbox=SandboxPolicy(mode="prefer"))
    facts = await all_facts(world.processes(sandbox=missing), spec)
    assert [fact.event_class for fact in facts] == [
        "sandbox.applied",
        "process.started",
        "process.completed",
    ]
    assert facts[0].payload["decision"] == "unavailable"
    assert facts[0].payload["reasonCode"] == "bubblewrap_missing"
    assert facts[0].payload["notApplied"] == [
        {"what": "sandbox", "reason": facts[0].payload["message"]}
    ]
    assert (world.workspace / "ran").exists()


@pytest.mark.requirement("runtime.sandbox.policy")
async def test_a_policy_that_shows_what_it_hides_is_told_as_blocked(world: World):
    policy = SandboxPolicy(mode="require", hidden=(str(world.workspace),))
    (fact,) = await all_facts(world.processes(), world.shell("true", sandbox=policy))
    assert (fact.event_class, fact.payload["reasonCode"]) == ("sandbox.blocked", "invalid_policy")


@pytest.mark.requirement("runtime.process.facts.secrets")
async def test_a_secret_printed_in_two_halves_never_passes_the_intake(world: World):
    """Bites: joined without an intake, the same facts spell it out."""
    secret = "sk-ant-api03-" + "Zq7" * 20
    code = f"printf 'key is {secret[:17]}'; read go; printf '{secret[17:]} done\\n'"
    spec = world.shell(code, stdin="pipe", output="protocol")
    handles: list[RunningProcess] = []
    writing: list[asyncio.Task[None]] = []

    def go_on(fact: Fact) -> None:
        if fact.event_class == "process.output" and not writing:
            writing.append(asyncio.create_task(handles[0].write(b"\n")))

    processes = world.processes(batch_seconds=0.0)
    facts = await all_facts(processes, spec, go_on, on_start=handles.append)
    pieces = [fact.payload["text"] for fact in facts if fact.event_class == "process.output"]
    assert len(pieces) >= 2
    assert secret in "".join(pieces)

    intake = Intake(mode="off")
    taken = [
        intake.feed(msgspec.structs.replace(fact, sequence=number))
        for number, fact in enumerate(facts)
        if fact.event_class != "process.started"
    ]
    shown = "".join(str(each.fact.payload.get("text", "")) for each in taken)
    assert shown == "key is [redacted] done\n"
    stored = b"".join(each.data for each in taken)
    assert secret[:17].encode() not in stored
    assert secret[17:].encode() not in stored


async def test_an_iterator_that_is_closed_ends_the_program(world: World):
    handles: list[RunningProcess] = []
    facts = stream_facts(
        world.processes(), world.shell("echo ready; exec sleep 1000"), on_start=handles.append
    )
    async with asyncio.timeout(BOUND):
        async for fact in facts:
            if fact.event_class == "process.output":
                break
        await facts.aclose()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    assert handles[0].is_over
