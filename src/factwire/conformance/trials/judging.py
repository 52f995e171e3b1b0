"""Judging an agent: its trials, what it gave in them, and what the journal made of that.

What the runtime made of a turn is judged only where the agent's own facts let the turn get that
far: a fact that was refused is one failure, not two.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from factwire.conformance.case import Finding, broken
from factwire.conformance.limits import TRIAL_SECONDS
from factwire.conformance.results import Result, result
from factwire.conformance.screens.first_screen import repairs, sent
from factwire.conformance.screens.judging import NO_REFS, screened
from factwire.conformance.screens.refs import own_refs
from factwire.conformance.streams import Stream, judged
from factwire.conformance.streams.judging import NO_FACTS
from factwire.conformance.trials.loop_thread import LoopThread, OutOfTime
from factwire.conformance.trials.minimums import MINIMUMS, Minimum, other_turns
from factwire.conformance.trials.plays import TURN_PREFIX, Play
from factwire.conformance.trials.read_models import contradictions, renamed
from factwire.conformance.trials.trial import THREAD, Trial
from factwire.conformance.trials.witness import Account, Witness
from factwire.facts import CapabilityManifest, Fact, is_valid, manifest_issues
from factwire.runtime import Provider

Make = Callable[[], Provider]

_REFUSED: Final = ("invalid_fact", "stream_interrupted", "provider_error")
"""How a turn ends whose facts, or whose end, the runtime could not take."""


class _Tried(msgspec.Struct, frozen=True, kw_only=True):
    """A minimum, and what came of it. `reason` says why there is nothing to judge; what the agent
    gave is there even where the trial came to no end.
    """

    minimum: Minimum
    trial: Trial | None = None
    account: Account | None = None
    stream: Stream | None = None
    findings: tuple[Finding, ...] = ()
    reason: str | None = None


class _Bench(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent is tried."""

    provider: Provider
    make: Make
    prompts: Mapping[str, str]
    seconds: float
    loop: LoopThread

    def play(self, minimum: Minimum, prompt: str) -> Play:
        return Play(
            name=minimum.name,
            prompt=prompt,
            witness=Witness(self.provider),
            make=lambda: Witness(self.make()),
            seconds=self.seconds,
        )


def provider_results(
    provider: Provider, make: Make, prompts: Mapping[str, str], seconds: float = TRIAL_SECONDS
) -> list[Result]:
    """Every requirement of streams, screens and agents, tried on one agent; `make` makes it anew,
    as a restart does.
    """
    with LoopThread() as loop:
        bench = _Bench(provider=provider, make=make, prompts=prompts, seconds=seconds, loop=loop)
        tried = [_try(minimum, bench) for minimum in MINIMUMS]
    trials = [each.trial for each in tried if each.trial is not None]
    sound = [each.trial for each in tried if each.trial is not None and each.reason is None]
    renames = [finding for trial in sound for finding in renamed(trial)]
    return [
        *judged([each.stream for each in tried if each.stream is not None], renames)[0],
        *_screens(trials),
        _manifest(provider.manifest),
        *(_judged(each, provider.manifest, tried) for each in tried),
        *_of_all(sound, renames),
    ]


def _try(minimum: Minimum, bench: _Bench) -> _Tried:
    absent, prompt = minimum.absent(bench.provider.manifest), bench.prompts.get(minimum.prompt)
    if absent is not None:
        return _Tried(minimum=minimum, reason=absent)
    if prompt is None:
        return _Tried(minimum=minimum, findings=(_no_prompt(minimum),))
    play = bench.play(minimum, prompt)
    try:
        trial = bench.loop.run(lambda: minimum.play(play), bench.seconds)
    except OutOfTime as error:
        return _stopped(minimum, play, f"the agent {error}")
    except Exception as error:  # noqa: BLE001 - whatever an agent does to its trial is a finding
        message = f"{type(error).__name__}: {error}"
        reason = _refused(play.account, _stream(play.account, excused=True))
        if reason is None:
            return _stopped(minimum, play, message)
        return _Tried(
            minimum=minimum,
            account=play.account,
            stream=_stream(play.account, excused=True),
            reason=reason,
        )
    return _ended(minimum, trial)


def _stopped(minimum: Minimum, play: Play, message: str) -> _Tried:
    """A trial that came to no end; what the agent gave until then is still judged."""
    text = f"{minimum.name}: {message}"
    finding = broken(minimum.requirement, text, level="runtime", fact=play.last_fact)
    stream = _stream(play.account, excused=True)
    return _Tried(minimum=minimum, account=play.account, stream=stream, findings=(finding,))


