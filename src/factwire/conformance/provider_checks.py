"""Every requirement tried on one agent: its trials, what it gave, what the journal made of that.

What the runtime made of a turn is judged only where the agent's own facts let the turn get that
far: a fact that was refused is one failure, not two. An agent may keep no thread of its own; one
that does may not know more, or less, than its facts say.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, Generic, Self, TypeVar

import msgspec

from factwire.conformance.case import Finding, Result, build_finding, build_result
from factwire.conformance.limits import GRACE_SECONDS, TRIAL_SECONDS
from factwire.conformance.provider_minimums import (
    MINIMUMS,
    TURN_PREFIX,
    Minimum,
    TrialCourse,
    find_other_turns,
)
from factwire.conformance.provider_trial import (
    THREAD,
    ProviderRecord,
    ProviderTrial,
    RecordingProvider,
)
from factwire.conformance.screen_checks import (
    NO_REFS,
    check_repairs,
    check_screens,
    own_refs,
    send_read_model,
)
from factwire.conformance.stream_checks import NO_FACTS, JudgedStream, check_streams
from factwire.facts import CapabilityManifest, Fact, id_of, is_valid, manifest_issues
from factwire.projection import ThreadReadModel, thread_read_model
from factwire.runtime import Provider

T = TypeVar("T")


class TookTooLong(Exception):
    def __init__(self, seconds: float) -> None:
        super().__init__(f"took more than {seconds:g} s")


class _Answer(Generic[T]):
    value: T
    error: BaseException | None = None


def run_in_time(compute: Callable[[], T], seconds: float) -> T:
    """What the computation returns or raises, or `TookTooLong`."""
    answer: _Answer[T] = _Answer()

    def work() -> None:
        try:
            answer.value = compute()
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
            answer.error = error

    thread = threading.Thread(target=work, name="conformance-case", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TookTooLong(seconds)
    if answer.error is not None:
        raise answer.error
    return answer.value


class OutOfTime(Exception):
    """`stuck` is whether the work could not even be cancelled."""

    def __init__(self, seconds: float, *, stuck: bool) -> None:
        self.stuck = stuck
        did = "blocked its event loop and could not be stopped" if stuck else "did not end"
        super().__init__(f"{did} within {seconds:g} s")


class TriedToExit(Exception):
    """The work raised what would have ended the process."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"tried to end the process: {type(error).__name__}: {error}")


class LoopThread:
    """Runs coroutines one after the other on one loop; a context manager."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="conformance", daemon=True)
        self._leaving = False
        self.stuck = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        if not self.stuck:
            self._thread.join(GRACE_SECONDS)

    def run(self, work: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T:
        """The result of the work, or `OutOfTime`."""
        ended = threading.Event()

        async def watch_work() -> T:
            try:
                return await work()
            except (SystemExit, KeyboardInterrupt) as error:
                raise TriedToExit(error) from error
            finally:
                ended.set()

        if self.stuck:
            raise OutOfTime(seconds, stuck=True)
        future = asyncio.run_coroutine_threadsafe(watch_work(), self._loop)
        try:
            return future.result(seconds)
        except TimeoutError:
            if future.done():
                raise  # The work's own, and not the end of its time.
        future.cancel()
        self.stuck = not ended.wait(GRACE_SECONDS)
        raise OutOfTime(seconds, stuck=self.stuck)

    def _run(self) -> None:
        """Unlike `asyncio.Runner`, wait for no thread of the loop's executor in the end."""
        asyncio.set_event_loop(self._loop)
        try:
            while not self._leaving:
                # A task that an agent began by itself may leave the loop; the others stay.
                with suppress(SystemExit, KeyboardInterrupt):
                    self._loop.run_forever()
        finally:
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


_READ_MODEL: Final = "provider.read-model"


