"""`factwire team`: teams of agents at a Hub, supervised from a terminal or a script.

`create` makes a team, `run` gives it a goal, `watch` shows what happens until the run is over, and
`stop` cancels it. Where no agent supervises the run, or after `takeover`, `decide` says what comes
next; `handback` has the agent do so again. `merge` brings approved work into a branch on the device
where it was done, and `discard` removes work that nobody wants. Every decision passes the Hub's
guardrails; one that is refused ends the command with the guardrail's code.
"""

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
import typer

from factwire.cli.evidence_packs import open_target
from factwire.cli.over_hub import HubOption, choose_hub
from factwire.cli.targets import hub_client, run_work
from factwire.cli.terminal import DONE, ISSUES, CliError, print_note, terminal_safe

if TYPE_CHECKING:
    from factwire.client import AsyncHubClient, TaskChanges, TeamRun, TeamRunState
    from factwire.client.resources import TeamRole

team = typer.Typer(
    name="team",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

RouteAction = Literal["delegate", "review", "approve", "finish"]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The id of the run.")]
AssignmentArgument = Annotated[
    str, typer.Argument(metavar="ASSIGNMENT", help="The id of the assignment.")
]
_ROLES = ("supervisor", "executor", "reviewer")
_PART_CHARACTERS = 120


@team.callback()
def list_teams(context: typer.Context, *, hub: HubOption = None, as_json: AsJson = False) -> None:
    """List your teams at a Hub with their members, newest first."""
    if context.invoked_subcommand is None:
        run_work(_list_teams(hub, as_json=as_json))


async def _list_teams(hub: str | None, *, as_json: bool) -> int:
    async with hub_client(choose_hub(hub)) as client:
        found = [each async for each in client.teams(limit=100)]
    if as_json:
        _print_json({"items": found})
        return DONE
    if not found:
        print_note("you have no team; make one with `factwire team create`")
    for each in found:
        members = ", ".join(f"{member.name} ({member.role})" for member in each.members)
        _print_line(each.team_id, each.name, members or "no members")
    return DONE


@team.command("create")
def create_team(
    name: Annotated[str, typer.Argument(help="What to call the team.")],
    *,
    member: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=ROLE:AGENT@DEVICE",
            help="An agent on a device, or on any of several, separated by commas; the role is "
            "executor, reviewer or supervisor. Can be repeated.",
        ),
    ] = None,
    hub: HubOption = None,
) -> None:
    """Create a team. An agent as its supervisor decides by itself; without a supervisor among its
    members, you decide.
    """
    run_work(_create_team(name, [_read_member(each) for each in member or ()], hub))


class _NewMember(msgspec.Struct, frozen=True):
    name: str
    role: "TeamRole"
    agent: str
    devices: tuple[str, ...]


def _read_member(text: str) -> _NewMember:
    name, _, rest = text.partition("=")
    role, _, place = rest.partition(":")
    agent, _, devices = place.rpartition("@")
    if not (name and agent and devices) or role not in _ROLES:
        raise CliError(
            f"member_invalid: expected NAME=ROLE:AGENT@DEVICE with one of {', '.join(_ROLES)}, "
            f"got {terminal_safe(text)}"
        )
    return _NewMember(name, role, agent, tuple(devices.split(",")))


async def _create_team(name: str, members: list[_NewMember], hub: str | None) -> int:
    async with hub_client(choose_hub(hub)) as client:
        placed = [
            (each, [(await client.find_device(device)).device_id for device in each.devices])
            for each in members
        ]
        made = await client.create_team(name)
        if all(each.role != "supervisor" for each in members):
            await client.add_team_member(made.team_id, "supervisor", "supervisor")
        for each, device_ids in placed:
            await client.add_team_member(
                made.team_id, each.name, each.role, agent=each.agent, device_ids=device_ids
            )
    typer.echo(terminal_safe(made.team_id))
    return DONE


@team.command("run")
def start_run(
    team_id: Annotated[str, typer.Argument(metavar="TEAM", help="The id of the team.")],
    goal: Annotated[str, typer.Argument(help="What the team is to achieve.")],
    *,
    budget: Annotated[
        int | None, typer.Option(min=1, help="How many tokens its agents may use.")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show what happens until the run is over.")
    ] = False,
    hub: HubOption = None,
) -> None:
    """Start a run of a team, and print its id.

    Where an agent supervises the team, the run goes on by itself from here. Exit codes with --watch
    are those of watch.
    """

    async def start() -> int:
        async with hub_client(choose_hub(hub)) as client:
            run = await client.start_team_run(team_id, goal, budget_tokens=budget)
        if watch:
            return await _watch(run.team_run_id, hub, as_json=False)
        typer.echo(terminal_safe(run.team_run_id))
        return DONE

    run_work(start())


