"""The minimums: what every agent is asked to show, how it is asked, and what must come of it.

Each row names its prompt, the course that its trial takes, and when it does not apply. Only the
manifest can make one not apply; an agent without a prompt has not shown anything.
"""

from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final

import msgspec

from factwire.conformance.case import Finding, build_finding
from factwire.conformance.limits import BIG_OUTPUT_CHARACTERS
from factwire.conformance.provider_trial import (
    THREAD,
    ProviderRecord,
    ProviderTrial,
    RecordingProvider,
    open_storage,
)
from factwire.facts import CapabilityManifest, Fact, entity_of
from factwire.facts.classes.class_tables import TURN_TERMINALS
from factwire.projection.messages import TextPart

TURN_PREFIX: Final = "trn_"


class TrialCourse(msgspec.Struct, frozen=True, kw_only=True):
    """One trial to be run. `make` makes the agent anew, as the start of a process does."""

    name: str
    prompt: str
    witness: RecordingProvider
    make: Callable[[], RecordingProvider]
    seconds: float

    @property
    def turn_id(self) -> str:
        return f"{TURN_PREFIX}{self.name}"

    @property
    def account(self) -> ProviderRecord:
        return self.witness.account(self.turn_id)

    @property
    def last_fact(self) -> Fact | None:
        """The last fact that the agent gave."""
        newest_first = reversed(self.account.items)
        return next((fact for fact in newest_first if isinstance(fact, Fact)), None)


async def run_straight(play: TrialCourse, decision: str = "approve") -> ProviderTrial:
    """The prompt, with every request answered the same."""
    async with open_storage(play.seconds) as place, place.open_runtime(play.witness) as stage:
        await stage.submit(play.turn_id, play.prompt)
        outcome = await stage.wait_for_end(play.turn_id, decision)
        return await stage.build_trial(play.name, play.turn_id, outcome)


async def run_denied(play: TrialCourse) -> ProviderTrial:
    return await run_straight(play, "deny")


async def run_retried(play: TrialCourse) -> ProviderTrial:
    """The same turn submitted again while it runs, and once more after its end."""
    async with open_storage(play.seconds) as place, place.open_runtime(play.witness) as stage:
        submitted = [await stage.submit(play.turn_id, play.prompt) for _ in range(2)]
        outcome = await stage.wait_for_end(play.turn_id)
        submitted.append(await stage.submit(play.turn_id, play.prompt))
        await stage.wait_for_end(play.turn_id)
        return await stage.build_trial(play.name, play.turn_id, outcome, submitted=tuple(submitted))


async def run_cancelled(play: TrialCourse) -> ProviderTrial:
    """The turn is cancelled as soon as the agent has given its first fact."""
    async with open_storage(play.seconds) as place, place.open_runtime(play.witness) as stage:
        await stage.submit(play.turn_id, play.prompt)
        await stage.wait_for_first_fact(play.turn_id)
        thread = await stage.runtime.thread(THREAD)
        if thread.turn is not None:
            await stage.runtime.cancel(THREAD, play.turn_id, "conformance")
        outcome = await stage.wait_for_end(play.turn_id)
        return await stage.build_trial(play.name, play.turn_id, outcome)


async def run_restarted(play: TrialCourse) -> ProviderTrial:
    """The runtime stops while the agent waits; another one, with the agent made anew, goes on."""
    async with open_storage(play.seconds) as place:
        async with place.open_runtime(play.witness) as stage:
            await stage.submit(play.turn_id, play.prompt)
            outcome = await stage.wait_for_end(play.turn_id, None)
            before = await stage.build_trial(play.name, play.turn_id, outcome)
        if outcome != "waiting":
            return before
        async with place.open_runtime(play.make()) as stage:
            outcome = await stage.wait_for_end(play.turn_id)
            after = await stage.build_trial(play.name, play.turn_id, outcome)
        account = after.account
        account.items[:0] = before.account.items
        return msgspec.structs.replace(after, waits=before.waits)


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
    play: Callable[[TrialCourse], Coroutine[Any, Any, ProviderTrial]]
    judge: Callable[[ProviderTrial, CapabilityManifest], Iterator[Finding]]
    absent: Callable[[CapabilityManifest], str | None] = lambda _: None
    everywhere: Callable[[ProviderRecord], Iterator[Finding]] = lambda _: iter(())
    silent: bool = False

    @property
    def name(self) -> str:
        return self.requirement.partition(".")[2]


