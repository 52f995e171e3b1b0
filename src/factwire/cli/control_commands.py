"""`factwire approve`, `deny`, `cancel`, `steer`, `queue`, `rules`: sent to a runtime, or to the
journal.

`command_controls` chooses who is asked: an Edge, a runtime that runs, or the journal.
"""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer
from rich.console import Console

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
from factwire.cli.terminal import DONE, ISSUES, LATER, CliError, terminal_safe

if TYPE_CHECKING:
    from factwire.facts.resources import DecisionCard, StandingRule
    from factwire.runtime.control import (
        CancelReply,
        ControlReply,
        ControlRequest,
        DecideReply,
        QueueReply,
        RulesReply,
        SteerReply,
    )


Action = Annotated[str, typer.Argument(metavar="ACTION", help="The id of the open action.")]
Reason = Annotated[
    str | None, typer.Option(metavar="TEXT", help="The reason; stored with the decision.")
]
ShownHash = Annotated[
    str | None,
    typer.Option(
        "--hash",
        metavar="HASH",
        help="The hash of what you were shown, or its first 16 digits or more; without it, what "
        "you would allow is shown, and you are asked.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def approve(
    action: Action,
    *,
    args_hash: ShownHash = None,
    reason: Reason = None,
    always: Annotated[
        str | None,
        typer.Option(
            metavar="thread|workspace",
            help="Allow this pattern from now on, in the folder of the action alone: on this "
            "thread, or in this workspace.",
        ),
    ] = None,
    expires_in: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="With --always: how long the rule holds."),
    ] = None,
    edge: EdgeOption = None,
    hub: DeviceHubOption = None,
    device: DeviceOption = None,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """Allow an open action, from any terminal.

    Exit code 0: allowed. 1: refused, with a code: unknown_action, action_already_decided,
    action_expired, action_changed, action_not_shown, hash_required. 2: no runtime or Edge could be
    reached. 3: the Hub has your decision, and its device is offline or more people must allow it.
    """
    from factwire.runtime.limits import RULE_SECONDS

    if always not in (None, "thread", "workspace"):
        raise CliError(f"--always expects thread or workspace, got {terminal_safe(always)}")
    if expires_in is not None and (always is None or not 0 < expires_in <= RULE_SECONDS):
        raise CliError("--expires-in expects --always, and a number of seconds above 0")
    answer = _Answer(
        action_id=action,
        decision="approve",
        reason=reason,
        always=always,
        expires_in=expires_in,
        args_hash=args_hash,
    )
    run_work(
        _decide(
            answer, choose_edge(edge, hub, device, journal), journal, workspace, as_json=as_json
        )
    )


def deny(
    action: Action,
    *,
    args_hash: ShownHash = None,
    reason: Reason = None,
    edge: EdgeOption = None,
    hub: DeviceHubOption = None,
    device: DeviceOption = None,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """Deny an open action; the agent continues without it. Exit codes are those of approve."""
    answer = _Answer(action_id=action, decision="deny", reason=reason, args_hash=args_hash)
    run_work(
        _decide(
            answer, choose_edge(edge, hub, device, journal), journal, workspace, as_json=as_json
        )
    )


def cancel(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TURN|THREAD",
            help="A turn, or the thread it runs on; at a Hub also a task, which factwire tasks "
            "lists.",
        ),
    ],
    *,
    reason: Reason = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help=("Cancel it even if another runtime claims it; make sure that runtime is gone."),
        ),
    ] = False,
    edge: EdgeOption = None,
    hub: DeviceHubOption = None,
    device: DeviceOption = None,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """Stop a running turn, close an abandoned one, or remove one from the queue.

    Exit code 0: cancelled. 1: refused, with a code. 2: nobody could be reached. 3: its device at a
    Hub is offline or does not answer, and stops it when it is back.
    """
    from factwire.runtime.control import CancelRequest

    request = CancelRequest(target=target, reason=reason, take_over=force)
    run_work(
        _send(request, choose_edge(edge, hub, device, journal), journal, workspace, as_json=as_json)
    )