def find_contradictions(trial: ProviderTrial) -> Iterator[Finding]:
    """What the read model says otherwise than the facts, or does not say."""
    model = trial.models[0]
    if model is None or trial.account.ending != "returned":
        # How a turn ended that others had to end, the agent need not know.
        return
    own = thread_read_model(trial.state)
    for message in (*_compare_statuses(model, own), *_compare_calls(model, own)):
        yield build_finding(
            _READ_MODEL, f"{trial.name}: {message}", level="runtime", fact=_last_fact(trial)
        )


def find_renamed(trial: ProviderTrial) -> Iterator[Finding]:
    """Ids in the read model that no fact knows, and a model that changes while nothing happens."""
    model, again = trial.models
    if model is None:
        return
    known = {id_of(fact, name) for fact in trial.facts for name in ("toolCallId", "actionId")}
    named = [call.tool_call_id for call in model.tool_calls]
    named += [action.action_id for action in model.pending_actions]
    unknown = [name for name in named if name not in known]
    messages = [f"{name} is in the read model and in no fact" for name in unknown]
    if model != again:
        messages.append("read twice, the thread differs")
    for message in messages:
        text = f"{trial.name}: {message}"
        yield build_finding("screen.stable-ids", text, level="projection", fact=_last_fact(trial))


def _compare_statuses(model: ThreadReadModel, own: ThreadReadModel) -> Iterator[str]:
    if model.status != own.status:
        yield f"the read model says {model.status}, the facts say {own.status}"
    stated = None if model.last_outcome is None else model.last_outcome.status
    ended = None if own.last_outcome is None else own.last_outcome.status
    if stated != ended:
        yield f"the read model says that the last turn ended {stated}, the facts say {ended}"
    waits = {action.action_id for action in own.pending_actions}
    lost = waits - {action.action_id for action in model.pending_actions}
    yield from (f"{name} is open and not in the read model" for name in sorted(lost))


def _compare_calls(model: ThreadReadModel, own: ThreadReadModel) -> Iterator[str]:
    stated = {call.tool_call_id: call for call in model.tool_calls}
    if not stated and own.tool_calls:
        yield f"none of {len(own.tool_calls)} calls is in the read model"
    for call in own.tool_calls:
        found = stated.get(call.tool_call_id)
        if found is not None and found.state != call.state:
            yield f"call {call.tool_call_id} is {found.state}, the facts say {call.state}"
        if found is not None and found.output_ref != call.output_ref:
            yield f"call {call.tool_call_id} names {found.output_ref}, not {call.output_ref}"


def _last_fact(trial: ProviderTrial) -> Fact | None:
    return trial.facts[-1] if trial.facts else None


Make = Callable[[], Provider]

_REFUSED: Final = ("invalid_fact", "stream_interrupted", "provider_error")
"""How a turn ends whose facts, or whose end, the runtime could not take."""


class _Tried(msgspec.Struct, frozen=True, kw_only=True):
    """A minimum, and what came of it. `reason` says why there is nothing to judge; what the agent
    gave is there even where the trial came to no end.
    """

    minimum: Minimum
    trial: ProviderTrial | None = None
    account: ProviderRecord | None = None
    stream: JudgedStream | None = None
    findings: tuple[Finding, ...] = ()
    reason: str | None = None


