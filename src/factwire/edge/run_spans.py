"""Run spans: what a run did, as spans that are made of its facts as they pass.

The times are the facts' own, and the trace is the one that the run's envelopes name, so that an
envelope in a UI leads to it. A run that began before this process is told whole when it ends: its
beginning is in the lists. Names and attributes follow OpenTelemetry's conventions where there are
any: names, ids, categories and counts; nothing that a person or a model wrote.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from time import time_ns
from typing import Final, Literal

import msgspec
from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from factwire.edge.limits import SPAN_CHARACTERS
from factwire.edge.records import Records
from factwire.facts import Fact, entity_of, loose_entity_of
from factwire.facts.classes.class_tables import ACTION_CLOSERS, TURN_TERMINALS
from factwire.facts.json_values import number_at, text_at
from factwire.facts.outcomes import status_shown
from factwire.projection.payload_fields import other_id, outcome_of, subagent_of, tool_of
from factwire.serving.envelopes import derive_trace_id, run_id_of
from factwire.serving.limits import KEPT_SPANS
from factwire.serving.logs import logger
from factwire.serving.request_observing import Tracing, trace_id_digits
from factwire.serving.streams import DecodedBatch, FeedStopped, JournalFeed

SpanAttributes = Mapping[str, "str | int | float | bool | None"]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MOST: Final = 2**63


class SpanStep(msgspec.Struct, frozen=True, kw_only=True):
    """What one class of facts means for a part of a run: `named` are its id's two spellings."""

    family: Literal["model", "tool", "approval"]
    named: tuple[str, str]
    describe_start: Callable[[Fact], tuple[str, SpanAttributes]]
    describe_end: Callable[[Fact], SpanAttributes] = lambda _: {}
    kind: SpanKind = SpanKind.INTERNAL
    fails: bool = False


def to_nanoseconds(text: str | None) -> int:
    """A time as nanoseconds since 1970; now, where the text names none."""
    try:
        return (datetime.fromisoformat(text or "") - _EPOCH) // _MICROSECOND * 1_000
    except (ValueError, TypeError, OverflowError):
        return time_ns()


def fact_time(fact: Fact) -> int:
    """When what a fact tells was so."""
    return to_nanoseconds(fact.completed_at or fact.created_at)


def set_attributes(span: Span, attributes: SpanAttributes) -> None:
    """Put what is known on a span, none of it long, and no number that does not go over a wire."""
    for name, value in attributes.items():
        if isinstance(value, str):
            span.set_attribute(name, value[:SPAN_CHARACTERS])
        elif value is not None and abs(value) < _MOST:
            span.set_attribute(name, value)


def set_error(span: Span, fact: Fact, *, failed: bool) -> None:
    """What failed has a category; the sentence for people stays where it is."""
    if failed:
        set_attributes(span, {"error.type": text_at(fact.payload, "failureCategory") or "unknown"})
        span.set_status(Status(StatusCode.ERROR))


def usage_attributes(fact: Fact) -> SpanAttributes:
    return {
        "gen_ai.response.model": text_at(fact.payload, "model"),
        "gen_ai.usage.input_tokens": number_at(fact.payload, "inputTokens"),
        "gen_ai.usage.output_tokens": number_at(fact.payload, "outputTokens"),
    }


def _describe_model_start(fact: Fact) -> tuple[str, SpanAttributes]:
    model = text_at(fact.payload, "model")
    return _span_name("chat", model), {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": model,
        "gen_ai.provider.name": text_at(fact.payload, "provider"),
    }


def _describe_model_end(fact: Fact) -> SpanAttributes:
    return {
        **usage_attributes(fact),
        "factwire.finish_reason": text_at(fact.payload, "finishReason"),
    }


def _describe_tool_start(fact: Fact) -> tuple[str, SpanAttributes]:
    tool = text_at(fact.payload, "toolName")
    return _span_name("execute_tool", tool), {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.call.id": tool_of(fact),
    }


def _describe_approval_start(fact: Fact) -> tuple[str, SpanAttributes]:
    return "factwire.approval", {
        "factwire.approval.id": fact.action_id,
        "factwire.approval.kind": text_at(fact.payload, "actionType"),
        "gen_ai.tool.call.id": tool_of(fact),
    }


def _describe_approval_end(fact: Fact) -> SpanAttributes:
    closed = (fact.event_class or "").removeprefix("action.")
    return {"factwire.approval.decision": text_at(fact.payload, "decision") or closed}


