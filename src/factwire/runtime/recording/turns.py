"""A turn as it is recorded: text, reasoning, tools, requests, artifacts, subagents.

What is opened is closed: leaving a `with` block says how it ended, and a crash inside becomes a
failure with a category before it goes on its way. Text that streams is one part until something
else happens; then its whole wording is written, so that a reader never has to trust the pieces.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

from factwire.facts import Fact, RefKind
from factwire.facts.refs import Ref
from factwire.journal.blobs import BlobStore
from factwire.runtime.approvals import Approvals
from factwire.runtime.errors import TurnFailed
from factwire.runtime.minting import Mint, Scope
from factwire.runtime.provider import ActionAsked, Decision
from factwire.runtime.recording.calls import CallRecorder
from factwire.runtime.recording.shown import shown_hash
from factwire.runtime.thread_log import ThreadLog

Content = bytes | str


class TurnRecorder:
    """Records one turn, or the part of it that a subagent does."""

    def __init__(
        self, log: ThreadLog, blobs: BlobStore, approvals: Approvals, mint: Mint, scope: Scope
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
        if self._message is None:
            self._message = self._mint.ids("msg")
        self._pieces.append(piece)
        self._put("model.delta", {"delta": piece}, message_id=self._message)

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
        self._put("plan.final", _known(text=text, steps=None if steps is None else list(steps)))

    def status(self, message: str, phase: str | None = None) -> None:
        """Where the turn is, in a few words."""
        self._put("run.status", _known(status="running", message=message, phase=phase))

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
            _known(
                inputTokens=input_tokens,
                outputTokens=output_tokens,
                totalCostUsd=total_cost_usd,
                model=model,
            ),
        )

    def warning(self, message: str, *, code: str | None = None) -> None:
        """Something that a person may want to look into."""
        self._put("runtime.warning", _known(message=message, code=code))

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

    async def ask(
        self,
        prompt: str,
        *,
        args: object = None,
        call: CallRecorder | None = None,
        action_type: str = "tool_approval",
        severity: Literal["low", "medium", "high", "critical"] = "medium",
        expires_in: float | None = None,
        options: list[Any] | None = None,
    ) -> Decision:
        """Ask a person and wait; `args` is exactly what the answer is about."""
        self.end_text()
        shown, digest = shown_hash(prompt, args)
        asked = ActionAsked(
            action_type=action_type,
            prompt=prompt,
            shown=shown,
            args_hash=digest,
            severity=severity,
            tool_call_id=call.call_id if call else None,
            tool_name=call.name if call else None,
            subagent_id=self.scope.subagent_id,
            options=options,
            expires_in=expires_in,
        )
        decision = await self._approvals.ask(self.scope, asked)
        if decision.allowed:
            await self._approvals.applied(decision)
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
        ref = await self._kept(content, "artifact")
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
        ref = None if content is None else (await self._kept(content, "evidence")).ref
        key = self._mint.ids("evd")
        said = _known(kind=kind, title=title, verdict=verdict, url=url, summaryRef=ref)
        refs = () if ref is None else (ref,)
        self._put("evidence.changed", said, evidence_id=key, evidence_refs=refs)
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

    async def _kept(self, content: Content, kind: RefKind) -> Ref:
        data = content.encode() if isinstance(content, str) else content
        return await self._blobs.put(data, kind=kind)

    def _put(self, event_class: str, payload: dict[str, Any], **ids: Any) -> Fact:
        made = self._mint.fact(self.scope, event_class, payload, **ids)
        self._log.put(made)
        return made


def _known(**fields: object) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _category(error: BaseException) -> str:
    if isinstance(error, TurnFailed):
        return error.code
    return "cancelled" if isinstance(error, asyncio.CancelledError) else "exception"
