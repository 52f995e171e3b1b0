"""One trace from a request to what its run did, and the same trace in the run's envelopes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from factwire.edge.records import Records
from factwire.edge.run_spans import follow_runs, to_nanoseconds
from factwire.facts.shapes import read_fact
from factwire.journal import open_journal
from factwire.serving.asgi import Traceparent, read_traceparent, trace_id_from
from factwire.serving.envelopes import derive_trace_id
from factwire.serving.request_observing import Tracing, trace_id_digits
from factwire.serving.streams import JournalFeed
from tests.edge.edges import RunningEdge, running_edge

pytestmark = pytest.mark.asyncio

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{CALLER}-01"


class Collected:
    """A provider whose spans can be looked at once they have ended."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def spans(self, name: str | None = None) -> list[ReadableSpan]:
        found: Sequence[ReadableSpan] = self._exporter.get_finished_spans()
        return [span for span in found if name is None or span.name == name]

    def one(self, name: str) -> ReadableSpan:
        [span] = self.spans(name)
        return span


def context_of(span: ReadableSpan) -> Any:
    return span.get_span_context()


def trace_of(span: ReadableSpan) -> str:
    return f"{context_of(span).trace_id:032x}"


def is_below(span: ReadableSpan, parent: ReadableSpan) -> bool:
    return span.parent is not None and span.parent.span_id == context_of(parent).span_id


async def traces_of(edge: RunningEdge, run_id: str) -> set[str]:
    page = await edge.get(f"/v1/runs/{run_id}/events", limit=1000)
    return {envelope["traceId"] for envelope in page["items"]}


@pytest.mark.requirement("edge.observing.one-trace")
async def test_a_request_its_run_and_its_tools_are_one_trace(tmp_path: Path):
    collected = Collected()
    async with running_edge(tmp_path, tracer_provider=collected.provider) as edge:
        body = {"agentId": "demo", "prompt": "approve"}
        answer = await edge.http.post("/v1/runs", json=body, headers={"traceparent": TRACEPARENT})
        assert answer.headers["x-trace-id"] == TRACE
        run_id = answer.json()["runId"]
        await edge.wait_for_approval(run_id)
        assert (await edge.allow_all(run_id))["status"] == "finished"
        assert await traces_of(edge, run_id) == {TRACE}
        request, run = collected.one("POST /v1/runs"), collected.one("factwire.run")
        tool, *_ = (span for span in collected.spans() if span.name.startswith("execute_tool "))
        model, *_ = (span for span in collected.spans() if span.name.startswith("chat "))
        approval, *_ = collected.spans("factwire.approval")
        row = await edge.get(f"/v1/runs/{run_id}")

    assert {trace_of(span) for span in (request, run, tool, model, approval)} == {TRACE}
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == CALLER
    assert is_below(run, request)
    assert all(is_below(span, run) for span in (tool, model, approval))
    assert request.kind is SpanKind.SERVER
    assert run.attributes is not None
    assert run.attributes["factwire.run.id"] == run_id
    assert run.attributes["factwire.run.status"] == "completed"
    assert run.start_time == to_nanoseconds(row["createdAt"])
    assert run.end_time == to_nanoseconds(row["finishedAt"])
    assert tool.attributes is not None
    assert tool.attributes["gen_ai.operation.name"] == "execute_tool"
    assert approval.attributes is not None
    assert approval.attributes["factwire.approval.decision"] == "approved"
    for span in (tool, model, approval):
        times = [run.start_time, span.start_time, span.end_time, run.end_time]
        assert times == sorted(time or 0 for time in times)


@pytest.mark.requirement("edge.observing.one-trace")
async def test_a_request_without_a_trace_begins_one_that_its_run_is_in(tmp_path: Path):
    collected = Collected()
    async with running_edge(tmp_path, tracer_provider=collected.provider) as edge:
        answer = await edge.http.post("/v1/runs", json={"agentId": "demo", "prompt": "help"})
        run_id, trace_id = answer.json()["runId"], answer.headers["x-trace-id"]
        await edge.run_until(run_id)
        assert await traces_of(edge, run_id) == {trace_id}
        again = await edge.http.post(f"/v1/runs/{run_id}:retry")
        await edge.run_until(again.json()["runId"])
        assert await traces_of(edge, again.json()["runId"]) == {again.headers["x-trace-id"]}
        assert again.headers["x-trace-id"] != trace_id
    assert trace_of(collected.one("POST /v1/runs")) == trace_id
    assert {trace_of(span) for span in collected.spans("factwire.run")} == {
        trace_id,
        again.headers["x-trace-id"],
    }


