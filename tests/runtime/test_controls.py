"""`Controls` is one contract: asked in the same words, a runtime in this process, the control
socket and an Edge give the same replies and refuse by the same codes.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from factwire.cli.command_context import CommandContext
from factwire.cli.command_controls import LocalControls, OfflineControls
from factwire.cli.edge_controls import EdgeControls
from factwire.client import AsyncClient
from factwire.facts import Fact, Person
from factwire.facts.resources import Run
from factwire.journal import open_journal
from factwire.journal.blobs import MemoryBlobs
from factwire.runtime import Runtime, StartTurn
from factwire.runtime.configuration import AgentSettings
from factwire.runtime.control import (
    CancelRequest,
    ControlRefusal,
    ControlReply,
    Controls,
    DecideReply,
    DecideRequest,
    NobodyRunning,
    QueueReply,
    QueueRequest,
    RuntimeControls,
    SocketControls,
    StatusReply,
    StatusRequest,
    SteerReply,
    SteerRequest,
    answer_request,
)
from factwire.runtime.limits import STEER_CHARACTERS
from tests.edge.edges import TOKEN, RunningEdge, configuration_in, running_edge
from tests.runtime.agents import (
    SHOWN_HASH,
    WAIT,
    Agent,
    approval,
    ask_and_obey,
    make_fact,
    open_action,
)

pytestmark = pytest.mark.asyncio

WAYS: Final = ("runtime", "socket", "edge")
AGENTS: Final = {
    **{name: f"tests.cli.turn_agents:{name}" for name in ("asks", "echo", "endless", "listens")},
    "hurried": "tests.runtime.test_controls:build_hurried_agent",
}


def build_hurried_agent(_: AgentSettings) -> Agent:
    return Agent(_hurried)


async def _hurried(turn: StartTurn) -> AsyncIterator[Fact]:
    """Asks, and waits for no answer."""
    await turn.host.ask(approval(expires_in=0.0))
    yield make_fact(turn.host, "turn.completed")


class Machine:
    """An Edge with its runtime and its socket, and one of the ways to control it."""

    def __init__(self, edge: RunningEdge, client: AsyncClient, controls: Controls) -> None:
        self.edge = edge
        self.client = client
        self.controls = controls

    async def start(self, agent: str, prompt: str = "go", thread: str | None = None) -> Run:
        return await self.client.start_run(agent, prompt, thread_id=thread)

    async def started(self, agent: str) -> tuple[str, str]:
        """A turn that runs: its thread and its id."""
        run = await self.start(agent)
        await self.edge.run_until(run.run_id, "running")
        return run.thread_id or "", run.turn_id

    async def ended(self, agent: str) -> tuple[str, str]:
        run = await self.start(agent)
        await self.edge.run_until(run.run_id)
        return run.thread_id or "", run.turn_id

    async def action(self, run: Run) -> str:
        return (await self.edge.wait_for_approval(run.run_id))["approvalId"]

    async def words(self, *requests: Any) -> list[str]:
        return [_word(await answer_request(self.controls, request)) for request in requests]


def _word(reply: ControlReply) -> str:
    """What a reply comes to, without the ids in it."""
    if isinstance(reply, ControlRefusal):
        return reply.code
    if isinstance(reply, DecideReply):
        return reply.decision
    if isinstance(reply, SteerReply):
        return reply.status
    if isinstance(reply, QueueReply):
        return " ".join(turn.prompt for turn in reply.turns) or "nothing"
    return str(msgspec.inspect.type_info(type(reply)).tag)  # type: ignore[attr-defined]


@asynccontextmanager
async def controlled(way: str, folder: Path) -> AsyncGenerator[Machine]:
    agents = {name: AgentSettings(kind=kind) for name, kind in AGENTS.items()}
    configuration = configuration_in(folder, agent="echo", agents=agents)
    async with (
        running_edge(folder, configuration=configuration) as edge,
        AsyncClient(edge.url, token=TOKEN) as client,
    ):
        ways: dict[str, Controls] = {
            "runtime": RuntimeControls(edge.machine.runtime, by=Person(name="tester")),
            "socket": SocketControls(configuration.data),
            "edge": EdgeControls(client),
        }
        yield Machine(edge, client, ways[way])


async def decide(machine: Machine) -> list[str]:
    action = await machine.action(await machine.start("asks"))
    return await machine.words(
        DecideRequest(action_id="act_none", decision="approve", args_hash=SHOWN_HASH),
        DecideRequest(action_id=action, decision="approve", args_hash="sha256:other"),
        DecideRequest(action_id=action, decision="approve", reason="go", args_hash=SHOWN_HASH),
        DecideRequest(action_id=action, decision="approve", args_hash=SHOWN_HASH),
        DecideRequest(action_id=action, decision="deny", args_hash=SHOWN_HASH),
    )


async def decide_for_good(machine: Machine) -> list[str]:
    """No exact rule can be made of what the agent asks."""
    action = await machine.action(await machine.start("asks"))
    request = DecideRequest(
        action_id=action, decision="approve", always="thread", args_hash=SHOWN_HASH
    )
    return await machine.words(
        request, DecideRequest(action_id=action, decision="deny", args_hash=SHOWN_HASH)
    )


async def decide_too_late(machine: Machine) -> list[str]:
    thread, _ = await machine.ended("hurried")
    (action,) = (await machine.edge.machine.runtime.state(thread)).actions
    return await machine.words(
        DecideRequest(action_id=action, decision="approve", args_hash=SHOWN_HASH)
    )


async def cancel(machine: Machine) -> list[str]:
    thread, _ = await machine.started("endless")
    queued = await machine.start("endless", "later", thread)
    return await machine.words(
        CancelRequest(target=queued.turn_id),
        CancelRequest(target=thread, reason="enough"),
        CancelRequest(target=thread),
        CancelRequest(target="trn_none"),
        CancelRequest(target="thr_none"),
    )


async def cancel_twice_by_turn(machine: Machine) -> list[str]:
    _, turn = await machine.started("endless")
    return await machine.words(CancelRequest(target=turn), CancelRequest(target=turn))


async def cancel_what_ended(machine: Machine) -> list[str]:
    thread, turn = await machine.ended("echo")
    return await machine.words(CancelRequest(target=turn), CancelRequest(target=thread))


async def steer(machine: Machine) -> list[str]:
    thread, turn = await machine.started("listens")
    first = await machine.words(
        SteerRequest(thread_id=thread, text="x" * (STEER_CHARACTERS + 1)),
        SteerRequest(thread_id=thread, text="to the left"),
    )
    await machine.edge.run_until(f"run_{turn.removeprefix('trn_')}")
    late = await machine.words(
        SteerRequest(thread_id=thread, text="too late"),
        SteerRequest(thread_id="thr_none", text="to nobody"),
    )
    return first + late


async def steer_what_cannot_be(machine: Machine) -> list[str]:
    thread, _ = await machine.started("endless")
    return await machine.words(
        SteerRequest(thread_id=thread, text="left"),
        SteerRequest(thread_id=thread, text="left", queue=True),
        QueueRequest(thread_id=thread),
    )


async def steer_with_a_queued_turn(machine: Machine) -> list[str]:
    thread, _ = await machine.started("listens")
    queued = await machine.start("listens", "later", thread)
    return await machine.words(
        SteerRequest(thread_id=thread, queued_turn_id="trn_none"),
        SteerRequest(thread_id=thread, queued_turn_id=queued.turn_id),
        QueueRequest(thread_id=thread),
    )


async def change_the_queue(machine: Machine) -> list[str]:
    thread, _ = await machine.started("endless")
    first, second = [await machine.start("endless", text, thread) for text in ("one", "two")]
    return await machine.words(
        QueueRequest(thread_id=thread),
        QueueRequest(thread_id=thread, promote=second.turn_id),
        QueueRequest(thread_id=thread, remove=first.turn_id),
        QueueRequest(thread_id=thread, remove=first.turn_id),
        QueueRequest(thread_id=thread, promote="trn_none"),
        QueueRequest(thread_id="thr_none"),
    )


async def name_queued_turns(machine: Machine) -> list[str]:
    """By which id, and with which status, a queue names what waits."""
    thread, _ = await machine.started("endless")
    queued = await machine.start("endless", "later", thread)
    reply = await machine.controls.queue(QueueRequest(thread_id=thread))
    assert isinstance(reply, QueueReply)
    names = {queued.turn_id: "turn id", queued.run_id: "run id"}
    return [f"{names[turn.turn_id]} {turn.status}" for turn in reply.turns]


async def steer_twice_under_one_id(machine: Machine) -> list[str]:
    thread, _ = await machine.started("listens")
    request = SteerRequest(thread_id=thread, text="left", steer_id="steer_mine")
    first = await machine.controls.steer(request)
    assert isinstance(first, SteerReply)
    return ["id kept" if first.steer_id == "steer_mine" else "id dropped"]


async def cancel_by_force(machine: Machine) -> list[str]:
    """Whether the runtime hears that it may close what another one claims."""
    thread, _ = await machine.started("endless")
    runtime, forced = machine.edge.machine.runtime, list[str]()
    really_cancel = runtime.cancel

    async def note_force(*arguments: Any, take_over: bool = False, **others: Any) -> None:
        forced.append("forced" if take_over else "not forced")
        await really_cancel(*arguments, take_over=take_over, **others)

    runtime.cancel = note_force  # type: ignore[method-assign]
    await machine.words(CancelRequest(target=thread, take_over=True))
    return forced


CONTRACT: Final[dict[Callable[[Machine], Awaitable[list[str]]], list[str]]] = {
    decide: [
        "unknown_action",
        "action_changed",
        "approved",
        "approved",
        "action_already_decided",
    ],
    decide_for_good: ["no_standing_rule", "denied"],
    decide_too_late: ["action_expired"],
    cancel: ["canceled", "canceled", "turn_ended", "unknown_turn", "unknown_turn"],
    cancel_twice_by_turn: ["canceled", "turn_ended"],
    cancel_what_ended: ["turn_ended", "turn_ended"],
    steer: ["steer_too_long", "pending", "turn_not_active", "unknown_turn"],
    steer_what_cannot_be: ["steer_unsupported", "queued", "left"],
    steer_with_a_queued_turn: ["unknown_turn", "pending", "nothing"],
    change_the_queue: ["one two", "two one", "two", "unknown_turn", "unknown_turn", "unknown_turn"],
    name_queued_turns: ["turn id queued"],
    steer_twice_under_one_id: ["id kept"],
    cancel_by_force: ["forced"],
}

KNOWN_GAPS: Final[dict[tuple[str, Callable[[Machine], Awaitable[list[str]]]], list[str]]] = {
    # REST names runs.
    ("edge", name_queued_turns): ["run id queued"],
    # REST makes the id of a steer itself, so that one that is repeated is said twice.
    ("edge", steer_twice_under_one_id): ["id dropped"],
    # REST takes a cancel that is repeated for the same one, and tells how the run ended.
    ("edge", cancel_twice_by_turn): ["canceled", "canceled"],
    # REST has no word for it: `cancel --force --edge` is an ordinary cancel.
    ("edge", cancel_by_force): ["not forced"],
}
"""Where an implementation does not keep the contract, and what it does instead."""


@pytest.mark.requirement("runtime.control.requests")
@pytest.mark.requirement("runtime.control.codes")
@pytest.mark.parametrize("scenario", CONTRACT, ids=lambda scenario: scenario.__name__)
@pytest.mark.parametrize("way", WAYS)
async def test_every_way_to_control_a_turn_gives_the_same_replies(
    tmp_path: Path, way: str, scenario: Callable[[Machine], Awaitable[list[str]]]
):
    async with asyncio.timeout(WAIT), controlled(way, tmp_path) as machine:
        replies = await scenario(machine)
    assert replies == KNOWN_GAPS.get((way, scenario), CONTRACT[scenario])


@asynccontextmanager
async def left_behind(folder: Path) -> AsyncGenerator[tuple[CommandContext, str]]:
    """A journal whose turn nobody runs any more, and the action that the turn asked."""
    configuration = configuration_in(folder)
    workspace = Path(configuration.workspaces[0])
    agent = {"agent": Agent(ask_and_obey, resume="yes")}
    async with (
        open_journal(configuration.journal) as journal,
        Runtime(journal, MemoryBlobs(), agent, workspace=workspace) as runtime,
    ):
        await runtime.submit("thread", "agent", "deploy", turn_id="turn")
        action = await open_action(runtime)
    yield CommandContext(configuration=configuration, workspace=workspace), action


@pytest.mark.requirement("runtime.control.elsewhere")
@pytest.mark.parametrize("way", ["offline", "local"])
async def test_what_nobody_runs_is_controlled_in_the_same_words(tmp_path: Path, way: str):
    async with left_behind(tmp_path) as (context, action):
        offline = OfflineControls(context)
        running = SocketControls(context.configuration.data)
        controls = offline if way == "offline" else LocalControls(running, offline)
        approve = DecideRequest(action_id=action, decision="approve", args_hash=SHOWN_HASH)
        decided = await controls.decide(approve)
        requests = (
            DecideRequest(action_id="act_none", decision="approve", args_hash=SHOWN_HASH),
            approve,
            DecideRequest(action_id=action, decision="deny", args_hash=SHOWN_HASH),
            SteerRequest(thread_id="thread", text="left"),
            QueueRequest(thread_id="thread"),
            CancelRequest(target="thread"),
            CancelRequest(target="turn"),
            CancelRequest(target="trn_none"),
        )
        replies = [await answer_request(controls, request) for request in requests]
        assert await controls.status() == ()
    assert [_word(reply) for reply in (decided, *replies)] == [
        "approved",
        "unknown_action",
        "approved",
        "action_already_decided",
        "turn_not_active",
        "nothing",
        "canceled",
        "turn_ended",
        "unknown_turn",
    ]
    assert controls.is_abandoned(decided)
    assert not any(map(controls.is_abandoned, (replies[0], *replies[2:])))


@pytest.mark.requirement("runtime.control.codes")
async def test_a_socket_that_nobody_listens_on_is_the_only_thing_raised(tmp_path: Path):
    controls = SocketControls(tmp_path)
    assert await controls.status() == ()
    for request in (
        DecideRequest(action_id="act_none", decision="approve", args_hash=SHOWN_HASH),
        CancelRequest(target="trn_none"),
        SteerRequest(thread_id="thr_none", text="left"),
        QueueRequest(thread_id="thr_none"),
    ):
        with pytest.raises(NobodyRunning):
            await answer_request(controls, request)


@pytest.mark.requirement("runtime.control.requests")
@pytest.mark.parametrize("way", ["runtime", "socket"])
async def test_a_runtime_says_what_it_does(tmp_path: Path, way: str):
    async with controlled(way, tmp_path) as machine:
        thread, turn = await machine.started("endless")
        (status,) = await machine.controls.status()
        assert [(now.thread_id, now.turn_id) for now in status.threads] == [(thread, turn)]
        assert isinstance(await answer_request(machine.controls, StatusRequest()), StatusReply)
