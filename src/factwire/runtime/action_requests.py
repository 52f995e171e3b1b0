"""Requests for a decision: asked once, decided once, bound to what was shown, kept in the
journal.

An agent asks through its host and waits, or asks by its own stream; then `DecisionDelivery`
hands it the decision.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from factwire.facts import REDACTED, Fact, Person, id_of, kind_of, status_of
from factwire.facts.classes.class_tables import ACTION_CLOSERS, TURN_TERMINALS
from factwire.facts.json_values import text_at
from factwire.facts.resources import DecisionCard
from factwire.journal import Filter, Journal, JournalError
from factwire.projection import Changes
from factwire.projection.actions import Action
from factwire.runtime.action_cards import (
    REQUEST_FIELDS,
    ShownRequest,
    build_action_card,
    is_hash_of,
    merge_request,
    read_place,
    read_shown,
)
from factwire.runtime.errors import (
    ActionChanged,
    ActionDecided,
    ActionExpired,
    ActionNotShown,
    GateRefused,
    UnknownAction,
    UnknownDecision,
)
from factwire.runtime.limits import APPROVAL_SECONDS
from factwire.runtime.mint import FactScope, Mint
from factwire.runtime.policy import RISKS, PolicyRequest, assess_risk, hash_shown
from factwire.runtime.provider import Decision, DecisionRequest, Host, Provider, RespondAction
from factwire.runtime.standing_rules import to_command
from factwire.runtime.thread_log import ThreadLog

_CLOSING_CLASSES: Final = frozenset(
    {*ACTION_CLOSERS, *TURN_TERMINALS, "tool.result", "tool.failed"}
)
"""Classes of facts that may close a request."""

ALLOWING = ("approved", "allow", "allowed", "answered", "approve")
_YES = {"allow": "approved", "approve": "approved", "approved": "approved", "answer": "answered"}
_NO = {"deny": "denied", "denied": "denied", "reject": "denied", "rejected": "denied"}

Answer = Callable[[Action], Awaitable[str]]
"""Decides a request: `approve`, `deny`, …"""


class ActionRequests:
    """The open requests of one thread."""

    def __init__(self, log: ThreadLog, mint: Mint) -> None:
        self._log = log
        self._mint = mint
        self._waiting: dict[str, asyncio.Future[Decision]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._traced: tuple[str | None, str | None] = None, None
        self._sent: dict[str, str] = {}
        self._exact: dict[str, ShownRequest] = {}
        log.watch(self._announce_ends)

    def _announce_ends(self, fact: Fact, _: Changes) -> None:
        """Give whoever waits the answer, once a fact has closed the request, whatever the fact."""
        if fact.event_class not in _CLOSING_CLASSES:
            return
        for action_id in self._waiting.keys() | self._exact.keys():
            action = self._log.projection.state.actions.get(action_id)
            if action is not None and action.status != "pending":
                self._exact.pop(action_id, None)
                if action_id in self._waiting:
                    self._announce_decision(action_id)

    def trace(self, turn_id: str, trace_id: str | None) -> None:
        """From now on, answers to what this turn asked are part of its trace."""
        self._traced = turn_id, trace_id

    async def ask(
        self, scope: FactScope, request: DecisionRequest, *, rule: str | None = None
    ) -> Decision:
        """Put a request to whoever watches, and wait for the answer; where a person has allowed
        this kind of thing by a `rule`, that is the answer.
        """
        if not is_hash_of(request.args_hash, request.shown):
            # An agent's own hash says nothing of what is shown, which is what an answer is about.
            request = msgspec.structs.replace(request, args_hash=hash_shown(request.shown))
        action_id = self._mint.ids("act")
        seconds = APPROVAL_SECONDS if request.expires_in is None else request.expires_in
        if rule is not None:
            return await self._allow_by_rule(
                self._build_request(scope, action_id, request, seconds), rule
            )
        answer = self._future_of(action_id)
        self.keep_exact(
            action_id,
            ShownRequest(prompt=request.prompt, shown=request.shown, args_hash=request.args_hash),
        )
        try:
            await self._log.write(self._build_request(scope, action_id, request, seconds))
        except BaseException:
            self._waiting.pop(action_id, None)
            self._exact.pop(action_id, None)
            raise
        return await self._answer(action_id, answer, seconds)

    async def _allow_by_rule(self, request: Fact, rule: str) -> Decision:
        """Write a request and its answer at once, so that nobody sees it open."""
        await self._log.write(request, self.build_rule_resolution(rule, request))
        self._sent[request.action_id or ""] = self._mint.clock()
        return _decision(self.require_action(request.action_id or ""))

    def build_rule_resolution(self, rule: str, request: Fact) -> Fact:
        """The answer that a rule gives to a request."""
        fields = {"decision": "approved", "decidedBy": "policy", "reason": f"always: {rule}"}
        fields |= _present_fields(toolName=text_at(request.payload, "toolName"))
        return msgspec.structs.replace(
            request,
            id=self._mint.ids("evt"),
            event_class="action.resolved",
            kind=kind_of("action.resolved"),
            status=status_of("action.resolved"),
            payload={**fields, "applied": False},
        )

    async def await_open(self, action_id: str, shown: str | None = None) -> Decision:
        """Wait for the answer to a request of an earlier run of this turn; `shown` is what would be
        done now.
        """
        action = self.require_action(action_id)
        if shown is not None:
            self.restore_exact(action_id, shown)
        if action.status != "pending":
            self._sent[action_id] = self._mint.clock()
            return _decision(action)
        return await self._answer(action_id, self._future_of(action_id), self._seconds_left(action))

    def keep_exact(self, action_id: str, shown: ShownRequest) -> None:
        """Keep what a request shows, as it is before redaction, for as long as it is open."""
        self._exact[action_id] = shown

    def restore_exact(self, action_id: str, shown: str) -> None:
        """Keep what a request of an earlier run shows, if it is what was hashed then."""
        action = self.require_action(action_id)
        if is_hash_of(action.args_hash, shown):
            prompt, args_hash = action.prompt or action.title or "", action.args_hash or ""
            exact = ShownRequest(prompt=prompt, shown=shown, args_hash=args_hash)
            self.keep_exact(action_id, exact)

    def build_card(self, action_id: str) -> DecisionCard:
        """Exactly what a person decides about; raises `UnknownAction`."""
        return build_action_card(self.require_action(action_id), self._exact.get(action_id))

    def _future_of(self, action_id: str) -> "asyncio.Future[Decision]":
        """The answer to come, which several may wait for."""
        if action_id not in self._waiting:
            self._waiting[action_id] = asyncio.get_running_loop().create_future()
        return self._waiting[action_id]

    async def decide(
        self,
        action_id: str,
        decision: str,
        *,
        by: Person | str,
        args_hash: str,
        reason: str | None = None,
        response: object = None,
        granted: Sequence[Fact] = (),
    ) -> Decision:
        """Decide a request as a person who has seen its card: `args_hash` is the hash of what was
        shown. The same answer again is no news, another one is refused. What is `granted` by a yes
        is written before it.
        """
        wanted = _to_outcome(decision)
        action = self.require_action(action_id)
        if args_hash != action.args_hash:
            raise ActionChanged(f"the request {action_id} is not the one that was shown")
        if action.status == "pending" and wanted in _YES.values():
            card = self.build_card(action_id)
            if card.shown is None:
                raise ActionNotShown(card.reason)
        return await self.apply_decision(
            action_id, decision, by=by, reason=reason, response=response, granted=granted
        )

    async def apply_decision(
        self,
        action_id: str,
        decision: str,
        *,
        by: Person | str,
        reason: str | None = None,
        response: object = None,
        granted: Sequence[Fact] = (),
    ) -> Decision:
        """Write a decision that was made where the request was shown."""
        wanted = _to_outcome(decision)
        action = self.require_action(action_id)
        if action.status != "pending":
            return _repeat_decision(action, wanted)
        if self._seconds_left(action) <= 0:
            await self._expire(action)
            raise ActionExpired(f"{action_id} has expired")
        try:
            resolution = self._build_resolution(action, wanted, by, reason, response)
            self._log.put(*(granted if wanted in _YES.values() else ()), resolution)
        except GateRefused:
            # Somebody else's answer is on its way to the disk, and came first.
            await self._log.flush()
            return _repeat_decision(self.require_action(action_id), wanted)
        await self._log.flush()
        return _decision(self.require_action(action_id))

    def fail(self, action_id: str, error: Exception) -> None:
        """Raise an error where the answer to a request is awaited: it cannot come any more."""
        waiting = self._waiting.pop(action_id, None)
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)

    def answer_later(self, action_id: str, answer: Answer) -> None:
        """Have somebody answer an open request, without waiting for it here."""
        task = asyncio.get_running_loop().create_task(self._apply_answer(action_id, answer))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _apply_answer(self, action_id: str, answer: Answer) -> None:
        decision = await answer(self.require_action(action_id))
        if self.require_action(action_id).status == "pending":
            await self.apply_decision(action_id, decision, by="recorder")

    async def cancel(self, turn_id: str | None) -> None:
        """Close the open requests of a turn that is over; whoever waits hears a no."""
        for action in list(self._log.projection.state.actions.values()):
            if action.status == "pending" and action.turn_id == turn_id:
                self._log.put(
                    self._build_closing(action, "action.cancelled", {"reason": "turn_ended"})
                )
        await self._log.flush()

    def build_withdrawals(self, end: Fact, before: Sequence[Fact]) -> list[Fact]:
        """The facts that close the open requests of a call that is cancelled, those of `before` in
        the same batch, too: nobody needs an answer any more.
        """
        call = id_of(end, "toolCallId")
        if call is None:
            return []
        requests = [
            id_of(fact, "actionId") or ""
            for fact in before
            if fact.event_class == "action.required" and id_of(fact, "toolCallId") == call
        ]
        scope = FactScope(
            **{name: getattr(end, name) for name in FactScope.__struct_fields__},
        )
        return [
            self._mint.fact(
                scope,
                "action.cancelled",
                {"reason": "call_cancelled"},
                title=self._title_of(action_id),
                action_id=action_id,
                tool_call_id=call,
            )
            for action_id in dict.fromkeys((*self._log.gates.list_requests(call), *requests))
        ]

    def _title_of(self, action_id: str) -> str:
        action = self._log.projection.state.actions.get(action_id)
        return (action.title if action else None) or "action.cancelled"

    async def mark_applied(self, decision: Decision) -> None:
        """Note that a decision has been acted upon."""
        action = self.require_action(decision.action_id)
        sent_at = action.sent_at or self._sent.get(action.action_id)
        await self._log.write(self._build_progress(action, sent_at, applied=True))
        self._sent.pop(action.action_id, None)

    def mark_sent(self, decision: Decision) -> None:
        """Note that a decision is on its way to an agent that has yet to confirm it."""
        action = self.require_action(decision.action_id)
        if action.status == "resolved":
            self._sent[action.action_id] = sent_at = self._mint.clock()
            self._log.put(self._build_progress(action, sent_at, applied=False))

    def _build_progress(self, action: Action, sent_at: str | None, *, applied: bool) -> Fact:
        payload = {
            "applied": applied,
            "decision": action.decision,
            "decidedBy": msgspec.to_builtins(action.decided_by),
            "decidedAt": action.resolved_at,
            "sentAt": sent_at,
        }
        known = {name: value for name, value in payload.items() if value is not None}
        return self._build_closing(action, "action.updated", known)

    async def _answer(
        self, action_id: str, answer: "asyncio.Future[Decision]", seconds: float
    ) -> Decision:
        try:
            async with asyncio.timeout(max(seconds, 0)):
                return await asyncio.shield(answer)
        except TimeoutError:
            action = self.require_action(action_id)
            if action.status == "pending":
                await self._expire(action)
            return _decision(self.require_action(action_id))

    async def _expire(self, action: Action) -> None:
        closing = {"decision": "denied", "reason": "expired"}
        await self._log.write(self._build_closing(action, "action.expired", closing))

    def _announce_decision(self, action_id: str) -> None:
        waiting = self._waiting.pop(action_id)
        if not waiting.done():
            waiting.set_result(_decision(self.require_action(action_id)))
            self._sent[action_id] = self._mint.clock()

    def require_action(self, action_id: str) -> Action:
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

    def _build_request(
        self, scope: FactScope, action_id: str, request: DecisionRequest, seconds: float
    ) -> Fact:
        payload = {
            "actionType": request.action_type,
            "severity": request.severity,
            "prompt": request.prompt,
            "shown": request.shown,
            "argsHash": request.args_hash,
            "expiresAt": expiry(self._mint.clock(), seconds),
            "requestedBy": request.requested_by or request.subagent_id or scope.agent_id,
            "toolName": request.tool_name,
            "command": request.command,
            "args": request.args,
            "cwd": request.cwd,
            "rule": request.rule,
            "options": request.options,
            "responseSchema": request.response_schema,
        }
        known = {name: value for name, value in payload.items() if value is not None}
        narrowed = scope.within(subagent_id=request.subagent_id or scope.subagent_id)
        return self._mint.fact(
            narrowed,
            "action.required",
            known,
            title=request.prompt,
            action_id=action_id,
            tool_call_id=request.tool_call_id,
        )

    def _build_resolution(
        self, action: Action, decision: str, by: Person | str, reason: str | None, response: object
    ) -> Fact:
        payload = {
            "decision": decision,
            "decidedBy": msgspec.to_builtins(by),
            "reason": reason,
            "applied": False,
            "response": response,
        }
        known = {name: value for name, value in payload.items() if value is not None}
        return self._build_closing(action, "action.resolved", known)

    def _build_closing(self, action: Action, event_class: str, payload: dict[str, Any]) -> Fact:
        turn_id, traced = self._traced
        scope = FactScope(
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
            {
                **_present_fields(toolName=action.tool_name, requestedAt=action.requested_at),
                **payload,
            },
            title=action.title or event_class,
            action_id=action.action_id,
            tool_call_id=action.tool_call_id,
        )


def _present_fields(**fields: str | None) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value is not None}


def _to_outcome(decision: str) -> str:
    outcome = _YES.get(decision) or _NO.get(decision)
    if outcome is None:
        raise UnknownDecision(decision, sorted({*_YES, *_NO}))
    return outcome


def _repeat_decision(action: Action, wanted: str) -> Decision:
    if action.status == "expired":
        raise ActionExpired(f"{action.action_id} has expired")
    if action.status != "resolved" or (action.decision in ALLOWING) != (wanted in ALLOWING):
        outcome = action.decision or action.status
        raise ActionDecided(f"{action.action_id} was already {outcome}")
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


_MARK: Final = "handover"
"""The field of an `action.required` whose decision has to be handed over."""

_SEVERITIES: Final = frozenset({"severity", "risk", "riskLevel"})
"""Fields by which an agent says how risky something is."""


class DecisionDelivery:
    """The requests that one turn makes by its own stream."""

    def __init__(
        self, log: ThreadLog, approvals: ActionRequests, provider: Provider, host: Host
    ) -> None:
        self._log = log
        self._approvals = approvals
        self._provider = provider
        self._host = host
        self._mint = host.mint
        self._scope = host.scope
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._resumed: set[str] = set()
        self._places: dict[str, tuple[str | None, str | None]] = {}
        self._requests: dict[str, Mapping[str, Any]] = {}

    async def find(self, journal: Journal) -> None:
        """Find what an earlier run of the turn asked by its stream."""
        wanted = Filter(
            thread=self._scope.thread_id, turn=self._scope.turn_id, classes=("action.required",)
        )
        async for batch in journal.read(filter=wanted):
            for _, fact in batch.facts():
                if _MARK in fact.payload:
                    self._note_request(fact)
                    self._resumed.add(id_of(fact, "actionId") or "")

    def resume(self) -> None:
        """Take up again what was found, whether it was decided or not."""
        self._resumed = set(filter(self._is_unanswered, self._resumed))
        for action_id in self._resumed:
            self._begin(action_id)

    def _is_unanswered(self, action_id: str) -> bool:
        """Whether the agent has yet to hear of a request's end."""
        action = self._approvals.require_action(action_id)
        return action.status == "pending" or (action.status == "resolved" and not action.applied)

    def to_recorded_fact(self, fact: Fact) -> Fact | None:
        """A fact of the stream as it is to be written; None where it says nothing new."""
        action = id_of(fact, "actionId") or ""
        is_open = action in self._log.gates.open_actions
        if fact.event_class == "action.required":
            # An agent that goes on after a restart may ask again what it asked before.
            again = action in self._resumed or (is_open and action in self._tasks)
            self._resumed.discard(action)
            whole, shown = self._complete_request(fact, fact)
            known = self._log.projection.state.actions.get(action)
            if known is None or not again or known.args_hash == shown.args_hash:
                self._approvals.keep_exact(action, shown)
            return None if again else whole
        is_update = fact.event_class == "action.updated"
        if is_update and is_open and not REQUEST_FIELDS.isdisjoint(fact.payload):
            merged = merge_request(self._requests.get(action, {}), fact)
            whole, shown = self._complete_request(fact, merged)
            # What it adds to was read from the journal, and may be redacted.
            if action not in self._resumed or REDACTED not in shown.shown:
                self._approvals.keep_exact(action, shown)
            return whole
        if is_update and not _SEVERITIES.isdisjoint(fact.payload):
            severity = _present_fields(severity=self._assess_risk(fact))
            return msgspec.structs.replace(fact, payload={**fact.payload, **severity})
        if fact.event_class in ACTION_CLOSERS and action in self._tasks and not is_open:
            return None
        return None if self._log.gates.is_withdrawn_again(fact) else fact

    def follow_request(self, fact: Fact) -> None:
        """Wait for the decision on a request that was just written, or no longer."""
        action = id_of(fact, "actionId") or ""
        if fact.event_class == "action.required":
            self._apply_rule(fact)
            self._begin(action)
        elif fact.event_class in ACTION_CLOSERS and action in self._tasks:
            # The agent has its answer by itself.
            self._tasks[action].cancel()

    async def stop(self, seconds: float) -> None:
        """Let what is decided arrive, for a while; the rest of the turn's requests are over."""
        await self._log.flush()
        arriving = {
            task
            for action, task in self._tasks.items()
            if not task.done() and action not in self._log.gates.open_actions
        }
        if arriving:
            await asyncio.wait(arriving, timeout=seconds)
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _begin(self, action_id: str) -> None:
        loop = asyncio.get_running_loop()
        self._tasks[action_id] = loop.create_task(self._deliver_decision(action_id))

    def _complete_request(self, fact: Fact, merged: Fact) -> tuple[Fact, ShownRequest]:
        """A request as it is written, and as it is shown with all that it states by now, `merged`.
        The answer is bound to what is shown, whatever the agent has hashed.
        """
        shown = read_shown(merged)
        self._note_request(merged)
        value: dict[str, Any] = {_MARK: True, "shown": shown.shown, "argsHash": shown.args_hash}
        value |= _present_fields(severity=self._assess_risk(fact))
        if not _is_time(fact.payload.get("expiresAt")):
            value["expiresAt"] = expiry(self._mint.clock())
        whole = msgspec.structs.replace(
            fact, payload={**fact.payload, **value}, turn_id=fact.turn_id or self._scope.turn_id
        )
        return whole, shown

    def _assess_risk(self, request: Fact) -> str | None:
        """The risk of what would run, unless the agent itself calls it higher. None where the
        request names no command and no file: then only the agent can say.
        """
        action = self._log.projection.state.actions.get(id_of(request, "actionId") or "")
        fields = request.payload
        if action is not None:
            recorded = {"toolName": action.tool_name, "command": action.command, "cwd": action.cwd}
            fields = {**recorded, **fields}
        severities = [text_at(fields, "severity", "risk", "riskLevel")]
        command, path = to_command(fields.get("command")), text_at(fields, "path")
        if command is not None or path is not None:
            about = PolicyRequest(
                tool=text_at(fields, "toolName") or "run",
                workspace=str(self._host.workspace.resolve()),
                cwd=text_at(fields, "cwd"),
                command=command,
                paths=() if path is None else (path,),
            )
            severities.append(assess_risk(about))
        ranked = [risk for risk in RISKS if risk in severities]
        return ranked[-1] if ranked else None

    def _note_request(self, request: Fact) -> None:
        action, fields = id_of(request, "actionId") or "", request.payload
        self._requests[action] = fields
        self._places[action] = text_at(fields, "place"), text_at(fields, "cwd")

    async def _deliver_decision(self, action_id: str) -> None:
        await self._log.flush()
        decision = self._check_place(await self._approvals.await_open(action_id))
        respond = RespondAction(
            turn_id=self._scope.turn_id or "",
            thread_id=self._log.thread_id,
            decision=decision,
        )
        self._approvals.mark_sent(decision)
        try:
            fact = await self._provider.respond_action(respond)
            if fact is not None and not _closes(fact, action_id):
                self._host.emit(fact)
        except JournalError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the decision is not there
            self._warn_of_lost_decision(decision, error)
            return
        if self._approvals.require_action(action_id).status == "resolved":
            await self._approvals.mark_applied(decision)

    def _check_place(self, decision: Decision) -> Decision:
        """A yes holds for the folders that were shown; with others in their place it is a no."""
        place, cwd = self._places.get(decision.action_id, (None, None))
        workspace = str(self._host.workspace.resolve())
        if not decision.allowed or place in (None, read_place(workspace, cwd)):
            return decision
        message = "the workspace or the folder is another one than when this was shown"
        payload = {"code": "place_changed", "message": message}
        ids = {"action_id": decision.action_id}
        self._log.put(self._mint.fact(self._scope, "runtime.warning", payload, **ids))
        return msgspec.structs.replace(
            decision, allowed=False, decision="denied", reason=f"place_changed: {message}"
        )

    def _apply_rule(self, request: Fact) -> None:
        """Where a person has allowed this kind of thing before, that is the answer; it follows at
        once, so that nobody sees the request open.
        """
        payload = request.payload
        action_request = DecisionRequest(
            action_type="tool_approval",
            prompt="",
            shown="",
            args_hash=str(payload.get("argsHash")),
            tool_name=text_at(payload, "toolName"),
            command=payload.get("command"),
            cwd=text_at(payload, "cwd"),
        )
        rule = self._host.standing_rule(action_request)
        if rule is not None:
            self._log.put(self._approvals.build_rule_resolution(rule, request))

    def _warn_of_lost_decision(self, decision: Decision, error: BaseException) -> None:
        call = self._approvals.require_action(decision.action_id).tool_call_id
        message = f"the decision did not reach the agent: {type(error).__name__}: {error}"
        payload = {"code": "decision_not_delivered", "message": message}
        ids: dict[str, Any] = {"action_id": decision.action_id, "tool_call_id": call}
        self._log.put(self._mint.fact(self._scope, "runtime.warning", payload, **ids))
        if call is not None and call in self._log.gates.open_tools:
            failure = {"failureCategory": "decision_not_delivered", "message": message}
            self._log.put(self._mint.fact(self._scope, "tool.failed", failure, tool_call_id=call))


def _closes(fact: Fact, action_id: str) -> bool:
    return fact.event_class in ACTION_CLOSERS and id_of(fact, "actionId") == action_id


def _is_time(text: object) -> bool:
    try:
        return isinstance(text, str) and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