@pytest.mark.requirement("edge.observing.spans")
async def test_a_request_says_route_and_status_and_nothing_of_the_caller(tmp_path: Path):
    collected = Collected()
    async with running_edge(tmp_path, tracer_provider=collected.provider) as edge:
        await edge.http.get("/v1/runs/run_secretive?limit=7", headers={"x-note": "secretive"})
        await edge.http.request("PURGE", "/v1/secretive")
    read, odd = collected.one("GET /v1/runs/{run_id}"), collected.one("other unmatched")
    assert dict(read.attributes or {}) == {
        "http.request.method": "GET",
        "http.route": "/v1/runs/{run_id}",
        "url.scheme": "http",
        "network.protocol.version": "1.1",
        "http.response.status_code": 400,
    }
    assert dict(odd.attributes or {})["http.request.method"] == "_OTHER"
    assert not any("secretive" in span.to_json() for span in collected.spans())


@pytest.mark.requirement("edge.observing.spans")
async def test_no_word_of_a_prompt_an_argument_or_an_answer_is_in_a_span(tmp_path: Path):
    collected = Collected()
    async with running_edge(tmp_path, tracer_provider=collected.provider) as edge:
        run = await edge.start("echo quaggamire", agent="shell")
        await edge.allow_all(run["runId"])
        failing = await edge.start("false quaggamire", agent="shell")
        await edge.allow_all(failing["runId"])
        text = (await edge.http.get("/v1/facts", params={"limit": 1000})).text
    assert "quaggamire" in text
    assert collected.spans("factwire.run")
    assert not any("quaggamire" in span.to_json() for span in collected.spans())


@pytest.mark.requirement("edge.observing.spans")
async def test_a_failed_run_is_an_error_with_its_category(tmp_path: Path):
    collected = Collected()
    async with running_edge(tmp_path, tracer_provider=collected.provider) as edge:
        run = await edge.start("fail")
        row = await edge.allow_all(run["runId"])
        assert row["status"] == "failed"
    span = collected.one("factwire.run")
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description is None
    assert (span.attributes or {})["error.type"] == row["error"]["failureCategory"]


@pytest.mark.requirement("edge.observing.one-trace")
async def test_a_run_that_outlives_the_process_is_told_whole_by_the_next(tmp_path: Path):
    first, second = Collected(), Collected()
    async with running_edge(tmp_path, tracer_provider=first.provider) as edge:
        body = {"agentId": "demo", "prompt": "approve"}
        answer = await edge.http.post("/v1/runs", json=body, headers={"traceparent": TRACEPARENT})
        run_id = answer.json()["runId"]
        requests = await edge.wait_for_approval(run_id)
    assert (first.one("factwire.run").attributes or {})["factwire.run.left_open"] is True
    async with running_edge(tmp_path, tracer_provider=second.provider) as edge:
        assert (await edge.allow_all(run_id))["status"] == "finished"
        assert await traces_of(edge, run_id) == {TRACE}
        row = await edge.get(f"/v1/runs/{run_id}")
    run, (approval, *_) = second.one("factwire.run"), second.spans("factwire.approval")
    assert trace_of(run) == TRACE
    assert approval.start_time == to_nanoseconds(requests["createdAt"])
    assert (run.start_time, run.end_time) == (
        to_nanoseconds(row["startedAt"]),
        to_nanoseconds(row["finishedAt"]),
    )
    assert is_below(approval, run)


@pytest.mark.requirement("edge.observing.one-trace")
async def test_facts_from_outside_are_traced_as_their_envelopes_say(tmp_path: Path):
    collected = Collected()
    async with running_edge(tmp_path, tracer_provider=collected.provider) as edge:
        await edge.post("/v1/facts", {"facts": [*_turn("traced", TRACE), *_turn("plain", None)]})
        await edge.post("/v1/facts", {"facts": _turn("odd", "my trace")})
        await edge.machine.wait_until_settled()
    runs = {
        (span.attributes or {})["factwire.run.id"]: span for span in collected.spans("factwire.run")
    }
    assert {name: trace_of(span) for name, span in runs.items()} == {
        "run_traced": TRACE,
        "run_plain": derive_trace_id("run_plain"),
        "run_odd": derive_trace_id("my trace"),
    }
    assert (runs["run_odd"].attributes or {})["factwire.trace.id"] == "my trace"
    assert all((span.start_time, span.end_time) == (_at(1), _at(4)) for span in runs.values())
    tools = collected.spans("execute_tool Read")
    assert len(tools) == 3
    assert all(span.status.status_code is StatusCode.ERROR for span in tools)
    assert [(span.attributes or {})["error.type"] for span in tools] == ["not_found"] * 3