def _ended(minimum: Minimum, trial: Trial) -> _Tried:
    """A trial that ended. An agent need not end a turn that was cancelled, or that it left by
    raising.
    """
    excused = trial.outcome == "canceled" or trial.account.ending != "returned"
    stream = _stream(trial.account, excused=excused)
    ends = [fact for fact in trial.facts if fact.event_class == "turn.failed"]
    took = not any(fact.payload.get("failureCategory") in _REFUSED for fact in ends)
    reason = None if took else _refused(trial.account, stream)
    return _Tried(minimum=minimum, trial=trial, account=trial.account, stream=stream, reason=reason)


def _stream(account: Account, *, excused: bool) -> Stream:
    return Stream(
        name=account.turn_id.removeprefix(TURN_PREFIX),
        items=tuple(account.given),
        begun=(account.turn_id,),
        excused=frozenset({account.turn_id} if excused else ()),
        typed=True,
    )


def _refused(account: Account, stream: Stream) -> str | None:
    """Why nothing can be said of how a turn went: the runtime had to refuse what it was given."""
    results, _ = judged([stream])
    rules = {name for each in results if each.level == "facts" for name in each.broken}
    rules |= {finding.requirement for finding in other_turns(account)}
    return f"not judged: what the agent gave breaks {', '.join(sorted(rules))}" if rules else None


def _no_prompt(minimum: Minimum) -> Finding:
    message = (
        f"no prompt for {minimum.prompt!r}: give conformance_prompts[{minimum.prompt!r}] or "
        f"--prompt {minimum.prompt}=TEXT"
    )
    return broken(minimum.requirement, message, level="runtime")


def _screens(trials: list[Trial]) -> list[Result]:
    """The results of all trials in which the agent gave something, each requirement once."""
    found: dict[str, list[Result]] = {}
    for facts in [trial.facts for trial in trials if trial.account.given] or [()]:
        for each in screened(facts):
            found.setdefault(each.id, []).append(each)
    return [_joined(each) for each in found.values()]


def _joined(results: list[Result]) -> Result:
    first = results[0]
    findings = [finding for each in results for finding in each.findings]
    reason = first.reason if all(each.reason for each in results) else None
    return result(first.id, first.title, first.level, first.requirements, findings, reason=reason)


def _manifest(manifest: CapabilityManifest) -> Result:
    issues = manifest_issues(manifest)
    wrong = [issue for issue in issues if not is_valid([issue])]
    findings = [
        broken("provider.manifest", issue.message, level="runtime", path=issue.path)
        for issue in wrong
    ]
    name = "provider.manifest"
    return result(name, "The manifest is sound", "runtime", (name,), findings)


def _judged(tried: _Tried, manifest: CapabilityManifest, all_tried: list[_Tried]) -> Result:
    minimum, trial = tried.minimum, tried.trial
    findings = list(tried.findings)
    if trial is not None and tried.reason is None:
        findings += minimum.judge(trial, manifest)
    for each in all_tried:
        findings += minimum.everywhere(each.account) if each.account is not None else ()
    reason = tried.reason or (NO_FACTS if _is_silent(tried, all_tried) else None)
    return result(
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
    return not any(each.account.given for each in shown if each.account is not None)


def _of_all(trials: list[Trial], renames: list[Finding]) -> Iterator[Result]:
    """Requirements that every trial has a say in that went as the agent meant it to."""
    wrong = [finding for trial in trials for finding in contradictions(trial)]
    keeps = any(trial.models[0] is not None for trial in trials)
    name = "provider.read-model"
    yield result(
        name,
        "The agent's own thread agrees",
        "runtime",
        (name,),
        wrong,
        reason=None if keeps else "the agent keeps no thread of its own",
    )
    yield _refs(trials)
    yield _repair(trials, trusted=not wrong and not renames)


def _refs(trials: list[Trial]) -> Result:
    name = "provider.refs"
    findings = [
        broken(name, f"{trial.name}: nobody kept {ref}", level="runtime", fact=_naming(trial, ref))
        for trial in trials
        for ref in trial.missing
    ]
    any_ref = any(True for trial in trials for _ in own_refs(trial.facts))
    reason = None if any_ref else NO_REFS
    return result(name, "Content behind refs", "runtime", (name,), findings, reason=reason)


def _repair(trials: list[Trial], *, trusted: bool) -> Result:
    """Streams cut anywhere, repaired from the agent's read model where it has a sound one."""
    findings: list[Finding] = []
    heard = [trial for trial in trials if trial.account.given]
    for trial in heard:
        model = trial.models[0] if trusted and trial.account.ending == "returned" else None
        if model is not None:
            model = msgspec.structs.replace(model, event_cursor=trial.state.hydration.cursor)
        given = model or sent(trial.state)
        findings += repairs(trial.facts, given, THREAD, "provider.repair", "runtime")
    name = "provider.repair"
    reason = None if heard else NO_FACTS
    return result(name, "A cut stream is repaired", "runtime", (name,), findings, reason=reason)


def _naming(trial: Trial, ref: str) -> Fact | None:
    return next((f for f in trial.facts if ref in own_refs([f])), None)