def _span_name(verb: str, what: str | None) -> str:
    return verb if what is None else f"{verb} {what[:SPAN_CHARACTERS]}"


def _model_step(*, fails: bool = False) -> SpanStep:
    named = "messageId", "message_id"
    return SpanStep(
        family="model",
        named=named,
        describe_start=_describe_model_start,
        describe_end=_describe_model_end,
        kind=SpanKind.CLIENT,
        fails=fails,
    )


def _tool_step(*, fails: bool = False) -> SpanStep:
    return SpanStep(
        family="tool",
        named=("toolCallId", "tool_call_id"),
        describe_start=_describe_tool_start,
        fails=fails,
    )


def _approval_step() -> SpanStep:
    named = "actionId", "action_id"
    return SpanStep(
        family="approval",
        named=named,
        describe_start=_describe_approval_start,
        describe_end=_describe_approval_end,
    )


STEPS: Final[dict[str, SpanStep]] = {
    "model.requested": _model_step(),
    "model.completed": _model_step(),
    "model.failed": _model_step(fails=True),
    "tool.started": _tool_step(),
    "tool.result": _tool_step(),
    "tool.failed": _tool_step(fails=True),
    "action.required": _approval_step(),
    **dict.fromkeys(ACTION_CLOSERS, _approval_step()),
}
"""Class → the part of a run that it begins or ends."""

STOPPED: Final = frozenset(STEPS) - {"model.requested", "tool.started", "action.required"}
"""The classes that end one."""


_log: Final = logger("factwire.edge")


class _OpenSpan:
    """A span that is open; `heard` is when it was over, if it only waits for its last figures."""

    __slots__ = ("began", "heard", "span")

    def __init__(self, span: Span, began: int) -> None:
        self.span = span
        self.began = began
        self.heard: int | None = None

    def end(self, at: int) -> None:
        self.span.end(max(self.began, at if self.heard is None else self.heard))


