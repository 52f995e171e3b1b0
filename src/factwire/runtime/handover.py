"""Handing over decisions to agents that ask by their own stream.

An agent outside this process cannot wait at its host: it emits `action.required`, and waits by
means of its own. Such a request is made like any other (it expires, and is bound to the hash of
what is shown), and the decision is handed over by `respond_action`: decided is one fact, applied,
once the agent has it, is another. If it cannot be handed over, the tool that waits for it fails: a
yes that never arrived must not look like one that did.
"""

import asyncio
from datetime import datetime
from typing import Any, Final

import msgspec

from factwire.facts import Fact, id_of
from factwire.facts.vocabulary import ACTION_CLOSERS
from factwire.journal import Filter, Journal, JournalError
from factwire.projection.reading import word
from factwire.runtime.approvals import Approvals, expiry
from factwire.runtime.provider import ActionAsked, Decision, Host, Provider, RespondAction
from factwire.runtime.recording.shown import shown_hash
from factwire.runtime.thread_log import ThreadLog

_MARK: Final = "handover"
"""The field of an `action.required` whose decision has to be handed over."""

_ABOUT: Final = ("toolName", "command", "cwd", "args", "path", "diffRef", "options", "request")
"""What a request shows beside its question."""


class Handover:
    """The requests that one turn makes by its own stream."""

    def __init__(
        self, log: ThreadLog, approvals: Approvals, provider: Provider, host: Host
    ) -> None:
        self._log = log
        self._approvals = approvals
        self._provider = provider
        self._host = host
        self._mint = host.mint
        self._scope = host.scope
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._resumed: set[str] = set()

    async def find(self, journal: Journal) -> None:
        """Find what an earlier run of the turn asked by its stream."""
        wanted = Filter(
            thread=self._scope.thread_id, turn=self._scope.turn_id, classes=("action.required",)
        )
        async for stretch in journal.read(filter=wanted):
            for _, fact in stretch.facts():
                if _MARK in fact.payload:
                    self._resumed.add(id_of(fact, "actionId") or "")

    def resume(self) -> None:
        """Take up again what was found, whether it was decided or not."""
        self._resumed = set(filter(self._is_unanswered, self._resumed))
        for action_id in self._resumed:
            self._begin(action_id)

    def _is_unanswered(self, action_id: str) -> bool:
        """Whether the agent has yet to hear of a request's end."""
        action = self._approvals.known(action_id)
        return action.status == "pending" or (action.status == "resolved" and not action.applied)

    def heard(self, fact: Fact) -> Fact | None:
        """A fact of the stream as it is to be written; None where it says nothing new."""
        action = id_of(fact, "actionId") or ""
        is_open = action in self._log.gates.open_actions
        if fact.event_class == "action.required":
            # An agent that goes on after a restart may ask again what it asked before.
            again = action in self._resumed or (is_open and action in self._tasks)
            self._resumed.discard(action)
            return None if again else self._completed(fact)
        if fact.event_class in ACTION_CLOSERS and action in self._tasks and not is_open:
            return None
        return fact

    def written(self, fact: Fact) -> None:
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
        self._tasks[action_id] = loop.create_task(self._handed_over(action_id))

    def _completed(self, fact: Fact) -> Fact:
        said = fact.payload
        given: dict[str, Any] = {_MARK: True}
        if not _is_time(said.get("expiresAt")):
            given["expiresAt"] = expiry(self._mint.clock())
        if not isinstance(said.get("argsHash"), str):
            about = {name: said[name] for name in _ABOUT if name in said} or None
            prompt = said.get("shown") or said.get("prompt") or fact.title or ""
            given["shown"], given["argsHash"] = shown_hash(str(prompt), about)
        return msgspec.structs.replace(
            fact, payload={**said, **given}, turn_id=fact.turn_id or self._scope.turn_id
        )

    async def _handed_over(self, action_id: str) -> None:
        await self._log.flush()
        decision = await self._approvals.await_open(action_id)
        respond = RespondAction(
            turn_id=self._scope.turn_id or "",
            thread_id=self._log.thread_id,
            decision=decision,
        )
        try:
            fact = await self._provider.respond_action(respond)
            if fact is not None and not _closes(fact, action_id):
                self._log.put(fact)
        except JournalError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the decision is not there
            self._tell_lost(decision, error)
            return
        if self._approvals.known(action_id).status == "resolved":
            await self._approvals.applied(decision)

    def _apply_rule(self, request: Fact) -> None:
        """Where a person has allowed this kind of thing before, that is the answer; it follows at
        once, so that nobody sees the request open.
        """
        said = request.payload
        asked = ActionAsked(
            action_type="tool_approval",
            prompt="",
            shown="",
            args_hash=str(said.get("argsHash")),
            tool_name=word(said, "toolName"),
            command=said.get("command"),
            cwd=word(said, "cwd"),
        )
        rule = self._host.standing_rule(asked)
        if rule is not None:
            self._log.put(self._approvals.allowed_by(rule, request))

    def _tell_lost(self, decision: Decision, error: BaseException) -> None:
        call = self._approvals.known(decision.action_id).tool_call_id
        message = f"the decision did not reach the agent: {type(error).__name__}: {error}"
        said = {"code": "decision_not_delivered", "message": message}
        ids: dict[str, Any] = {"action_id": decision.action_id, "tool_call_id": call}
        self._log.put(self._mint.fact(self._scope, "runtime.warning", said, **ids))
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