def steer(
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The thread of the turn.")],
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="The message.")] = None,
    *,
    turn: Annotated[
        str | None,
        typer.Option(metavar="TURN", help="Send the prompt of this queued turn instead."),
    ] = None,
    queue_it: Annotated[
        bool,
        typer.Option(
            "--queue",
            help="If the turn cannot be steered, queue the message as the next turn; if the device "
            "at the Hub is offline, leave it for the device.",
        ),
    ] = False,
    edge: EdgeOption = None,
    hub: DeviceHubOption = None,
    device: DeviceOption = None,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """Send a message to the running turn of a thread; the agent reads it between two steps.

    A message that the turn does not read becomes the next turn. Exit code 1: refused, with a code:
    turn_not_active, steer_unsupported, steer_too_long, queue_full. 3: left for a device that is
    offline (--queue).
    """
    from factwire.runtime.control import SteerRequest

    if (text is None) == (turn is None):
        raise CliError("give a message, or a queued turn with --turn")
    request = SteerRequest(thread_id=thread, text=text or "", queued_turn_id=turn, queue=queue_it)
    run_work(
        _send(request, choose_edge(edge, hub, device, journal), journal, workspace, as_json=as_json)
    )


def queue(
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The thread.")],
    *,
    promote: Annotated[
        str | None, typer.Option(metavar="TURN", help="Move this turn to the front.")
    ] = None,
    remove: Annotated[
        str | None, typer.Option(metavar="TURN", help="Remove this turn; it will not run.")
    ] = None,
    release: Annotated[
        str | None,
        typer.Option("--continue", metavar="TURN", help="Start this turn, which a stop has held."),
    ] = None,
    release_all: Annotated[
        bool, typer.Option("--continue-all", help="Start all turns that a stop has held.")
    ] = False,
    edge: EdgeOption = None,
    hub: DeviceHubOption = None,
    device: DeviceOption = None,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """List the queued turns of a thread, next one first, and change their order.

    When a turn is cancelled, the turns behind it are held; they start only when you continue them.
    """
    from factwire.runtime.control import QueueRequest

    request = QueueRequest(
        thread_id=thread,
        promote=promote,
        remove=remove,
        release=release,
        release_all=release_all,
    )
    run_work(
        _send(request, choose_edge(edge, hub, device, journal), journal, workspace, as_json=as_json)
    )


def rules(
    *,
    revoke: Annotated[
        str | None, typer.Option(metavar="RULE", help="Revoke the rule with this id.")
    ] = None,
    edge: EdgeOption = None,
    hub: DeviceHubOption = None,
    device: DeviceOption = None,
    journal: JournalOption = None,
    workspace: WorkspaceOption = None,
    as_json: AsJson = False,
) -> None:
    """List the rules that `approve --always` granted and that hold, newest first; revoke one.

    Exit code 1: unknown_standing_rule, no rule with this id holds.
    """
    from factwire.runtime.control import RulesRequest

    request = RulesRequest(revoke=revoke)
    run_work(
        _send(request, choose_edge(edge, hub, device, journal), journal, workspace, as_json=as_json)
    )


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a person says to an open action; `args_hash` is of what they were shown before."""

    action_id: str
    decision: Literal["approve", "deny"]
    reason: str | None = None
    always: Literal["thread", "workspace"] | None = None
    expires_in: float | None = None
    args_hash: str | None = None


async def _decide(
    answer: _Answer,
    edge: EdgeTarget | None,
    journal: JournalOption,
    workspace: WorkspaceOption,
    *,
    as_json: bool,
) -> int:
    from factwire.cli.command_controls import choose_controls
    from factwire.runtime.control import CardRequest, ControlRefusal, DecideRequest

    async with choose_controls(edge, journal, workspace) as controls:
        wanted = CardRequest(action_id=answer.action_id, with_rule=answer.always is not None)
        reply = await controls.card(wanted)
        if isinstance(reply, ControlRefusal):
            return _report(reply, as_json=as_json)
        if reply.rule is not None:
            _print_rule(reply.rule)
        request = DecideRequest(
            action_id=answer.action_id,
            decision=answer.decision,
            reason=answer.reason,
            always=answer.always,
            expires_in=answer.expires_in,
            args_hash=_choose_hash(answer, reply.card),
        )
        decided = await controls.decide(request)
        abandoned = controls.is_abandoned(decided)
    return _report(decided, as_json=as_json, abandoned=abandoned)


def _choose_hash(answer: _Answer, card: "DecisionCard") -> str:
    """The hash of what a person was shown: here, unless they name it. To deny, nobody has to
    look.
    """
    from factwire.cli.action_prompts import HASH_DIGITS, card_lines, open_keyboard

    own = card.args_hash or ""
    if answer.decision == "deny" and answer.args_hash is None:
        return own
    if answer.args_hash is not None:
        named = f"sha256:{answer.args_hash.removeprefix('sha256:')}"
        is_long = len(named) >= len("sha256:") + HASH_DIGITS
        return own if is_long and own.startswith(named) else answer.args_hash
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(terminal_safe(card.prompt or ""), markup=False)
    for line in card_lines(card):
        console.print(line)
    if card.shown is not None and open_keyboard() is None:
        digits = own.removeprefix("sha256:")[:HASH_DIGITS]
        message = f"hash_required: to allow exactly what is shown, repeat it with --hash {digits}"
        raise CliError(message, ISSUES)
    if card.shown is not None and not typer.confirm("Allow exactly this?", err=True):
        raise CliError("not allowed; it still waits for a decision", ISSUES)
    return own


def _print_rule(rule: "StandingRule") -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for line in _rule_lines(rule):
        console.print(line, markup=False)


def _rule_lines(rule: "StandingRule") -> Iterator[str]:
    """What a rule would allow, where, what it would have answered, and what it does not cover."""
    yield f"always: {terminal_safe(rule.rule or '')}"
    yield f"  in {terminal_safe(rule.folder or '')} alone"
    yield f"  it matches {len(rule.matches)} of the last {rule.searched} requests"
    for path in rule.editable:
        yield f"  warning: the agent may edit {terminal_safe(path)}, and the rule still holds"


async def _send(
    request: "ControlRequest",
    edge: EdgeTarget | None,
    journal: JournalOption,
    workspace: WorkspaceOption,
    *,
    as_json: bool,
) -> int:
    from factwire.cli.command_controls import choose_controls
    from factwire.runtime.control import answer_request

    async with choose_controls(edge, journal, workspace) as controls:
        reply = await answer_request(controls, request)
        abandoned = controls.is_abandoned(reply)
    return _report(reply, as_json=as_json, abandoned=abandoned)


def _report(reply: "ControlReply", *, as_json: bool, abandoned: bool = False) -> int:
    from factwire.runtime.control import ControlRefusal

    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(reply) + b"\n")
    elif isinstance(reply, ControlRefusal):
        raise CliError(f"{reply.code}: {terminal_safe(reply.message)}", ISSUES)
    else:
        _print_reply(reply, abandoned=abandoned)
    if isinstance(reply, ControlRefusal):
        return ISSUES
    return DONE if getattr(reply, "later", msgspec.UNSET) is msgspec.UNSET else LATER


def _print_reply(reply: "ControlReply", *, abandoned: bool) -> None:
    from factwire.runtime.control import (
        CancelReply,
        DecideReply,
        QueueReply,
        RulesReply,
        SteerReply,
    )

    lines_of: dict[type, Callable[[Any], Iterator[str]]] = {
        DecideReply: partial(_decision_lines, abandoned=abandoned),
        CancelReply: _cancel_lines,
        SteerReply: _steer_lines,
        QueueReply: _queue_lines,
        RulesReply: _granted_lines,
    }
    console = Console(highlight=False, soft_wrap=True)
    for line in lines_of[type(reply)](reply):
        console.print(line, markup=False)
    later = getattr(reply, "later", msgspec.UNSET)
    if later is not msgspec.UNSET:
        console.print(terminal_safe(later), markup=False)


def _decision_lines(reply: "DecideReply", *, abandoned: bool) -> Iterator[str]:
    by = f" by {terminal_safe(reply.decided_by)}" if reply.decided_by else ""
    yield f"{terminal_safe(reply.decision)}{by}: {terminal_safe(reply.action_id)}"
    if abandoned:
        thread = terminal_safe(reply.thread_id)
        yield f"not running; continue with: factwire resume {thread}"


def _cancel_lines(reply: "CancelReply") -> Iterator[str]:
    word = "cancelled" if reply.later is msgspec.UNSET else "cancelling"
    yield f"{word}: {terminal_safe(reply.turn_id)}"


def _steer_lines(reply: "SteerReply") -> Iterator[str]:
    yield f"{terminal_safe(reply.status)}: {terminal_safe(reply.steer_id)}"


def _queue_lines(reply: "QueueReply") -> Iterator[str]:
    for turn in reply.turns:
        words = [turn.status or "queued", turn.turn_id, turn.agent_id or "", turn.prompt]
        line = "  ".join(terminal_safe(word) for word in words if word)
        when = f"  not before {terminal_safe(turn.not_before)}" if turn.not_before else ""
        yield f"{line}{when}"
    if not reply.turns:
        yield "no queued turns"


def _granted_lines(reply: "RulesReply") -> Iterator[str]:
    for rule in reply.rules:
        scope = f"thread {rule.thread_id}" if rule.workspace is None else f"in {rule.workspace}"
        until = "" if rule.expires_at is None else f"until {rule.expires_at}"
        words = [rule.rule_id, rule.rule, f"folder {rule.folder}", scope, until]
        yield "  ".join(terminal_safe(word) for word in words if word)
    if not reply.rules:
        yield "no standing rules"