class _TrialSetup(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent is tried."""

    provider: Provider
    make: Make
    prompts: Mapping[str, str]
    seconds: float
    loop: LoopThread

    def course(self, minimum: Minimum, prompt: str) -> TrialCourse:
        return TrialCourse(
            name=minimum.name,
            prompt=prompt,
            witness=RecordingProvider(self.provider),
            make=lambda: RecordingProvider(self.make()),
            seconds=self.seconds,
        )


def provider_results(
    provider: Provider, make: Make, prompts: Mapping[str, str], seconds: float = TRIAL_SECONDS
) -> list[Result]:
    """Every requirement of streams, screens and agents, tried on one agent; `make` makes it anew,
    as a restart does.
    """
    with LoopThread() as loop:
        setup = _TrialSetup(
            provider=provider, make=make, prompts=prompts, seconds=seconds, loop=loop
        )
        tried = [_try_minimum(minimum, setup) for minimum in MINIMUMS]
    trials = [each.trial for each in tried if each.trial is not None]
    sound = [each.trial for each in tried if each.trial is not None and each.reason is None]
    renames = [finding for trial in sound for finding in find_renamed(trial)]
    return [
        *check_streams([each.stream for each in tried if each.stream is not None], renames)[0],
        *_screen_results(trials),
        _manifest_result(provider.manifest),
        *(_minimum_result(each, provider.manifest, tried) for each in tried),
        *_common_results(sound, renames),
    ]


def _try_minimum(minimum: Minimum, setup: _TrialSetup) -> _Tried:
    absent, prompt = minimum.absent(setup.provider.manifest), setup.prompts.get(minimum.prompt)
    if absent is not None:
        return _Tried(minimum=minimum, reason=absent)
    if prompt is None:
        return _Tried(minimum=minimum, findings=(_no_prompt(minimum),))
    play = setup.course(minimum, prompt)
    try:
        trial = setup.loop.run(lambda: minimum.play(play), setup.seconds)
    except OutOfTime as error:
        return _stopped_trial(minimum, play, f"the agent {error}")
    except Exception as error:  # noqa: BLE001 - whatever an agent does to its trial is a finding
        message = f"{type(error).__name__}: {error}"
        reason = _refusal_reason(play.account, _stream_of(play.account, excused=True))
        if reason is None:
            return _stopped_trial(minimum, play, message)
        return _Tried(
            minimum=minimum,
            account=play.account,
            stream=_stream_of(play.account, excused=True),
            reason=reason,
        )
    return _ended_trial(minimum, trial)


def _stopped_trial(minimum: Minimum, play: TrialCourse, message: str) -> _Tried:
    """A trial that came to no end; what the agent gave until then is still judged."""
    text = f"{minimum.name}: {message}"
    finding = build_finding(minimum.requirement, text, level="runtime", fact=play.last_fact)
    stream = _stream_of(play.account, excused=True)
    return _Tried(minimum=minimum, account=play.account, stream=stream, findings=(finding,))


def _ended_trial(minimum: Minimum, trial: ProviderTrial) -> _Tried:
    """A trial that ended. An agent need not end a turn that was cancelled, or that it left by
    raising.
    """
    excused = trial.outcome == "canceled" or trial.account.ending != "returned"
    stream = _stream_of(trial.account, excused=excused)
    ends = [fact for fact in trial.facts if fact.event_class == "turn.failed"]
    took = not any(fact.payload.get("failureCategory") in _REFUSED for fact in ends)
    reason = None if took else _refusal_reason(trial.account, stream)
    return _Tried(minimum=minimum, trial=trial, account=trial.account, stream=stream, reason=reason)


def _stream_of(account: ProviderRecord, *, excused: bool) -> JudgedStream:
    return JudgedStream(
        name=account.turn_id.removeprefix(TURN_PREFIX),
        items=tuple(account.items),
        begun=(account.turn_id,),
        excused=frozenset({account.turn_id} if excused else ()),
        typed=True,
    )


def _refusal_reason(account: ProviderRecord, stream: JudgedStream) -> str | None:
    """Why nothing can be said of how a turn went: the runtime had to refuse what it was given."""
    results, _ = check_streams([stream])
    rules = {name for each in results if each.level == "facts" for name in each.broken}
    rules |= {finding.requirement for finding in find_other_turns(account)}
    return f"not judged: what the agent gave breaks {', '.join(sorted(rules))}" if rules else None


def _no_prompt(minimum: Minimum) -> Finding:
    message = (
        f"no prompt for {minimum.prompt!r}: give conformance_prompts[{minimum.prompt!r}] or "
        f"--prompt {minimum.prompt}=TEXT"
    )
    return build_finding(minimum.requirement, message, level="runtime")


def _screen_results(trials: list[ProviderTrial]) -> list[Result]:
    """The results of all trials in which the agent gave something, each requirement once."""
    found: dict[str, list[Result]] = {}
    for facts in [trial.facts for trial in trials if trial.account.items] or [()]:
        for each in check_screens(facts):
            found.setdefault(each.id, []).append(each)
    return [_join_results(each) for each in found.values()]


def _join_results(results: list[Result]) -> Result:
    first = results[0]
    findings = [finding for each in results for finding in each.findings]
    reason = first.reason if all(each.reason for each in results) else None
    return build_result(
        first.id, first.title, first.level, first.requirements, findings, reason=reason
    )


def _manifest_result(manifest: CapabilityManifest) -> Result:
    issues = manifest_issues(manifest)
    wrong = [issue for issue in issues if not is_valid([issue])]
    findings = [
        build_finding("provider.manifest", issue.message, level="runtime", path=issue.path)
        for issue in wrong
    ]
    name = "provider.manifest"
    return build_result(name, "The manifest is sound", "runtime", (name,), findings)


def _minimum_result(tried: _Tried, manifest: CapabilityManifest, all_tried: list[_Tried]) -> Result:
    minimum, trial = tried.minimum, tried.trial
    findings = list(tried.findings)
    if trial is not None and tried.reason is None:
        findings += minimum.judge(trial, manifest)
    for each in all_tried:
        findings += minimum.everywhere(each.account) if each.account is not None else ()
    reason = tried.reason or (NO_FACTS if _is_silent(tried, all_tried) else None)
    return build_result(
        minimum.requirement,
        minimum.title,
        "runtime",
        (minimum.requirement,),
        findings,
        reason=reason,
    )


def _is_silent(tried: _Tried, all_tried: list[_Tried]) -> bool:
    """Whether a trial shows nothing, since the agent gave nothing that could be judged."""
    shown = all_tried if tried.minimum.silent else [tried]
    return not any(each.account.items for each in shown if each.account is not None)


def _common_results(trials: list[ProviderTrial], renames: list[Finding]) -> Iterator[Result]:
    """Requirements that every trial has a say in that went as the agent meant it to."""
    wrong = [finding for trial in trials for finding in find_contradictions(trial)]
    keeps = any(trial.models[0] is not None for trial in trials)
    name = "provider.read-model"
    yield build_result(
        name,
        "The agent's own thread agrees",
        "runtime",
        (name,),
        wrong,
        reason=None if keeps else "the agent keeps no thread of its own",
    )
    yield _refs_result(trials)
    yield _repair_result(trials, trusted=not wrong and not renames)


def _refs_result(trials: list[ProviderTrial]) -> Result:
    name = "provider.refs"
    findings = [
        build_finding(
            name, f"{trial.name}: nobody kept {ref}", level="runtime", fact=_fact_naming(trial, ref)
        )
        for trial in trials
        for ref in trial.missing
    ]
    any_ref = any(True for trial in trials for _ in own_refs(trial.facts))
    reason = None if any_ref else NO_REFS
    return build_result(name, "Content behind refs", "runtime", (name,), findings, reason=reason)


def _repair_result(trials: list[ProviderTrial], *, trusted: bool) -> Result:
    """Streams cut anywhere, repaired from the agent's read model where it has a sound one."""
    findings: list[Finding] = []
    heard = [trial for trial in trials if trial.account.items]
    for trial in heard:
        model = trial.models[0] if trusted and trial.account.ending == "returned" else None
        if model is not None:
            model = msgspec.structs.replace(model, event_cursor=trial.state.hydration.cursor)
        read_model = model or send_read_model(trial.state)
        findings += check_repairs(trial.facts, read_model, THREAD, "provider.repair", "runtime")
    name = "provider.repair"
    reason = None if heard else NO_FACTS
    return build_result(
        name, "A cut stream is repaired", "runtime", (name,), findings, reason=reason
    )


def _fact_naming(trial: ProviderTrial, ref: str) -> Fact | None:
    return next((f for f in trial.facts if ref in own_refs([f])), None)
