"""`factwire run` and `factwire resume`: turns of agents, seen as they happen."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NoReturn

import msgspec
import typer
from rich.console import Console

from factwire.cli.action_prompts import AlwaysRules, ApprovalMode
from factwire.cli.command_context import CommandContext
from factwire.cli.local_runtime import LocalThread, open_runtime, require_agent
from factwire.cli.project_command import build_summary
from factwire.cli.targets import (
    DeviceHubOption,
    DeviceOption,
    EdgeOption,
    EdgeTarget,
    JournalOption,
    WorkspaceOption,
    choose_edge,
    run_work,
)
from factwire.cli.terminal import CliError, terminal_safe
from factwire.cli.turn_display import Transcript
from factwire.cli.turn_session import WatchRequest, watch_turn
from factwire.runtime import LiveThread, Runtime, new_id
from factwire.runtime.control import terminal_person
from factwire.runtime.recovery import recover

ApproveOption = Annotated[
    str,
    typer.Option(
        "--approve",
        metavar="MODE",
        help=(
            "Who answers approvals: ask (you), never (all are denied), or policy (what the policy "
            "allows is allowed, the rest is denied)."
        ),
    ),
]


def _read_approval_mode(text: str) -> ApprovalMode:
    try:
        return msgspec.convert(text, ApprovalMode)
    except msgspec.ValidationError as error:
        raise CliError(
            f"--approve expects ask, never or policy, got {terminal_safe(text)}"
        ) from error


def run(
    agent: Annotated[str, typer.Argument(help="The agent; factwire doctor lists them.")],
    prompt: Annotated[str, typer.Argument(help="The prompt.")],
    *,
    thread: Annotated[
        str | None, typer.Option(metavar="ID", help="Continue this thread; a new one by default.")
    ] = None,
    edge: EdgeOption = None,
    hub: DeviceHubOption = None,
    device: DeviceOption = None,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The model, for agents that let you choose one."),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The base URL of the model's API.")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(metavar="MODE", help="default, acceptEdits, plan or dontAsk."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="Allow what matches this rule; can be repeated."),
    ] = None,
    ask: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="Ask about what matches this rule; can be repeated."),
    ] = None,
    deny: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="Deny what matches this rule; can be repeated."),
    ] = None,
    sandbox: Annotated[
        str | None, typer.Option(metavar="MODE", help="off, prefer or require.")
    ] = None,
    approve: ApproveOption = "ask",
    queue_it: Annotated[
        bool,
        typer.Option(
            "--queue",
            help="If the device at the Hub is offline, leave the run for it; it starts when the "
            "device is back. Without this option you are asked, if you sit at a terminal.",
        ),
    ] = False,
    expires_in: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="SECONDS",
            help="How long such a run waits for its device; 24 hours by default.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print facts as they are stored (NDJSON).")
    ] = False,
) -> None:
    """Run one turn of an agent and watch it: answer, tools, output and approvals.

    Answer approvals here, or from another terminal with factwire approve and deny. Ctrl-C cancels
    the turn; press it twice to quit at once. Exit code 0: completed. 1: failed. 2: it could not
    start. 3: it was left for a device that is offline (--queue), and has not run yet. 130:
    cancelled.
    """
    from factwire.cli.command_context import AgentFlags, Rules, load_context

    request = TurnRequest(
        agent=agent,
        prompt=prompt,
        thread=thread,
        approve=_read_approval_mode(approve),
        queue=queue_it,
        expires_in=expires_in,
    )
    target = choose_edge(edge, hub, device, journal)
    if (queue_it or expires_in is not None) and (target is None or target.hub is None):
        raise CliError("--queue and --expires-in are for a device at a Hub; name it with --device")
    if target is not None:
        edge_decides = {"--model": model, "--base-url": base_url, "--policy": policy}
        edge_decides |= {"--sandbox": sandbox, "--allow": allow, "--ask": ask, "--deny": deny}
        _refuse_flags(edge_decides)
        _run_on_edge(target, request, workspace, as_json=as_json)
    where = load_context(
        journal=journal,
        workspace=workspace,
        mode=policy,
        sandbox=sandbox,
        rules=Rules(allow=allow or (), ask=ask or (), deny=deny or ()),
        agent=AgentFlags(name=agent, model=model, base_url=base_url),
    )
    run_work(run_turn(where, request, as_json=as_json))


def _refuse_flags(flags: Mapping[str, object]) -> None:
    named = ", ".join(name for name, value in flags.items() if value)
    if named:
        raise CliError(
            f"{named}: set by the Edge's own configuration; omit it, or run locally without "
            "--edge, --hub, FACTWIRE_EDGE and FACTWIRE_HUB"
        )


def _run_on_edge(
    target: EdgeTarget, request: "TurnRequest", workspace: Path | None, *, as_json: bool
) -> NoReturn:
    try:
        from factwire.cli.over_edge import run_over_edge
    except ImportError as error:
        raise CliError(f"missing_extra: {error}") from error

    folder = None
    if workspace is not None:
        # The folders of a device are not those of this machine.
        folder = str(workspace.resolve() if target.hub is None else workspace)
    run_work(run_over_edge(target, request, folder, as_json=as_json))


def resume(
    thread: Annotated[str, typer.Argument(help="The thread; factwire threads lists them.")],
    prompt: Annotated[
        str | None,
        typer.Argument(help="The next prompt; without it, only open and queued work continues."),
    ] = None,
    *,
    agent: Annotated[
        str | None,
        typer.Option(help="The agent for the prompt; the thread's last agent by default."),
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Run the last turn again if it did not complete.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Take over from another runtime; make sure it is gone."),
    ] = False,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    approve: ApproveOption = "ask",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print facts as they are stored (NDJSON).")
    ] = False,
) -> None:
    """Show a thread's status and continue it: wait for its open approval, start queued turns.

    A turn that was running when its process died is closed first; --retry runs it again. The exit
    code is that of the last turn, as with factwire run.
    """
    from factwire.cli.command_context import AgentFlags, load_context

    wanted = ResumeRequest(
        thread=thread,
        prompt=prompt,
        agent=agent,
        retry=retry,
        force=force,
        approve=_read_approval_mode(approve),
    )
    flags = AgentFlags(name=agent) if agent else None
    where = load_context(journal=journal, workspace=workspace, agent=flags)
    run_work(resume_thread(where, wanted, as_json=as_json))


class TurnRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What shall be done by whom; without a thread, on a new one. With `queue`, it may wait for a
    device that is away, for `expires_in` seconds at most.
    """

    agent: str
    prompt: str
    thread: str | None = None
    approve: ApprovalMode = "ask"
    queue: bool = False
    expires_in: int | None = None


