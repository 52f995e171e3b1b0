"""`Tracing`: spans for whoever collects them; nothing where nobody does.

Only OpenTelemetry's interface is used. Without an SDK no span is made. With one, a request's span
and the request itself have one trace id, and what is made of facts goes into the trace that their
envelopes name.
"""

import re
from collections import OrderedDict
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    TraceFlags,
    Tracer,
    TracerProvider,
)

from factwire import __version__
from factwire.edge.events.ids import traced
from factwire.edge.limits import KEPT_SPANS
from factwire.edge.tracing import Traceparent, new_trace_id

_HEXADECIMAL: Final = re.compile(r"[0-9a-f]{32}")
_SPAN_DIGITS: Final = 16


class Tracing:
    """Makes spans by a provider, or by the one that is set up for the whole process."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        found = provider or trace.get_tracer_provider()
        nobody = isinstance(found, trace.ProxyTracerProvider | trace.NoOpTracerProvider)
        self.is_on = not nobody
        self.tracer: Tracer = found.get_tracer("factwire.edge", __version__)
        self._requests: OrderedDict[str, SpanContext] = OrderedDict()

    def request(
        self, name: str, given: Traceparent | None, attributes: dict[str, str]
    ) -> tuple[Span, str]:
        """The span of a request, and the trace id that both have; `given` is the caller's."""
        if not self.is_on:
            return trace.INVALID_SPAN, new_trace_id() if given is None else given.trace_id
        parent = Context() if given is None else _within(_remote(given))
        span = self.tracer.start_span(name, parent, SpanKind.SERVER, attributes=attributes)
        context = span.get_span_context()
        trace_id = f"{context.trace_id:032x}"
        if attributes.get("http.request.method") == "POST":
            self._keep(trace_id, context)
        return span, trace_id

    def _keep(self, trace_id: str, context: SpanContext) -> None:
        """Whatever starts a run is a POST; its span is what the run's lies below."""
        self._requests[trace_id] = context
        self._requests.move_to_end(trace_id)
        if len(self._requests) > KEPT_SPANS:
            self._requests.popitem(last=False)

    def current(self, span: Span) -> AbstractContextManager[object]:
        """Let what happens inside belong to a span."""
        if not self.is_on:
            return nullcontext()
        return trace.use_span(span, record_exception=False, set_status_on_exception=False)

    def parent(self, trace_id: str, name: str) -> Context:
        """Where a span in a trace begins: at the request that led to it, if that was of this
        process, else under an id that follows from a name.
        """
        digits = trace_id_digits(trace_id)
        known = self._requests.get(digits)
        if known is None:
            span_id = int(traced(name)[:_SPAN_DIGITS], 16) or 1
            known = SpanContext(
                int(digits, 16), span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED)
            )
        return _within(known)


def trace_id_digits(trace_id: str) -> str:
    """A trace id as OpenTelemetry has them; of any other text, what follows from it."""
    digits = trace_id.replace("-", "").lower()
    return digits if _HEXADECIMAL.fullmatch(digits) and int(digits, 16) else traced(trace_id)


def _remote(given: Traceparent) -> SpanContext:
    return SpanContext(
        int(given.trace_id, 16),
        int(given.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(int(given.flags, 16)),
    )


def _within(context: SpanContext) -> Context:
    return trace.set_span_in_context(NonRecordingSpan(context), Context())