def _trial_finding(
    trial: ProviderTrial, requirement: str, message: str, fact: Fact | None = None
) -> Finding:
    return build_finding(requirement, f"{trial.name}: {message}", level="runtime", fact=fact)


def _terminal_fact(trial: ProviderTrial) -> Fact | None:
    ends = (fact for fact in trial.facts if fact.event_class in TURN_TERMINALS)
    return next((fact for fact in ends if fact.turn_id == trial.turn_id), None)


def _require_outcome(trial: ProviderTrial, requirement: str, wanted: str) -> Iterator[Finding]:
    if trial.outcome != wanted:
        error = f" ({trial.account.error})" if trial.account.error else ""
        message = f"expected the turn to end {wanted}, and it {trial.outcome}{error}"
        yield _trial_finding(trial, requirement, message, _terminal_fact(trial))


def _judge_text(trial: ProviderTrial, _: CapabilityManifest) -> Iterator[Finding]:
    yield from _require_outcome(trial, "provider.text", "completed")
    answers = [m for m in trial.state.messages if m.role != "user" and m.turn_id == trial.turn_id]
    texts = [part for m in answers for part in m.parts if isinstance(part, TextPart)]
    if not any(str(part.text).strip() for part in texts):
        yield _trial_finding(
            trial, "provider.text", "the agent said nothing", _terminal_fact(trial)
        )


def _judge_tool(trial: ProviderTrial, _: CapabilityManifest) -> Iterator[Finding]:
    yield from _require_outcome(trial, "provider.tool", "completed")
    tools = list(trial.state.tools.values())
    if not any(tool.state == "output-available" for tool in tools):
        message = "no call of a tool has a result"
        yield _trial_finding(trial, "provider.tool", message, _terminal_fact(trial))
    elif not any(tool.output_ref or tool.ref_ids for tool in tools):
        message = (
            f"no output is behind a ref; ask for a call that says more than "
            f"{BIG_OUTPUT_CHARACTERS:,} characters"
        )
        last = next(f for f in reversed(trial.facts) if f.event_class == "tool.result")
        yield _trial_finding(trial, "provider.tool", message, last)


def _judge_approval(trial: ProviderTrial, _: CapabilityManifest) -> Iterator[Finding]:
    name = "provider.approval"
    yield from _require_question(trial, name)
    yield from _require_outcome(trial, name, "completed")
    for wait in trial.waits:
        tool = trial.state.tools.get(wait.tool_call_id or "")
        if tool is not None and tool.state not in ("output-available", "output-error"):
            message = f"call {tool.tool_call_id} was approved and stays {tool.state}"
            yield _trial_finding(trial, name, message, _request_fact(trial, wait.action_id))


def _require_question(trial: ProviderTrial, requirement: str) -> Iterator[Finding]:
    if not trial.waits:
        yield _trial_finding(trial, requirement, "nobody was asked", _terminal_fact(trial))
    for wait in trial.waits:
        if wait.status != "waiting":
            message = f"while {wait.action_id} is open the thread reads {wait.status}"
            yield _trial_finding(trial, requirement, message, _request_fact(trial, wait.action_id))


def _request_fact(trial: ProviderTrial, action_id: str) -> Fact | None:
    return next((fact for fact in trial.facts if fact.action_id == action_id), None)


def _judge_denial(trial: ProviderTrial, _: CapabilityManifest) -> Iterator[Finding]:
    if not trial.waits:
        yield _trial_finding(trial, "provider.denial", "nobody was asked", _terminal_fact(trial))
    for wait in trial.waits:
        tool = trial.state.tools.get(wait.tool_call_id or "")
        if tool is not None and tool.state == "output-available":
            message = f"call {tool.tool_call_id} was denied and has a result"
            yield _trial_finding(
                trial, "provider.denial", message, _request_fact(trial, wait.action_id)
            )


