"""Threads, projected in runs: the same rules as every screen, in memory that does not grow.

A projection holds a whole thread. Here it begins anew between turns, once it holds enough and
nothing is open, and leaves its rows behind; rows of one thing from several runs are joined.
"""

from collections import OrderedDict
from typing import Any, Final

import msgspec

from factwire.evidence.limits import LIVE_THREADS, LONGEST_RUN_FACTS, RUN_FACTS
from factwire.evidence.scratch import Scratch
from factwire.evidence.summary import ARTIFACTS, EVIDENCE, TASKS, THREADS, TIMELINE, TOOLS
from factwire.facts import Fact
from factwire.journal.filter import thread_of
from factwire.projection import (
    Projection,
    ProjectionState,
    artifact_ref,
    evidence_ref,
    task_snapshot,
    thread_read_model,
)
from factwire.projection.timeline import TimelineEntry

_BEGINNINGS: Final = frozenset({"turn.submitted", "turn.started"})
_ENDED: Final = frozenset({"output-available", "output-error", "cancelled"})


class TimelineRow(TimelineEntry):
    """An entry of the timeline, and whose it is."""

    thread_id: str | None = None


class Usage(msgspec.Struct):
    """Sums over all runs."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    records: int = 0


class _Run:
    """One projection and how many facts it holds."""

    def __init__(self, thread: str | None) -> None:
        self.projection = Projection(thread)
        self.facts = 0


class ThreadRuns:
    """Takes facts of any number of threads; `kept` is whether holes were made on purpose."""

    def __init__(self, scratch: Scratch, *, kept: bool) -> None:
        self.usage = Usage()
        self._scratch = scratch
        self._kept = kept
        self._live: OrderedDict[str | None, _Run] = OrderedDict()

    def take(self, fact: Fact) -> None:
        thread = thread_of(fact)
        run = self._live.get(thread)
        if run is None or _is_over(run, fact):
            run = self._begin(thread)
        elif len(self._live) > 1:
            self._live.move_to_end(thread)
        run.facts += 1
        if self._kept:
            run.projection.replay(fact)
        else:
            run.projection.apply(fact)

    def close(self) -> None:
        """Write down what is still held."""
        while self._live:
            self._finish(next(iter(self._live)))

    def _begin(self, thread: str | None) -> _Run:
        if thread in self._live:
            self._finish(thread)
        elif len(self._live) >= LIVE_THREADS:
            self._finish(next(iter(self._live)))
        run = self._live[thread] = _Run(thread)
        return run

    def _finish(self, thread: str | None) -> None:
        state = self._live.pop(thread).projection.state
        name = f"{state.thread_id or ''}\0"
        put = self._scratch.put
        for entry in state.timeline:
            put(TIMELINE, name + entry.entry_id, _timeline_row(entry, thread), _joined)
        model = thread_read_model(state)
        for call in model.tool_calls:
            put(TOOLS, name + call.tool_call_id, msgspec.json.encode(call), _joined)
        for artifact in map(artifact_ref, state.artifacts.values()):
            put(ARTIFACTS, artifact.artifact_id, msgspec.json.encode(artifact), _joined)
        for item in map(evidence_ref, state.evidence.items.values()):
            put(EVIDENCE, item.evidence_id, msgspec.json.encode(item), _joined)
        for task in state.tasks:
            put(TASKS, name + task, msgspec.json.encode(task_snapshot(state, task)), _joined)
        put(THREADS, name, msgspec.json.encode(model))
        self._add(state)

    def _add(self, state: ProjectionState) -> None:
        found, usage = state.metrics.usage, self.usage
        usage.input_tokens += found.input_tokens
        usage.output_tokens += found.output_tokens
        usage.cost += found.total_cost_usd
        usage.records += found.records


def _is_over(run: _Run, fact: Fact) -> bool:
    if run.facts < RUN_FACTS:
        return False
    state = run.projection.state
    if run.facts >= LONGEST_RUN_FACTS:
        return not _waits(state)
    if fact.event_class not in _BEGINNINGS or state.runtime.active_turn_id is not None:
        return False
    return not _waits(state) and all(tool.state in _ENDED for tool in state.tools.values())


def _waits(state: ProjectionState) -> bool:
    """Whether somebody was asked and has not answered; a later run would not know of it."""
    return any(action.status == "pending" for action in state.actions.values())


def _timeline_row(entry: TimelineEntry, thread: str | None) -> bytes:
    fields = {name: getattr(entry, name) for name in entry.__struct_fields__}
    return msgspec.json.encode(TimelineRow(**fields, thread_id=thread))


_LISTS: Final = ("sourceEventIds", "refs", "attempts", "subagents", "artifactRefs", "evidenceRefs")
_FIRST: Final = frozenset(
    {"sequence", "title", "startedAt", "createdAt", "eventClass", "turnId", "runtimeCorrelation"}
)
"""What the first run says holds; of anything else, the last."""


def _joined(known: bytes, comes: bytes) -> bytes:
    """Two rows about one thing; a state that no fact told is not taken over."""
    old: dict[str, Any] = msgspec.json.decode(known)
    new: dict[str, Any] = msgspec.json.decode(comes)
    for name, value in new.items():
        if name in _LISTS and old.get(name):
            old[name] = list(dict.fromkeys([*map(_hashable, old[name]), *map(_hashable, value)]))
        elif name not in old or (name not in _FIRST and value != "unknown"):
            old[name] = value
    return msgspec.json.encode({name: _plain(value) for name, value in old.items()})


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str) else msgspec.json.encode(value)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [msgspec.json.decode(each) if isinstance(each, bytes) else each for each in value]  # pyright: ignore[reportUnknownVariableType]
    return value