@team.command("decide")
def decide_route(
    run: RunArgument,
    action: Annotated[RouteAction, typer.Argument(help="What comes next.")],
    *,
    worker: Annotated[
        str | None, typer.Option(help="The member who is to do it, by name or id.")
    ] = None,
    instructions: Annotated[str | None, typer.Option(help="What is to be done.")] = None,
    approved: Annotated[
        bool | None,
        typer.Option("--approved/--rejected", help="Whether work is approved, or goes back."),
    ] = None,
    feedback: Annotated[str | None, typer.Option(help="What to do better.")] = None,
    summary: Annotated[str | None, typer.Option(help="What the run came to.")] = None,
    blocked: Annotated[
        str | None, typer.Option(help="What kept the run from its goal: it ends as failed.")
    ] = None,
    subtask: Annotated[
        str | None, typer.Option(help="The task that this is about, by your name for it or its id.")
    ] = None,
    parent: Annotated[str | None, typer.Option(help="The task that a new one belongs to.")] = None,
    reasoning: Annotated[str | None, typer.Option(help="Why you decide so.")] = None,
    hub: HubOption = None,
    as_json: AsJson = False,
) -> None:
    """Decide what comes next in a run: delegate, review, approve or finish.

    Exit code 0: accepted. 1: refused by a guardrail, whose code is printed. 2: the Hub does not
    answer.
    """

    async def decide() -> int:
        async with hub_client(choose_hub(hub)) as client:
            record = await client.decide_route(
                run,
                action,
                next_worker=worker,
                instructions=instructions,
                approved=approved,
                feedback=feedback,
                summary=summary,
                blocked_reason=blocked,
                subtask_id=subtask,
                parent_task_id=parent,
                reasoning=reasoning,
            )
        if as_json:
            _print_json(record)
        else:
            typer.echo(terminal_safe(record.assignment_id or record.decision_id))
        return DONE

    run_work(decide())


@team.command("watch")
def watch_run(
    run: RunArgument,
    *,
    hub: HubOption = None,
    as_json: AsJson = False,
) -> None:
    """Show a run and what happens in it, until it is over and all work has ended.

    Exit code 0: finished. 1: failed or cancelled. 2: the Hub does not answer.
    """
    run_work(_watch(run, hub, as_json=as_json))


async def _watch(run_id: str, hub: str | None, *, as_json: bool) -> int:
    async with hub_client(choose_hub(hub)) as client:
        state = await client.team_run_state(run_id)
        if as_json:
            _print_json(state)
        else:
            _print_state(state)
        if not _is_over(state):
            await _follow(client, state, as_json=as_json)
        run = await client.team_run(run_id)
    return DONE if run.status == "finished" else ISSUES


def _is_over(state: "TeamRunState") -> bool:
    led = state.run.supervision
    is_asked = led is not None and led.status == "asked"
    ended = all(each.ended_at for each in state.assignments)
    return state.run.ended_at is not None and ended and not is_asked


async def _follow(client: "AsyncHubClient", state: "TeamRunState", *, as_json: bool) -> None:
    """Show what comes after a state; the events say by themselves when the run is over."""
    shown = _ShownRun(state)
    async with client.events(cursor=state.as_of) as events:
        async for frame in events:
            for kind, payload in shown.take(frame.type, frame.payload):
                if as_json:
                    _print_json({"type": kind, "payload": payload})
                elif (words := _describe_event(shown.run, kind, payload)) is not None:
                    _print_line(kind, *words)
            if shown.is_over:
                return


