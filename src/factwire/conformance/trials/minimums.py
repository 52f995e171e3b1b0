"""The minimums: what every agent is asked to show, how it is asked, and what must come of it.

Each row names its prompt and when it does not apply. Only the manifest can make one not apply; an
agent without a prompt has not shown anything.
"""

from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final

import msgspec

from factwire.conformance.case import Finding, broken
from factwire.conformance.limits import BIG_OUTPUT_CHARACTERS
from factwire.conformance.trials import plays
from factwire.conformance.trials.plays import Play
from factwire.conformance.trials.trial import Trial
from factwire.conformance.trials.witness import Account
from factwire.facts import CapabilityManifest, Fact
from factwire.facts.vocabulary import TURN_TERMINALS
from factwire.projection.parts import TextPart

PROMPTS: Final = ("text", "tool", "approval", "failure", "cancel")
"""The prompts that an author gives; some serve more than one minimum."""


class Minimum(msgspec.Struct, frozen=True, kw_only=True):
    """One row: `play` runs it, `judge` says what is wrong, `absent` why it does not apply. What
    `everywhere` finds in any trial breaks it as well. Where `silent`, a trial in which the agent
    gave no fact can pass.
    """

    requirement: str
    title: str
    prompt: str
    play: Callable[[Play], Coroutine[Any, Any, Trial]]
    judge: Callable[[Trial, CapabilityManifest], Iterator[Finding]]
    absent: Callable[[CapabilityManifest], str | None] = lambda _: None
    everywhere: Callable[[Account], Iterator[Finding]] = lambda _: iter(())
    silent: bool = False

    @property
    def name(self) -> str:
        return self.requirement.partition(".")[2]


def _wrong(trial: Trial, requirement: str, message: str, fact: Fact | None = None) -> Finding:
    return broken(requirement, f"{trial.name}: {message}", level="runtime", fact=fact)


def _terminal(trial: Trial) -> Fact | None:
    ends = (fact for fact in trial.facts if fact.event_class in TURN_TERMINALS)
    return next((fact for fact in ends if fact.turn_id == trial.turn_id), None)


def _ends_as(trial: Trial, requirement: str, wanted: str) -> Iterator[Finding]:
    if trial.outcome != wanted:
        said = f" ({trial.account.error})" if trial.account.error else ""
        message = f"expected the turn to end {wanted}, and it {trial.outcome}{said}"
        yield _wrong(trial, requirement, message, _terminal(trial))


def _text(trial: Trial, _: CapabilityManifest) -> Iterator[Finding]:
    yield from _ends_as(trial, "provider.text", "completed")
    answers = [m for m in trial.state.messages if m.role != "user" and m.turn_id == trial.turn_id]
    texts = [part for m in answers for part in m.parts if isinstance(part, TextPart)]
    if not any(str(part.text).strip() for part in texts):
        yield _wrong(trial, "provider.text", "the agent said nothing", _terminal(trial))


def _tool(trial: Trial, _: CapabilityManifest) -> Iterator[Finding]:
    yield from _ends_as(trial, "provider.tool", "completed")
    tools = list(trial.state.tools.values())
    if not any(tool.state == "output-available" for tool in tools):
        message = "no call of a tool has a result"
        yield _wrong(trial, "provider.tool", message, _terminal(trial))
    elif not any(tool.output_ref or tool.ref_ids for tool in tools):
        message = (
            f"no output is behind a ref; ask for a call that says more than "
            f"{BIG_OUTPUT_CHARACTERS:,} characters"
        )
        last = next(f for f in reversed(trial.facts) if f.event_class == "tool.result")
        yield _wrong(trial, "provider.tool", message, last)


def _approval(trial: Trial, _: CapabilityManifest) -> Iterator[Finding]:
    name = "provider.approval"
    yield from _asked(trial, name)
    yield from _ends_as(trial, name, "completed")
    for wait in trial.waits:
        tool = trial.state.tools.get(wait.tool_call_id or "")
        if tool is not None and tool.state not in ("output-available", "output-error"):
            message = f"call {tool.tool_call_id} was approved and stays {tool.state}"
            yield _wrong(trial, name, message, _request(trial, wait.action_id))


def _asked(trial: Trial, requirement: str) -> Iterator[Finding]:
    if not trial.waits:
        yield _wrong(trial, requirement, "nobody was asked", _terminal(trial))
    for wait in trial.waits:
        if wait.status != "waiting":
            message = f"while {wait.action_id} is open the thread reads {wait.status}"
            yield _wrong(trial, requirement, message, _request(trial, wait.action_id))


def _request(trial: Trial, action_id: str) -> Fact | None:
    return next((fact for fact in trial.facts if fact.action_id == action_id), None)