class _OpenRun(_OpenSpan):
    """A run, and what is open in it by family and id."""

    __slots__ = ("parts",)

    def __init__(self, span: Span, began: int) -> None:
        super().__init__(span, began)
        self.parts: dict[tuple[str, str], _OpenSpan] = {}

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

    def take(self, batch: DecodedBatch) -> None:
        for fact in batch.facts:
            handle = _HANDLERS.get(fact.event_class or "")
            if handle is not None:
                run_id = run_id_of(fact)
                if run_id is not None:
                    handle(self, run_id, fact)

    def close(self) -> None:
        """End what is open here; the next process tells those runs whole."""
        for run in self._runs.values():
            run.span.set_attribute("factwire.run.left_open", value=True)
            run.end(to_nanoseconds(None))
        self._runs.clear()

    def start_run(self, run_id: str, fact: Fact) -> None:
        if self._is_of_thread(run_id, fact):
            self._find_or_start_run(run_id, fact)

    def _is_of_thread(self, run_id: str, fact: Fact) -> bool:
        """Whether a fact begins or ends a run of the thread; where only a task above speaks against
        it, the row of the run has it: the fact is in the records before it comes here.
        """
        if loose_entity_of(fact) is None:
            return entity_of(fact) is None
        row = self._records.runs.get(run_id)
        is_end = fact.event_class in TURN_TERMINALS
        return row is not None and (row.finished_at is not None) == is_end

    def end_run(self, run_id: str, fact: Fact) -> None:
        if not self._is_of_thread(run_id, fact):
            return
        run = self._find_or_start_run(run_id, fact)
        run.span.set_attribute("factwire.run.status", outcome_of(fact))
        set_error(run.span, fact, failed=outcome_of(fact) == "failed")
        run.end(fact_time(fact))
        del self._runs[run_id]

    def start_step(self, run_id: str, fact: Fact) -> None:
        """A step begins."""
        step = STEPS[fact.event_class or ""]
        key = _step_key(step, fact)
        run = self._find_live_run(run_id, fact)
        if run is None:
            return
        self._end_finished_steps(run)
        if key is not None and key not in run.parts:
            run.parts[key] = self._build_step(run, step, fact, fact_time(fact))

    def end_step(self, run_id: str, fact: Fact) -> None:
        """A step ends; one that began before this process is looked up."""
        step = STEPS[fact.event_class or ""]
        key, run = _step_key(step, fact), self._find_live_run(run_id, fact)
        if run is None or key is None:
            return
        part = run.parts.get(key)
        if part is None and step.family == "approval":
            row = self._records.approvals.get(key[1])
            began = to_nanoseconds(row.created_at) if row is not None else fact_time(fact)
            part = run.parts[key] = self._build_step(run, step, fact, began)
        if part is None:
            return
        set_attributes(part.span, step.describe_end(fact))
        set_error(part.span, fact, failed=step.fails or status_shown(fact) == "failed")
        part.heard = fact_time(fact)
        if step.family != "model":
            part.end(part.heard)
            del run.parts[key]

    def add_usage(self, run_id: str, fact: Fact) -> None:
        """What an answer of a model took is told after its end."""
        run = self._runs.get(run_id)
        key = "model", other_id(fact, "messageId", "message_id") or ""
        part = run.parts.get(key) if run is not None else None
        if part is not None:
            set_attributes(part.span, usage_attributes(fact))

    def _end_finished_steps(self, run: _OpenRun) -> None:
        """Whatever comes next, the answers that were over are over."""
        for key, part in tuple(run.parts.items()):
            if part.heard is not None:
                part.end(part.heard)
                del run.parts[key]

    def _find_live_run(self, run_id: str, fact: Fact) -> _OpenRun | None:
        """The run of a step; None for one that has ended, of which something is told late."""
        row = self._records.runs.get(run_id)
        if run_id not in self._runs and (row is None or row.finished_at is not None):
            return None
        return self._find_or_start_run(run_id, fact)

    def _find_or_start_run(self, run_id: str, fact: Fact) -> _OpenRun:
        run = self._runs.get(run_id)
        if run is None:
            run = self._runs[run_id] = self._build_run(run_id, fact)
            if len(self._runs) > KEPT_SPANS:
                _, oldest = self._runs.popitem(last=False)
                oldest.end(fact_time(fact))
        return run

    def _build_run(self, run_id: str, fact: Fact) -> _OpenRun:
        row = self._records.runs.get(run_id)
        is_first = fact.event_class == "turn.submitted"
        before = None if is_first or row is None else row.started_at or row.created_at
        began = fact_time(fact) if before is None else to_nanoseconds(before)
        trace_id = fact.trace_id or derive_trace_id(run_id)
        span = self._tracing.tracer.start_span(
            "factwire.run", self._tracing.parent_context(trace_id, run_id), start_time=began
        )
        attributes = {
            "factwire.run.id": run_id,
            "factwire.thread.id": fact.thread_id,
            "gen_ai.agent.id": fact.agent_id,
            "factwire.trace.id": None if trace_id_digits(trace_id) == trace_id else trace_id,
        }
        set_attributes(span, attributes)
        return _OpenRun(span, began)

    def _build_step(self, run: _OpenRun, step: SpanStep, fact: Fact, began: int) -> _OpenSpan:
        name, attributes = step.describe_start(fact)
        span = self._tracing.tracer.start_span(
            name, trace.set_span_in_context(run.span), kind=step.kind, start_time=began
        )
        set_attributes(span, {**attributes, "factwire.subagent.id": subagent_of(fact)})
        return _OpenSpan(span, began)


def follow_runs(tracing: Tracing, records: Records, feed: JournalFeed) -> Callable[[], None]:
    """Make spans of what a feed hands out, where anybody takes them; returns how to stop."""
    if not tracing.is_on:
        return lambda: None
    spans = RunSpans(tracing, records)

    def log_feed_loss(error: Exception) -> None:
        is_plain_stop = isinstance(error, FeedStopped) and error.__cause__ is None
        if not is_plain_stop:
            _log.warning("run_spans_stopped", exc_info=error)

    leave = feed.subscribe(spans.take, log_feed_loss)

    def stop() -> None:
        leave()
        spans.close()

    return stop


def _step_key(step: SpanStep, fact: Fact) -> tuple[str, str] | None:
    named = other_id(fact, *step.named)
    return None if named is None else (step.family, named)


Handle = Callable[[RunSpans, str, Fact], None]

_HANDLERS: Final[dict[str, Handle]] = {
    "turn.submitted": RunSpans.start_run,
    "turn.started": RunSpans.start_run,
    **dict.fromkeys(TURN_TERMINALS, RunSpans.end_run),
    **{name: RunSpans.end_step if name in STOPPED else RunSpans.start_step for name in STEPS},
    "cost.recorded": RunSpans.add_usage,
}
"""Class → what it means for spans; any other passes unseen."""