class _ShownRun:
    """A run as the events so far have it."""

    def __init__(self, state: "TeamRunState") -> None:
        self.run = state.run
        self._is_ended = state.run.ended_at is not None
        led = state.run.supervision
        self._is_asked = led is not None and led.status == "asked"
        self._opened = {each.assignment_id for each in state.assignments if each.ended_at is None}
        self._run_ids = {each.edge_run_id for each in state.assignments}
        self._held: dict[str, dict[str, Any]] = {}

    @property
    def is_over(self) -> bool:
        return self._is_ended and not self._opened and not self._is_asked

    def take(self, kind: str, payload: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """The events that are to be shown after one: those about this run, and about what its
        agents ask. What an agent asks may come before it is known whose it is.
        """
        if kind == "approval.updated":
            run_id = payload["approval"].get("runId")
            if run_id in self._run_ids:
                yield kind, payload
            elif run_id is not None:
                self._held[run_id] = payload
        elif payload.get("team_run_id") == self.run.team_run_id:
            self._apply(payload)
            yield kind, payload
            for run_id in self._held.keys() & self._run_ids:
                yield "approval.updated", self._held.pop(run_id)

    def _apply(self, payload: dict[str, Any]) -> None:
        assignment, run = payload.get("assignment"), payload.get("run")
        if assignment is not None:
            ended = "endedAt" in assignment
            (self._opened.discard if ended else self._opened.add)(assignment["assignmentId"])
            self._run_ids.add(assignment.get("edgeRunId"))
        if run is not None:
            self._is_ended = "endedAt" in run
            self._is_asked = run.get("supervision", {}).get("status") == "asked"


def _print_state(state: "TeamRunState") -> None:
    run = state.run
    budget = f"{state.budget.used_tokens} of {state.budget.tokens} tokens"
    _print_line(run.team_run_id, run.status, budget, run.goal)
    for each in state.assignments:
        name = _name_of(run, each.team_member_id)
        text = each.result_summary or (each.error or {}).get("message") or each.instructions
        size = () if each.changes is None else (_describe_changes(each.changes),)
        _print_line("", each.assignment_id, name, each.status, text, *size)


def _describe_changes(changes: "TaskChanges") -> str:
    return changes.describe_size() if changes.available else changes.describe_absence()


def _name_of(run: "TeamRun", member_id: str) -> str:
    names = {each.team_member_id: each.name for each in run.roster}
    return names.get(member_id, member_id)


_Words = tuple[str, ...]


def _describe_event(run: "TeamRun", kind: str, payload: dict[str, Any]) -> _Words | None:
    """What an event of a run says, in a few words; None for what another event says better."""
    if kind.startswith("assignment."):
        found = payload["assignment"]
        return *_describe_assignment(run, found), *_describe_files(kind, found)
    describe = _DESCRIPTIONS.get(kind)
    if describe is None:
        return payload["team_task_id"], payload["task"]["title"]
    return describe(payload)


def _describe_assignment(run: "TeamRun", found: dict[str, Any]) -> _Words:
    error: dict[str, Any] = found.get("error") or {}
    text = found.get("resultSummary") or error.get("message") or ""
    return found["assignmentId"], _name_of(run, found["teamMemberId"]), text


def _describe_decision(payload: dict[str, Any]) -> _Words:
    text = payload.get("instructions") or payload.get("feedback") or payload.get("summary")
    return payload["action"], payload.get("next_worker", ""), text or ""


def _describe_approval(payload: dict[str, Any]) -> _Words:
    found = payload["approval"]
    text = found.get("summary") or found.get("toolName") or found["kind"]
    if payload["state"] not in ("asked", "delivered", "seen"):
        return payload["state"], text
    how = f"factwire approve {found['requestId']} --device {payload['device_id']}"
    return payload["state"], text, how


def _describe_change(payload: dict[str, Any]) -> _Words | None:
    run, by = payload["run"], payload["by"].get("name", "")
    if payload["change"] == "supervisor_asked":
        return "asked", by, f"turn {run['supervision']['turn']}"
    if payload["change"] == "supervisor_dropped":
        return "dropped", by, f"turn {run['supervision']['turn']}"
    if payload["change"] == "supervisor_answered":
        found = run["supervision"]
        # What was decided or refused has an event of its own.
        return ("answered", by, found["remark"]) if "remark" in found else None
    return payload["change"], run["status"], run.get("reason") or run.get("summary") or ""


_DESCRIPTIONS: Final[dict[str, Callable[[dict[str, Any]], _Words | None]]] = {
    "team.run.updated": _describe_change,
    "team.route.decided": _describe_decision,
    "team.route.rejected": lambda payload: (payload["reason"], payload["detail"]),
    "team.approval.decided": lambda payload: (
        payload["decision"],
        payload["decided_by"].get("name", ""),
    ),
    "approval.updated": _describe_approval,
}
"""Event → what it says of a run."""


def _describe_files(kind: str, found: dict[str, Any]) -> tuple[str, ...]:
    """What an event of an assignment says of its files."""
    from factwire.client import TaskChanges

    if kind == "assignment.merge_updated":
        merge = found["merge"]
        return merge["status"], merge.get("commit") or " ".join(merge.get("files", ()))
    if "changes" not in found:
        return ()
    return (_describe_changes(msgspec.convert(found["changes"], TaskChanges)),)


def _print_line(*parts: str) -> None:
    shown = (terminal_safe(part)[:_PART_CHARACTERS] for part in parts)
    typer.echo("  ".join(shown).rstrip())


@team.command("takeover")
def take_over_run(run: RunArgument, *, hub: HubOption = None) -> None:
    """Decide about a run in place of the agent that supervises it; a paused run goes on."""

    async def take_over() -> int:
        async with hub_client(choose_hub(hub)) as client:
            taken = await client.take_over_team_run(run)
        print_note(f"you decide about {terminal_safe(taken.team_run_id)} now")
        return DONE

    run_work(take_over())


@team.command("handback")
def hand_back_run(run: RunArgument, *, hub: HubOption = None) -> None:
    """Have the agent that supervises a run decide about it again."""

    async def hand_back() -> int:
        async with hub_client(choose_hub(hub)) as client:
            handed = await client.hand_back_team_run(run)
        print_note(f"an agent decides about {terminal_safe(handed.team_run_id)} again")
        return DONE

    run_work(hand_back())


@team.command("stop")
def stop_run(run: RunArgument, *, hub: HubOption = None) -> None:
    """Cancel a run: its supervising agent first, then the tasks of its workers."""

    async def stop() -> int:
        async with hub_client(choose_hub(hub)) as client:
            stopped = await client.cancel_team_run(run)
        print_note(f"{terminal_safe(stopped.team_run_id)} is {stopped.status}")
        return DONE

    run_work(stop())


@team.command("merge")
def merge_work(
    run: RunArgument,
    assignment: AssignmentArgument,
    *,
    into: Annotated[
        str | None,
        typer.Option(help="The branch; by default the one that is checked out there."),
    ] = None,
    hub: HubOption = None,
) -> None:
    """Merge what an approved assignment changed, on its device, and remove its worktree.

    Exit code 0: merged; the commit is printed. 1: refused, or the printed files are in conflict and
    nothing was changed. 2: the Hub does not answer.
    """

    async def merge() -> int:
        async with hub_client(choose_hub(hub)) as client:
            merged = (await client.merge_assignment(run, assignment, into=into)).merge
        if merged is not None and merged.status == "merged":
            _print_line(merged.commit or "", merged.branch or "")
            return DONE
        if merged is None or merged.status != "conflicts":
            status = "unknown" if merged is None else merged.status
            raise CliError(f"merge_unavailable: the Hub says of the merge: {status}")
        print_note("conflicts: nothing was merged; these files were changed on both sides")
        for name in merged.files:
            typer.echo(terminal_safe(name))
        return ISSUES

    run_work(merge())


@team.command("discard")
def discard_work(
    run: RunArgument, assignment: AssignmentArgument, *, hub: HubOption = None
) -> None:
    """Remove the worktree of an assignment that has ended, with everything in it."""

    async def discard() -> int:
        async with hub_client(choose_hub(hub)) as client:
            state = await client.team_run_state(run)
            found = [each for each in state.assignments if each.assignment_id == assignment]
            if not found or found[0].edge_run_id is None:
                raise CliError("unknown_assignment: the run has no begun assignment with this id")
            async with await client.edge(found[0].device_id) as edge:
                await edge.delete_worktree(found[0].edge_run_id)
        print_note(f"removed the worktree of {terminal_safe(assignment)}")
        return DONE

    run_work(discard())


@team.command("export")
def export_run(
    run: RunArgument,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The file to write; - is standard output.")
    ],
    *,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    blobs: Annotated[
        bool, typer.Option("--blobs", help="Include the content that facts refer to.")
    ] = False,
    hub: HubOption = None,
) -> None:
    """Save an evidence pack of a run with the threads of all members.

    `factwire evidence verify FILE` checks it, offline.
    """

    async def export() -> int:
        with open_target(file, force=force) as target:
            async with (
                hub_client(choose_hub(hub)) as client,
                client.team_evidence(run, blobs=blobs) as content,
            ):
                async for piece in content:
                    target.write(piece)
        print_note(f"saved {terminal_safe(file)}")
        return DONE

    run_work(export())


def _print_json(value: object) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()
