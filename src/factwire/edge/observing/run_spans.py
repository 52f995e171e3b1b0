"""Run spans: what a run did, told as spans that are made of its facts as they pass.

The times are the facts' own, and the trace is the one that the run's envelopes name, so that an
envelope in a UI leads to it. A run that began before this process is told whole when it ends: its
beginning is in the lists. No text of a prompt, an argument or an answer goes into a span.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from opentelemetry import trace
from opentelemetry.trace import Span

from factwire.edge.events.ids import run_id_of, traced
from factwire.edge.limits import KEPT_SPANS
from factwire.edge.logs import logger
from factwire.edge.observing.span_words import (
    STEPS,
    STOPPED,
    Step,
    error_of,
    known,
    moment,
    moment_of,
    usage_of,
)
from factwire.edge.observing.tracer import Tracing, trace_id_digits
from factwire.edge.records import Records
from factwire.edge.streams import Arrival, Feed, FeedStopped
from factwire.facts import Fact
from factwire.projection.reading import other_id, outcome_of, subagent_of

_log: Final = logger("factwire.edge")
_TURN_ENDS: Final = frozenset({"turn.completed", "turn.failed", "turn.canceled"})


class _Part:
    """A span that is open; `heard` is when it was over, if it only waits for its last figures."""

    __slots__ = ("began", "heard", "span")

    def __init__(self, span: Span, began: int) -> None:
        self.span = span
        self.began = began
        self.heard: int | None = None

    def end(self, at: int) -> None:
        self.span.end(max(self.began, at if self.heard is None else self.heard))


class _OpenRun(_Part):
    """A run, and what is open in it by family and id."""

    __slots__ = ("parts",)

    def __init__(self, span: Span, began: int) -> None:
        super().__init__(span, began)
        self.parts: dict[tuple[str, str], _Part] = {}

    def end(self, at: int) -> None:
        for part in self.parts.values():
            part.end(at)
        super().end(at)


class RunSpans:
    """Makes spans of the facts of all runs; `take` is what a feed calls."""

    def __init__(self, tracing: Tracing, records: Records) -> None:
        self._tracing = tracing
        self._records = records
        self._runs: OrderedDict[str, _OpenRun] = OrderedDict()

    def take(self, arrival: Arrival) -> None:
        for fact in arrival.facts:
            handle = _HANDLERS.get(fact.event_class or "")
            if handle is not None:
                run_id = run_id_of(fact)
                if run_id is not None:
                    handle(self, run_id, fact)

    def close(self) -> None:
        """End what is open here; the next process tells those runs whole."""
        for run in self._runs.values():
            run.span.set_attribute("factwire.run.left_open", value=True)
            run.end(moment(None))
        self._runs.clear()

    def begin(self, run_id: str, fact: Fact) -> None:
        if subagent_of(fact) is None:
            self._run(run_id, fact)

    def finish(self, run_id: str, fact: Fact) -> None:
        if subagent_of(fact) is not None:
            return
        run = self._run(run_id, fact)
        run.span.set_attribute("factwire.run.status", outcome_of(fact))
        error_of(run.span, fact, failed=fact.event_class == "turn.failed")
        run.end(moment_of(fact))
        del self._runs[run_id]

    def open(self, run_id: str, fact: Fact) -> None:
        """A step begins."""
        step = STEPS[fact.event_class or ""]
        key = _key(step, fact)
        run = self._live(run_id, fact)
        if run is None:
            return
        self._settle(run)
        if key is not None and key not in run.parts:
            run.parts[key] = self._part(run, step, fact, moment_of(fact))

    def shut(self, run_id: str, fact: Fact) -> None:
        """A step ends; one that began before this process is looked up."""
        step = STEPS[fact.event_class or ""]
        key, run = _key(step, fact), self._live(run_id, fact)
        if run is None or key is None:
            return
        part = run.parts.get(key)
        if part is None and step.family == "approval":
            row = self._records.approvals.get(key[1])
            began = moment(row.created_at) if row is not None else moment_of(fact)
            part = run.parts[key] = self._part(run, step, fact, began)
        if part is None:
            return
        known(part.span, step.ended(fact))
        error_of(part.span, fact, failed=step.fails)
        part.heard = moment_of(fact)
        if step.family != "model":
            part.end(part.heard)
            del run.parts[key]

    def use(self, run_id: str, fact: Fact) -> None:
        """What an answer of a model took is told after its end."""
        run = self._runs.get(run_id)
        key = "model", other_id(fact, "messageId", "message_id") or ""
        part = run.parts.get(key) if run is not None else None
        if part is not None:
            known(part.span, usage_of(fact))

    def _settle(self, run: _OpenRun) -> None:
        """Whatever comes next, the answers that were over are over."""
        for key, part in tuple(run.parts.items()):
            if part.heard is not None:
                part.end(part.heard)
                del run.parts[key]

    def _live(self, run_id: str, fact: Fact) -> _OpenRun | None:
        """The run of a step; None for one that has ended, of which something is told late."""
        row = self._records.runs.get(run_id)
        if run_id not in self._runs and (row is None or row.finished_at is not None):
            return None
        return self._run(run_id, fact)

    def _run(self, run_id: str, fact: Fact) -> _OpenRun:
        run = self._runs.get(run_id)
        if run is None:
            run = self._runs[run_id] = self._begun(run_id, fact)
            if len(self._runs) > KEPT_SPANS:
                _, oldest = self._runs.popitem(last=False)
                oldest.end(moment_of(fact))
        return run

    def _begun(self, run_id: str, fact: Fact) -> _OpenRun:
        row = self._records.runs.get(run_id)
        is_first = fact.event_class == "turn.submitted"
        before = None if is_first or row is None else row.started_at or row.created_at
        began = moment_of(fact) if before is None else moment(before)
        trace_id = fact.trace_id or traced(run_id)
        span = self._tracing.tracer.start_span(
            "factwire.run", self._tracing.parent(trace_id, run_id), start_time=began
        )
        told = {
            "factwire.run.id": run_id,
            "factwire.thread.id": fact.thread_id,
            "gen_ai.agent.id": fact.agent_id,
            "factwire.trace.id": None if trace_id_digits(trace_id) == trace_id else trace_id,
        }
        known(span, told)
        return _OpenRun(span, began)

    def _part(self, run: _OpenRun, step: Step, fact: Fact, began: int) -> _Part:
        name, told = step.began(fact)
        span = self._tracing.tracer.start_span(
            name, trace.set_span_in_context(run.span), kind=step.kind, start_time=began
        )
        known(span, {**told, "factwire.subagent.id": subagent_of(fact)})
        return _Part(span, began)


def follow_runs(tracing: Tracing, records: Records, feed: Feed) -> Callable[[], None]:
    """Make spans of what a feed hands out, where anybody takes them; returns how to stop."""
    if not tracing.is_on:
        return lambda: None
    spans = RunSpans(tracing, records)

    def lost(error: Exception) -> None:
        is_plain_stop = isinstance(error, FeedStopped) and error.__cause__ is None
        if not is_plain_stop:
            _log.warning("run_spans_stopped", exc_info=error)

    leave = feed.subscribe(spans.take, lost)

    def stop() -> None:
        leave()
        spans.close()

    return stop


def _key(step: Step, fact: Fact) -> tuple[str, str] | None:
    named = other_id(fact, *step.named)
    return None if named is None else (step.family, named)


Handle = Callable[[RunSpans, str, Fact], None]

_HANDLERS: Final[dict[str, Handle]] = {
    "turn.submitted": RunSpans.begin,
    "turn.started": RunSpans.begin,
    **dict.fromkeys(_TURN_ENDS, RunSpans.finish),
    **{name: RunSpans.shut if name in STOPPED else RunSpans.open for name in STEPS},
    "cost.recorded": RunSpans.use,
}
"""Class → what it means for spans; any other passes unseen."""