async def run_turn(context: CommandContext, request: TurnRequest, *, as_json: bool) -> int:
    """Submit a turn and watch it to its end."""
    thread_id = request.thread or new_id("thr")
    turn_id = new_id("trn")
    async with open_runtime(context) as runtime:
        require_agent(runtime, context, request.agent)
        thread = await runtime.thread(thread_id)

        async def begin() -> None:
            await recover(runtime, (thread_id,))
            by = terminal_person(context.configuration.user)
            await runtime.submit(thread_id, request.agent, request.prompt, turn_id=turn_id, by=by)

        transcript = Transcript(thread.projection.state, turn_id)
        watched = WatchRequest(
            work=LocalThread(runtime, thread, terminal_person(context.configuration.user)),
            turn_id=turn_id,
            begin=begin,
            always=AlwaysRules(runtime.resources.policy, runtime.workspace),
            flags=context.journal_flag,
            approve=request.approve,
        )
        return await watch_turn(watched, transcript, as_json=as_json)


class ResumeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What shall happen on a thread, beside what waits there."""

    thread: str
    prompt: str | None = None
    agent: str | None = None
    retry: bool = False
    force: bool = False
    approve: ApprovalMode = "ask"


async def resume_thread(context: CommandContext, wanted: ResumeRequest, *, as_json: bool) -> int:
    """Go on with a thread and watch it."""
    async with open_runtime(context, create=False) as runtime:
        if await runtime.journal.thread(wanted.thread) is None:
            raise CliError(f"unknown_thread: no thread {terminal_safe(wanted.thread)}")
        thread = await runtime.thread(wanted.thread)
        if not as_json:
            Console(highlight=False).print(build_summary(thread.projection.state))
        turn_id = _choose_turn(runtime, context, thread, wanted)

        async def begin() -> None:
            await recover(runtime, (wanted.thread,), take_over=wanted.force)
            await _begin_turn(runtime, context, thread, wanted, turn_id)

        transcript = Transcript(thread.projection.state, turn_id)
        watched = WatchRequest(
            work=LocalThread(runtime, thread, terminal_person(context.configuration.user)),
            turn_id=turn_id if wanted.prompt is not None else None,
            begin=begin,
            always=AlwaysRules(runtime.resources.policy, runtime.workspace),
            flags=context.journal_flag,
            approve=wanted.approve,
        )
        return await watch_turn(watched, transcript, as_json=as_json)


def _choose_turn(
    runtime: Runtime, context: CommandContext, thread: LiveThread, wanted: ResumeRequest
) -> str | None:
    """The turn that is new, or that is to be run again; None where only what waits goes on."""
    state = thread.projection.state.runtime
    if wanted.prompt is not None:
        require_agent(runtime, context, _choose_agent(thread, wanted, context))
        return new_id("trn")
    if not wanted.retry:
        return None
    if state.latest_turn_id is None or state.latest_turn_status == "completed":
        raise CliError("nothing_to_retry: the last turn of the thread is completed")
    return state.latest_turn_id


async def _begin_turn(
    runtime: Runtime,
    context: CommandContext,
    thread: LiveThread,
    wanted: ResumeRequest,
    turn_id: str | None,
) -> None:
    if turn_id is None:
        return
    by = terminal_person(context.configuration.user)
    if wanted.prompt is None:
        if thread.outcome(turn_id) is not None:
            await runtime.retry(wanted.thread, turn_id, by=by)
        return
    agent = _choose_agent(thread, wanted, context)
    await runtime.submit(wanted.thread, agent, wanted.prompt, turn_id=turn_id, by=by)


def _choose_agent(thread: LiveThread, wanted: ResumeRequest, context: CommandContext) -> str:
    last = thread.projection.state.runtime.agent_id
    return wanted.agent or last or context.configuration.agent or ""
