"""A call of a tool as facts: started once, ended once, the facts of its work in between.

What is long goes to a blob, without its secrets, before the fact that names it.
"""

from datetime import datetime
from typing import Any

import msgspec

from factwire.facts import Fact, Ref, RefKind, redact_text
from factwire.facts.limits import PREVIEW_CHARACTERS
from factwire.runtime.minting import Scope
from factwire.runtime.provider import Decision, Host
from factwire.runtime.toolbox.limits import INLINE_CHARACTERS
from factwire.runtime.toolbox.outcomes import Done, Outcome


class Call:
    """One call; `decision` is what a person said to it, if one was asked."""

    def __init__(self, host: Host, scope: Scope, call_id: str, name: str) -> None:
        self.host = host
        self.scope = scope
        self.call_id = call_id
        self.name = name
        self.decision: Decision | None = None
        self._began = host.mint.clock()
        self._acted = False

    def start(self, args: dict[str, Any]) -> None:
        self.put("tool.started", {"toolName": self.name})
        self.put("tool.args", {"args": args})

    def fact(self, event_class: str, payload: dict[str, Any], **fields: Any) -> Fact:
        known = {name: value for name, value in payload.items() if value is not None}
        return self.host.mint.fact(
            self.scope, event_class, known, tool_call_id=self.call_id, **fields
        )

    def put(self, event_class: str, payload: dict[str, Any], **fields: Any) -> None:
        self.host.emit(self.fact(event_class, payload, **fields))

    async def acted(self) -> None:
        """Say that the decision has been acted upon, once: before what could be done twice, after
        what could not.
        """
        if self.decision is not None and not self._acted:
            self._acted = True
            await self.host.applied(self.decision)

    async def keep(self, text: str, kind: RefKind) -> Ref:
        """Keep a text without its secrets; the ref has a preview."""
        clean, _ = redact_text(text)
        ref = await self.host.means.blobs.put(clean.encode("utf-8", "replace"), kind=kind)
        return msgspec.structs.replace(
            ref, media_type="text/plain", preview=clean[:PREVIEW_CHARACTERS]
        )

    async def end(self, done: Done) -> Outcome:
        """Tell what was done."""
        failure = done.category
        payload: dict[str, Any] = {
            **done.told,
            "toolName": self.name,
            "summary": done.summary,
            "exitCode": done.exit_code,
            "failureCategory": failure,
            "message": done.summary if failure else None,
            "recoveryHint": done.hint,
            "durationMs": self._elapsed(),
        }
        ref = done.ref
        if ref is None and len(done.text) > INLINE_CHARACTERS:
            ref = await self.keep(done.text, "output")
        if ref is not None:
            payload["outputRef"] = msgspec.to_builtins(ref)
        elif done.text:
            payload["output"] = done.text
        refs = done.refs if ref is None else (*done.refs, ref.ref)
        self.put("tool.failed" if failure else "tool.result", payload, ref_ids=refs)
        data = done.data if ref is None else {**done.data, "outputRef": ref.ref}
        return Outcome(
            ok=failure is None,
            text=done.text or done.summary or "",
            call_id=self.call_id,
            category=failure,
            data=data,
        )

    def _elapsed(self) -> float:
        began = datetime.fromisoformat(self._began)
        now = datetime.fromisoformat(self.host.mint.clock())
        return max((now - began).total_seconds() * 1_000, 0.0)