@pytest.mark.requirement("edge.observing.spans")
async def test_a_call_of_a_model_lasts_to_its_last_word_and_says_what_it_took(tmp_path: Path):
    collected = Collected()
    message = {"messageId": "msg"}
    messages: list[Told] = [
        ("turn.started", {}, {}),
        ("model.requested", {"model": "gpt", "provider": "openai"}, message),
        ("model.completed", {"text": "one"}, {**message, "partId": "1"}),
        ("model.completed", {"text": "two", "finishReason": "stop"}, {**message, "partId": "2"}),
        ("cost.recorded", {"inputTokens": 7, "outputTokens": 2**70}, message),
        ("model.requested", {"model": "gpt"}, {"messageId": "cut"}),
        ("turn.completed", {}, {}),
        ("tool.result", {"output": "late"}, {"toolCallId": "late"}),
    ]
    async with running_edge(tmp_path, tracer_provider=collected.provider) as edge:
        *facts, late = _facts("turn", messages, {})
        await edge.post("/v1/facts", {"facts": facts})
        # Nobody may send what comes after the end; a journal of before may have it all the same.
        await edge.machine.journal.append([read_fact(late)])
        await edge.machine.wait_until_settled()
    whole, cut = collected.spans("chat gpt")
    assert whole.kind is SpanKind.CLIENT
    assert (whole.start_time, whole.end_time) == (_at(2), _at(4))
    assert dict(whole.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt",
        "gen_ai.provider.name": "openai",
        "factwire.finish_reason": "stop",
        "gen_ai.usage.input_tokens": 7,
    }
    assert (cut.start_time, cut.end_time) == (_at(6), _at(7))
    run = collected.one("factwire.run")
    assert (run.start_time, run.end_time) == (_at(1), _at(7))


Told = tuple[str, dict[str, Any], dict[str, str]]


def _at(second: int) -> int:
    return to_nanoseconds(f"2026-01-01T00:00:0{second}Z")


def _turn(name: str, trace_id: str | None) -> list[dict[str, Any]]:
    """A turn of another runtime, with a call that failed and nothing that tells of the start."""
    messages: list[Told] = [
        ("turn.started", {}, {}),
        ("tool.started", {"toolName": "Read"}, {"toolCallId": "call"}),
        ("tool.failed", {"failureCategory": "not_found", "message": "no"}, {"toolCallId": "call"}),
        ("turn.completed", {}, {}),
    ]
    return _facts(name, messages, {} if trace_id is None else {"traceId": trace_id})


def _facts(name: str, messages: list[Told], more: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{name}-{index}",
            "kind": "state",
            "status": "running",
            "title": event_class,
            "createdAt": f"2026-01-01T00:00:0{index}Z",
            "schemaVersion": "factwire-fact/v1",
            "runtimeId": "elsewhere",
            "sequence": index,
            "eventClass": event_class,
            "threadId": f"thread-{name}",
            "turnId": name,
            "payload": payload,
            **ids,
            **more,
        }
        for index, (event_class, payload, ids) in enumerate(messages, 1)
    ]


@pytest.mark.requirement("edge.observing.spans")
async def test_without_a_collector_no_fact_is_looked_at():
    tracing = Tracing("factwire.edge")
    assert not tracing.is_on
    async with open_journal("memory:") as journal, JournalFeed(journal) as feed:
        stop = follow_runs(tracing, Records(), feed)
        assert not feed._subscribers  # pyright: ignore[reportPrivateUsage]
        stop()
    span, trace_id = tracing.start_request("GET /", None, {})
    assert not span.is_recording()
    assert len(trace_id) == 32


@pytest.mark.requirement("edge.observing.one-trace")
@pytest.mark.parametrize(
    ("header", "is_read"),
    [
        (TRACEPARENT.encode(), True),
        (f"cc-{TRACE}-{CALLER}-01-more".encode(), True),
        (f"ff-{TRACE}-{CALLER}-01".encode(), False),
        (f"00-{'0' * 32}-{CALLER}-01".encode(), False),
        (f"00-{TRACE}-{'0' * 16}-01".encode(), False),
        (TRACEPARENT.upper().encode(), False),
        (b"\xff", False),
        (None, False),
    ],
)
async def test_a_callers_trace_is_taken_where_it_is_one(header: bytes | None, *, is_read: bool):
    values = read_traceparent(header)
    assert values == (Traceparent(TRACE, CALLER, "01") if is_read else None)
    assert (trace_id_from(header) == TRACE) is is_read


@pytest.mark.requirement("edge.observing.one-trace")
async def test_any_trace_id_of_a_fact_has_one_form_in_spans():
    assert trace_id_digits(TRACE) == TRACE
    assert trace_id_digits("0AF76519-16cd-43dd-8448-eb211c80319c") == TRACE
    assert trace_id_digits("0" * 32) == derive_trace_id("0" * 32)
    assert trace_id_digits("") == derive_trace_id("")