def _denial(trial: Trial, _: CapabilityManifest) -> Iterator[Finding]:
    if not trial.waits:
        yield _wrong(trial, "provider.denial", "nobody was asked", _terminal(trial))
    for wait in trial.waits:
        tool = trial.state.tools.get(wait.tool_call_id or "")
        if tool is not None and tool.state == "output-available":
            message = f"call {tool.tool_call_id} was denied and has a result"
            yield _wrong(trial, "provider.denial", message, _request(trial, wait.action_id))


def _failure(trial: Trial, _: CapabilityManifest) -> Iterator[Finding]:
    end = _terminal(trial)
    if trial.outcome == "failed" and end is not None:
        category = end.payload.get("failureCategory")
        if category in ("provider_error", "stream_interrupted", "timeout"):
            message = f"the agent did not say how its turn failed; the runtime did ({category})"
            yield _wrong(trial, "provider.failure", message, end)
        return
    yield from _ends_as(trial, "provider.failure", "failed")


def _retry(trial: Trial, _: CapabilityManifest) -> Iterator[Finding]:
    name = "provider.retry"
    if trial.account.starts != 1:
        yield _wrong(trial, name, f"one turn was started {trial.account.starts} times")
    if trial.submitted != ("started", "known", "known"):
        yield _wrong(trial, name, f"submitted three times, it was {', '.join(trial.submitted)}")


def other_turns(account: Account) -> Iterator[Finding]:
    """Turns that the agent itself began beside the one that it was asked for."""
    given = [fact for fact in account.given if isinstance(fact, Fact)]
    for fact in given:
        opens = fact.event_class in ("turn.submitted", "turn.started")
        own = fact.subagent_id is None and fact.runtime_entity != "subagent_turn"
        if opens and own and fact.turn_id != account.turn_id:
            message = f"in {account.turn_id} the agent began turn {fact.turn_id} by itself"
            yield broken("provider.retry", message, level="runtime", fact=fact)


def _cancel(trial: Trial, manifest: CapabilityManifest) -> Iterator[Finding]:
    name = "provider.cancel"
    if trial.outcome != "canceled":
        message = f"the turn {trial.outcome} before it could be cancelled; ask for something longer"
        yield _wrong(trial, name, message, _terminal(trial))
    elif manifest.cancel == "yes" and trial.account.ending == "stopped":
        message = "the manifest says that it can be cancelled, and it had to be cut off"
        yield _wrong(trial, name, message, _terminal(trial))


def _resume(trial: Trial, _: CapabilityManifest) -> Iterator[Finding]:
    if not trial.waits:
        yield _wrong(trial, "provider.resume", "nobody was asked", _terminal(trial))
        return
    yield from _ends_as(trial, "provider.resume", "completed")


def _no_tools(manifest: CapabilityManifest) -> str | None:
    classes = manifest.event_classes
    if classes and not any(name.startswith("tool.") for name in classes):
        return "the manifest names no tool.* among its event classes"
    return None


def _no_approvals(manifest: CapabilityManifest) -> str | None:
    return "the manifest says approvals: none" if manifest.approvals == "none" else None


def _no_resume(manifest: CapabilityManifest) -> str | None:
    if manifest.resume != "yes":
        return f"the manifest says resume: {manifest.resume}"
    return _no_approvals(manifest)


def _no_cancel(manifest: CapabilityManifest) -> str | None:
    return "the manifest says cancel: no" if manifest.cancel == "no" else None


MINIMUMS: Final = (
    Minimum(
        requirement="provider.text",
        title="A text turn",
        prompt="text",
        play=plays.straight,
        judge=_text,
    ),
    Minimum(
        requirement="provider.tool",
        title="A tool turn whose big output is a ref",
        prompt="tool",
        play=plays.straight,
        judge=_tool,
        absent=_no_tools,
    ),
    Minimum(
        requirement="provider.approval",
        title="An approval turn that suspends and resumes",
        prompt="approval",
        play=plays.straight,
        judge=_approval,
        absent=_no_approvals,
    ),
    Minimum(
        requirement="provider.denial",
        title="An approval turn that is denied",
        prompt="approval",
        play=plays.denied,
        judge=_denial,
        absent=_no_approvals,
    ),
    Minimum(
        requirement="provider.failure",
        title="A failed turn with category and hint",
        prompt="failure",
        play=plays.straight,
        judge=_failure,
    ),
    Minimum(
        requirement="provider.retry",
        title="No second turn by a retry",
        prompt="text",
        play=plays.retried,
        judge=_retry,
        everywhere=other_turns,
    ),
    Minimum(
        requirement="provider.cancel",
        title="A turn that is cancelled",
        prompt="cancel",
        play=plays.cancelled,
        judge=_cancel,
        absent=_no_cancel,
        silent=True,
    ),
    Minimum(
        requirement="provider.resume",
        title="A restart while a person is asked",
        prompt="approval",
        play=plays.restarted,
        judge=_resume,
        absent=_no_resume,
    ),
)
