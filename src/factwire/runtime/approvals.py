"""Approvals: asked once, decided once, bound to what was shown, kept in the journal.

A request is a fact, so is its answer. Whoever waits for it here is only a convenience: after a
restart the request is still open, and can still be answered. An open request that nobody answers in
time is denied. *Decided* and *applied* are two facts.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from factwire.facts import Fact, kind_of, status_of
from factwire.projection.actions import Action
from factwire.runtime.errors import (
    ActionChanged,
    ActionDecided,
    ActionExpired,
    GateRefused,
    UnknownAction,
    UnknownDecision,
)
from factwire.runtime.limits import APPROVAL_SECONDS
from factwire.runtime.minting import Mint, Scope
from factwire.runtime.provider import ActionAsked, Decision
from factwire.runtime.thread_log import ThreadLog

ALLOWING = ("approved", "allow", "allowed", "answered", "approve")
_YES = {"allow": "approved", "approve": "approved", "approved": "approved", "answer": "answered"}
_NO = {"deny": "denied", "denied": "denied", "reject": "denied", "rejected": "denied"}

Answer = Callable[[Action], Awaitable[str]]
"""Decides a request: `approve`, `deny`, …"""


class Approvals:
    """The open requests of one thread."""

    def __init__(self, log: ThreadLog, mint: Mint) -> None:
        self._log = log
        self._mint = mint
        self._waiting: dict[str, asyncio.Future[Decision]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._traced: tuple[str | None, str | None] = None, None

    def trace(self, turn_id: str, trace_id: str | None) -> None:
        """From now on, answers to what this turn asked are part of its trace."""
        self._traced = turn_id, trace_id

    async def ask(self, scope: Scope, asked: ActionAsked, *, rule: str | None = None) -> Decision:
        """Put a request to whoever watches, and wait for the answer; where a person has allowed
        this kind of thing by a `rule`, that is the answer.
        """
        action_id = self._mint.ids("act")
        seconds = APPROVAL_SECONDS if asked.expires_in is None else asked.expires_in
        if rule is not None:
            return await self._allowed(self._request(scope, action_id, asked, seconds), rule)
        answer = self._awaited(action_id)
        try:
            await self._log.write(self._request(scope, action_id, asked, seconds))
        except BaseException:
            self._waiting.pop(action_id, None)
            raise
        return await self._answer(action_id, answer, seconds)

    async def _allowed(self, request: Fact, rule: str) -> Decision:
        """Write a request and its answer at once, so that nobody sees it open."""
        await self._log.write(request, self.allowed_by(rule, request))
        return _decision(self.known(request.action_id or ""))

    def allowed_by(self, rule: str, request: Fact) -> Fact:
        """The answer that a rule gives to a request."""
        said = {"decision": "approved", "decidedBy": "policy", "reason": f"always: {rule}"}
        return msgspec.structs.replace(
            request,
            id=self._mint.ids("evt"),
            event_class="action.resolved",
            kind=kind_of("action.resolved"),
            status=status_of("action.resolved"),
            payload={**said, "applied": False},
        )

    async def await_open(self, action_id: str) -> Decision:
        """Wait for the answer to a request of an earlier run of this turn."""
        action = self.known(action_id)
        if action.status != "pending":
            return _decision(action)
        return await self._answer(action_id, self._awaited(action_id), self._seconds_left(action))

    def _awaited(self, action_id: str) -> "asyncio.Future[Decision]":
        """The answer to come, which several may wait for."""
        if action_id not in self._waiting:
            self._waiting[action_id] = asyncio.get_running_loop().create_future()
        return self._waiting[action_id]

    async def decide(
        self,
        action_id: str,
        decision: str,
        *,
        by: str,
        reason: str | None = None,
        args_hash: str | None = None,
        response: object = None,
    ) -> Decision:
        """Decide a request; the same answer again is no news, another one is refused."""
        wanted = _YES.get(decision) or _NO.get(decision)
        if wanted is None:
            raise UnknownDecision(decision, sorted({*_YES, *_NO}))
        action = self.known(action_id)
        if action.status != "pending":
            return _repeated(action, wanted)
        if args_hash is not None and args_hash != action.args_hash:
            raise ActionChanged(f"what was decided on is not what {action_id} asks for")
        if self._seconds_left(action) <= 0:
            await self._expire(action)
            raise ActionExpired(f"the time to answer {action_id} has run out")
        try:
            self._log.put(self._resolution(action, wanted, by, reason, response))
        except GateRefused:
            # Somebody else's answer is on its way to the disk, and came first.
            await self._log.flush()
            return _repeated(self.known(action_id), wanted)
        await self._log.flush()
        return self._tell(action_id)

    def answer_later(self, action_id: str, answer: Answer) -> None:
        """Have somebody answer an open request, without waiting for it here."""
        task = asyncio.get_running_loop().create_task(self._answered(action_id, answer))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answered(self, action_id: str, answer: Answer) -> None:
        decision = await answer(self.known(action_id))
        if self.known(action_id).status == "pending":
            await self.decide(action_id, decision, by="recorder")

    async def cancel(self, turn_id: str | None) -> None:
        """Close the open requests of a turn that is over; whoever waits hears a no."""
        for action in list(self._log.projection.state.actions.values()):
            if action.status == "pending" and action.turn_id == turn_id:
                self._log.put(self._closing(action, "action.cancelled", {"reason": "turn_ended"}))
        await self._log.flush()
        for action_id in list(self._waiting):
            if self.known(action_id).status != "pending":
                self._tell(action_id)

    async def applied(self, decision: Decision) -> None:
        """Note that a decision has been acted upon."""
        action = self.known(decision.action_id)
        said = {
            "applied": True,
            "decision": action.decision,
            "decidedBy": action.decided_by,
        }
        known = {name: value for name, value in said.items() if value is not None}
        await self._log.write(self._closing(action, "action.updated", known))

    async def _answer(
        self, action_id: str, answer: "asyncio.Future[Decision]", seconds: float
    ) -> Decision:
        try:
            async with asyncio.timeout(max(seconds, 0)):
                return await asyncio.shield(answer)
        except TimeoutError:
            action = self.known(action_id)
            if action.status == "pending":
                await self._expire(action)
            return _decision(self.known(action_id))

    async def _expire(self, action: Action) -> None:
        closing = {"decision": "denied", "reason": "expired"}
        await self._log.write(self._closing(action, "action.expired", closing))
        self._tell(action.action_id)

    def _tell(self, action_id: str) -> Decision:
        decision = _decision(self.known(action_id))
        waiting = self._waiting.pop(action_id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(decision)
        return decision

    def known(self, action_id: str) -> Action:
        """A request of this thread; raises `UnknownAction`."""
        action = self._log.projection.state.actions.get(action_id)
        if action is None:
            raise UnknownAction(f"no action {action_id} on thread {self._log.thread_id}")
        return action

    def _seconds_left(self, action: Action) -> float:
        if action.expires_at is None:
            return APPROVAL_SECONDS
        left = _time(action.expires_at) - _time(self._mint.clock())
        return left.total_seconds()

    def _request(self, scope: Scope, action_id: str, asked: ActionAsked, seconds: float) -> Fact:
        payload = {
            "actionType": asked.action_type,
            "severity": asked.severity,
            "prompt": asked.prompt,
            "shown": asked.shown,
            "argsHash": asked.args_hash,
            "expiresAt": expiry(self._mint.clock(), seconds),
            "requestedBy": asked.requested_by or asked.subagent_id or scope.agent_id,
            "toolName": asked.tool_name,
            "command": asked.command,
            "cwd": asked.cwd,
            "rule": asked.rule,
            "options": asked.options,
            "responseSchema": asked.response_schema,
        }
        known = {name: value for name, value in payload.items() if value is not None}
        narrowed = scope.within(subagent_id=asked.subagent_id or scope.subagent_id)
        return self._mint.fact(
            narrowed,
            "action.required",
            known,
            title=asked.prompt,
            action_id=action_id,
            tool_call_id=asked.tool_call_id,
        )

    def _resolution(
        self, action: Action, decision: str, by: str, reason: str | None, response: object
    ) -> Fact:
        payload = {
            "decision": decision,
            "decidedBy": by,
            "reason": reason,
            "applied": False,
            "response": response,
        }
        known = {name: value for name, value in payload.items() if value is not None}
        return self._closing(action, "action.resolved", known)

    def _closing(self, action: Action, event_class: str, payload: dict[str, Any]) -> Fact:
        turn_id, traced = self._traced
        scope = Scope(
            session_id=self._log.projection.state.session_id,
            thread_id=self._log.thread_id,
            turn_id=action.turn_id,
            run_id=action.run_id,
            task_id=action.task_id,
            agent_id=action.agent_id,
            subagent_id=action.subagent_id,
            trace_id=traced if action.turn_id == turn_id else None,
        )
        return self._mint.fact(
            scope,
            event_class,
            payload,
            title=action.title or event_class,
            action_id=action.action_id,
            tool_call_id=action.tool_call_id,
        )


def _repeated(action: Action, wanted: str) -> Decision:
    if action.status == "expired":
        raise ActionExpired(f"the time to answer {action.action_id} has run out")
    if action.status != "resolved" or (action.decision in ALLOWING) != (wanted in ALLOWING):
        said = action.decision or action.status
        raise ActionDecided(f"{action.action_id} was {said} already")
    return _decision(action)


def _decision(action: Action) -> Decision:
    return Decision(
        action_id=action.action_id,
        allowed=action.status == "resolved" and action.decision in ALLOWING,
        decision=action.decision or action.status,
        reason=action.reason,
        decided_by=action.decided_by,
        response=action.response,
    )


def expiry(clock: str, seconds: float = APPROVAL_SECONDS) -> str:
    """When a request that is made now is denied, if nobody answers."""
    expires = _time(clock) + timedelta(seconds=seconds)
    return expires.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