def _judge_failure(trial: ProviderTrial, _: CapabilityManifest) -> Iterator[Finding]:
    end = _terminal_fact(trial)
    if trial.outcome == "failed" and end is not None:
        category = end.payload.get("failureCategory")
        if category in ("provider_error", "stream_interrupted", "timeout"):
            message = f"the agent did not say how its turn failed; the runtime did ({category})"
            yield _trial_finding(trial, "provider.failure", message, end)
        return
    yield from _require_outcome(trial, "provider.failure", "failed")


def _judge_retry(trial: ProviderTrial, _: CapabilityManifest) -> Iterator[Finding]:
    name = "provider.retry"
    if trial.account.starts != 1:
        yield _trial_finding(trial, name, f"one turn was started {trial.account.starts} times")
    if trial.submitted != ("started", "known", "known"):
        yield _trial_finding(
            trial, name, f"submitted three times, it was {', '.join(trial.submitted)}"
        )


def find_other_turns(account: ProviderRecord) -> Iterator[Finding]:
    """Turns that the agent itself began beside the one that it was asked for."""
    facts = [fact for fact in account.items if isinstance(fact, Fact)]
    for fact in facts:
        opens = fact.event_class in ("turn.submitted", "turn.started")
        if opens and entity_of(fact) is None and fact.turn_id != account.turn_id:
            message = f"in {account.turn_id} the agent began turn {fact.turn_id} by itself"
            yield build_finding("provider.retry", message, level="runtime", fact=fact)


def _judge_cancel(trial: ProviderTrial, manifest: CapabilityManifest) -> Iterator[Finding]:
    name = "provider.cancel"
    if trial.outcome != "canceled":
        message = f"the turn {trial.outcome} before it could be cancelled; ask for something longer"
        yield _trial_finding(trial, name, message, _terminal_fact(trial))
    elif manifest.cancel == "yes" and trial.account.ending == "stopped":
        message = "the manifest says that it can be cancelled, and it had to be cut off"
        yield _trial_finding(trial, name, message, _terminal_fact(trial))


def _judge_resume(trial: ProviderTrial, _: CapabilityManifest) -> Iterator[Finding]:
    if not trial.waits:
        yield _trial_finding(trial, "provider.resume", "nobody was asked", _terminal_fact(trial))
        return
    yield from _require_outcome(trial, "provider.resume", "completed")


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
        play=run_straight,
        judge=_judge_text,
    ),
    Minimum(
        requirement="provider.tool",
        title="A tool turn whose big output is a ref",
        prompt="tool",
        play=run_straight,
        judge=_judge_tool,
        absent=_no_tools,
    ),
    Minimum(
        requirement="provider.approval",
        title="An approval turn that suspends and resumes",
        prompt="approval",
        play=run_straight,
        judge=_judge_approval,
        absent=_no_approvals,
    ),
    Minimum(
        requirement="provider.denial",
        title="An approval turn that is denied",
        prompt="approval",
        play=run_denied,
        judge=_judge_denial,
        absent=_no_approvals,
    ),
    Minimum(
        requirement="provider.failure",
        title="A failed turn with category and hint",
        prompt="failure",
        play=run_straight,
        judge=_judge_failure,
    ),
    Minimum(
        requirement="provider.retry",
        title="No second turn by a retry",
        prompt="text",
        play=run_retried,
        judge=_judge_retry,
        everywhere=find_other_turns,
    ),
    Minimum(
        requirement="provider.cancel",
        title="A turn that is cancelled",
        prompt="cancel",
        play=run_cancelled,
        judge=_judge_cancel,
        absent=_no_cancel,
        silent=True,
    ),
    Minimum(
        requirement="provider.resume",
        title="A restart while a person is asked",
        prompt="approval",
        play=run_restarted,
        judge=_judge_resume,
        absent=_no_resume,
    ),
)
