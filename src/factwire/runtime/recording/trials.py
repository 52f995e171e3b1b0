"""A trial of a benchmark as it is recorded: started once, ended once, rewarded when that is known.

Turns that are recorded meanwhile are what the trial did, and what they cost is its cost.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypedDict, Unpack

from factwire.facts import Fact
from factwire.journal.blobs import BlobStore
from factwire.runtime.errors import TurnFailed
from factwire.runtime.minting import Mint, Scope
from factwire.runtime.thread_log import ThreadLog


class TrialOptions(TypedDict, total=False):
    """What is tried on what, with which settings; `trial_id` is made up if not given."""

    dataset: str
    configuration: dict[str, Any]
    trial_id: str


class TrialRecorder:
    """Records one trial."""

    def __init__(
        self, log: ThreadLog, blobs: BlobStore, mint: Mint, scope: Scope, trial_id: str
    ) -> None:
        self.trial_id = trial_id
        self._log = log
        self._blobs = blobs
        self._mint = mint
        self._scope = scope
        self._refs: list[str] = []
        self._ended = False

    def reward(self, value: float, name: str | None = None) -> None:
        """What the trial earned; a further reward goes by a name of its own."""
        named = {} if name is None else {"name": name}
        self._put("benchmark.reward.recorded", {"reward": value, **named})

    async def trajectory(self, content: bytes | str) -> str:
        """What was done, kept as a blob; its ref."""
        data = content.encode() if isinstance(content, str) else content
        ref = (await self._blobs.put(data, kind="trace")).ref
        self.refers_to(ref)
        return ref

    def refers_to(self, ref: str) -> None:
        """What was done is kept elsewhere, under this ref."""
        self._refs.append(ref)

    def fail(self, category: str) -> None:
        """It could not be carried out; leaving the block without this says that it was."""
        if not self._ended:
            self._end("benchmark.trial.failed", {"failureCategory": category})

    def start(self, said: dict[str, Any]) -> None:
        self._put("benchmark.trial.started", said)

    def close(self) -> None:
        if not self._ended:
            self._end("benchmark.trial.completed", {})

    def _end(self, event_class: str, said: dict[str, Any]) -> None:
        self._ended = True
        refs: dict[str, Any] = {}
        if self._refs:
            refs = {"trajectoryRef": self._refs[0], "trajectoryRefs": self._refs}
        self._put(event_class, {**said, **refs})

    def _put(self, event_class: str, said: dict[str, Any]) -> Fact:
        payload = {"trialId": self.trial_id, **said}
        made = self._mint.fact(self._scope, event_class, payload)
        self._log.put(made)
        return made


@asynccontextmanager
async def recorded_trial(
    log: ThreadLog,
    blobs: BlobStore,
    mint: Mint,
    scope: Scope,
    task: str,
    **given: Unpack[TrialOptions],
) -> AsyncGenerator[TrialRecorder]:
    """A trial: it completes when the block does, and fails with a category when that raises."""
    trial = TrialRecorder(log, blobs, mint, scope, given.get("trial_id") or mint.ids("trial"))
    said = {"task": task, "dataset": given.get("dataset")}
    known = {name: value for name, value in said.items() if value is not None}
    trial.start({**known, "configuration": given.get("configuration") or {}})
    try:
        yield trial
    except BaseException as error:
        trial.fail(_category(error))
        raise
    else:
        trial.close()
    finally:
        await log.flush()


def recorded_comparison(
    log: ThreadLog, mint: Mint, scope: Scope, title: str, said: dict[str, Any]
) -> str:
    """That two benchmarks were compared and what came of it, as evidence; its id."""
    key = mint.ids("evd")
    payload = {"kind": "benchmark", "title": title, **said}
    log.put(mint.fact(scope, "benchmark.comparison.completed", payload, evidence_id=key))
    return key


def _category(error: BaseException) -> str:
    if isinstance(error, TurnFailed):
        return error.code
    return "cancelled" if isinstance(error, asyncio.CancelledError) else "exception"
