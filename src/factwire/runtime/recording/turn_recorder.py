"""A turn as it is recorded: text, reasoning, tool calls, requests, artifacts, subagents. A call
is started once and ended once.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Literal, Protocol, TypedDict, Unpack

from factwire.facts import Fact, RefKind
from factwire.facts.refs import Ref
from factwire.runtime.action_cards import shown_hash
from factwire.runtime.action_requests import ActionRequests
from factwire.runtime.errors import TurnFailed
from factwire.runtime.mint import FactScope, Mint
from factwire.runtime.provider import Decision, DecisionRequest
from factwire.runtime.thread_log import ContentStore, ThreadLog


class Put(Protocol):
    """Writes a fact of the turn that the call belongs to."""

    def __call__(self, event_class: str, payload: dict[str, Any], **ids: Any) -> Fact: ...


class CallRecorder:
    """Records one call."""

    def __init__(self, put: Put, call_id: str, clock: Callable[[], str]) -> None:
        self.call_id = call_id
        self.name = ""
        self._put_fact = put
        self._clock = clock
        self._began = ""
        self._ended = False

    def start(self, name: str, args: dict[str, Any], title: str | None) -> None:
        self.name = name
        self._began = self._clock()
        described = {"toolName": name} if title is None else {"toolName": name, "title": title}
        self._put("tool.started", described)
        self._put("tool.args", {"args": args})

    def output(self, piece: str, stream: str = "stdout") -> None:
        """A piece of output, as it comes."""
        self._put("tool.output.delta", {"delta": piece, "stream": stream})

    def progress(self, message: str, done: float | None = None, total: float | None = None) -> None:
        """How far the call is."""
        payload: dict[str, Any] = {"message": message, "progress": done, "total": total}
        known = {name: value for name, value in payload.items() if value is not None}
        self._put("tool.progress", known)

    def result(self, output: object = None, *, summary: str | None = None) -> None:
        """What came of it; leaving the block without one says that it worked."""
        payload: dict[str, Any] = {"output": output, "summary": summary}
        known = {name: value for name, value in payload.items() if value is not None}
        self._end("tool.result", known)

    def fail(self, category: str, message: str) -> None:
        """It did not work; the category is stable, the message is for people."""
        if not self._ended:
            self._end("tool.failed", {"failureCategory": category, "message": message})

    def close(self) -> None:
        if not self._ended:
            self.result()

    def _end(self, event_class: str, payload: dict[str, Any]) -> None:
        self._ended = True
        self._put(event_class, {"toolName": self.name, **payload, "durationMs": self._elapsed_ms()})

    def _elapsed_ms(self) -> float:
        began, now = datetime.fromisoformat(self._began), datetime.fromisoformat(self._clock())
        return max((now - began).total_seconds() * 1_000, 0.0)

    def _put(self, event_class: str, payload: dict[str, Any]) -> None:
        self._put_fact(event_class, payload, tool_call_id=self.call_id)


Content = bytes | str


class RequestOptions(TypedDict, total=False):
    """What a request says beside its question; `call` is the call that waits for the answer."""

    args: object
    call: CallRecorder | None
    action_type: str
    severity: Literal["low", "medium", "high", "critical"]
    expires_in: float | None
    options: list[Any] | None


class TurnRecorder:
    """Records one turn, or the part of it that a subagent does."""

    def __init__(
        self,
        log: ThreadLog,
        blobs: ContentStore,
        approvals: ActionRequests,
        mint: Mint,
        scope: FactScope,
    ) -> None:
        self.scope = scope
        self._log = log
        self._blobs = blobs
        self._approvals = approvals
        self._mint = mint
        self._message: str | None = None
        self._pieces: list[str] = []

    @property
    def turn_id(self) -> str:
        return self.scope.turn_id or ""

    def text(self, piece: str) -> None:
        """A piece of the answer, as it comes."""
        first: dict[str, Any] = {}
        if self._message is None:
            self._message, first = self._mint.ids("msg"), {"first": True}
        self._pieces.append(piece)
        self._put("model.delta", {"delta": piece, **first}, message_id=self._message)

    def end_text(self) -> None:
        """Close the text that streams; whatever comes next begins another message."""
        if self._message is not None:
            whole = {"text": "".join(self._pieces)}
            self._put("model.completed", whole, message_id=self._message)
            self._message, self._pieces = None, []

    def say(self, text: str) -> None:
        """A whole message."""
        self.end_text()
        self._put("model.completed", {"text": text}, message_id=self._mint.ids("msg"))

    def reasoning(self, summary: str) -> None:
        """What the model gave as a summary of its reasoning."""
        self._put("reasoning.summary", {"summary": summary})

    def plan(self, text: str, steps: Sequence[object] | None = None) -> None:
        """What is going to be done."""
        self._put(
            "plan.final", _without_none(text=text, steps=None if steps is None else list(steps))
        )

    def status(self, message: str, phase: str | None = None) -> None:
        """Where the turn is, in a few words."""
        self._put("run.status", _without_none(status="running", message=message, phase=phase))

    def cost(
        self,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        total_cost_usd: float | None = None,
        model: str | None = None,
    ) -> None:
        """What a call of a model used."""
        self._put(
            "cost.recorded",
            _without_none(
                inputTokens=input_tokens,
                outputTokens=output_tokens,
                totalCostUsd=total_cost_usd,
                model=model,
            ),
        )

    def warning(self, message: str, *, code: str | None = None) -> None:
        """Something that a person may want to look into."""
        self._put("runtime.warning", _without_none(message=message, code=code))

    def fact(self, event_class: str, payload: dict[str, Any] | None = None, **ids: Any) -> Fact:
        """Any other fact of this turn."""
        return self._put(event_class, payload or {}, **ids)

    @asynccontextmanager
    async def tool(
        self, name: str, args: dict[str, Any] | None = None, *, title: str | None = None
    ) -> AsyncGenerator[CallRecorder]:
        """A call of a tool; an exception inside is its failure, and goes on."""
        self.end_text()
        call = CallRecorder(self._put, self._mint.ids("call"), self._mint.clock)
        call.start(name, args or {}, title)
        try:
            yield call
        except asyncio.CancelledError:
            call.fail("cancelled", "cancelled")
            raise
        except BaseException as error:
            call.fail(_category(error), str(error) or type(error).__name__)
            raise
        else:
            call.close()

    async def ask(self, prompt: str, **request: Unpack[RequestOptions]) -> Decision:
        """Ask a person and wait; `args` is exactly what the answer is about."""
        self.end_text()
        shown, digest = shown_hash(prompt, request.get("args"))
        call = request.get("call")
        decision_request = DecisionRequest(
            action_type=request.get("action_type", "tool_approval"),
            prompt=prompt,
            shown=shown,
            args_hash=digest,
            severity=request.get("severity", "medium"),
            tool_call_id=call.call_id if call else None,
            tool_name=call.name if call else None,
            subagent_id=self.scope.subagent_id,
            options=request.get("options"),
            expires_in=request.get("expires_in"),
        )
        decision = await self._approvals.ask(self.scope, decision_request)
        if self._approvals.require_action(decision.action_id).status == "resolved":
            await self._approvals.mark_applied(decision)
        return decision

    async def artifact(
        self,
        title: str,
        content: Content,
        *,
        kind: str = "document",
        media_type: str = "text/plain",
        artifact_id: str | None = None,
    ) -> str:
        """Something that was made; its content goes to a blob, the fact names it."""
        ref = await self._keep(content, "artifact")
        key = artifact_id or self._mint.ids("art")
        known = key in self._log.projection.state.artifacts
        self._put(
            "artifact.versioned" if known else "artifact.created",
            {
                "kind": kind,
                "title": title,
                "mediaType": media_type,
                "versionId": ref.ref.rpartition(":")[2][:12],
                "contentRef": ref.ref,
            },
            artifact_id=key,
            artifact_refs=(ref.ref,),
        )
        await self._log.flush()
        return key

    async def evidence(
        self,
        title: str,
        *,
        kind: str = "verification",
        verdict: str | None = None,
        url: str | None = None,
        content: Content | None = None,
    ) -> str:
        """Something that backs what was said: a source, a check, a trace."""
        ref = None if content is None else (await self._keep(content, "evidence")).ref
        key = self._mint.ids("evd")
        payload = _without_none(kind=kind, title=title, verdict=verdict, url=url, summaryRef=ref)
        refs = () if ref is None else (ref,)
        self._put("evidence.changed", payload, evidence_id=key, evidence_refs=refs)
        return key

    @asynccontextmanager
    async def subagent(self, name: str, task: str) -> AsyncGenerator["TurnRecorder"]:
        """Work that another agent does; what it says is its own, and never the answer."""
        self.end_text()
        ids = self.scope.within(
            subagent_id=self._mint.ids("sub"),
            task_id=self._mint.ids("task"),
            parent_task_id=self.scope.task_id,
        )
        inner = TurnRecorder(self._log, self._blobs, self._approvals, self._mint, ids)
        inner.fact("task.created", {"title": task, "objective": task, "assignee": name})
        inner.fact("subagent.spawned", {"name": name, "role": name, "title": task})
        inner.fact("subagent.started", {"name": name})
        inner.fact("task.started")
        try:
            yield inner
        except BaseException as error:
            inner.end_text()
            failure = {"failureCategory": _category(error), "message": str(error)}
            inner.fact("subagent.failed", failure)
            inner.fact("task.failed", failure)
            raise
        inner.end_text()
        inner.fact("subagent.completed", {"name": name})
        inner.fact("task.completed")

    async def _keep(self, content: Content, kind: RefKind) -> Ref:
        data = content.encode() if isinstance(content, str) else content
        return await self._blobs.put(data, kind=kind)

    def _put(self, event_class: str, payload: dict[str, Any], **ids: Any) -> Fact:
        made = self._mint.fact(self.scope, event_class, payload, **ids)
        self._log.put(made)
        return made


def _without_none(**fields: object) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _category(error: BaseException) -> str:
    if isinstance(error, TurnFailed):
        return error.code
    return "cancelled" if isinstance(error, asyncio.CancelledError) else "exception"
