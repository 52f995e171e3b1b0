"""A remote agent that speaks AG-UI: the conversation goes there, the events of a run come back.

An interrupt ends a run; once people have answered everything that it asked, another run goes on
with `resume`. The protocol has no way to stop a run but to hang up.
"""

from base64 import b64encode
from typing import Any, Final, cast

import msgspec

from factwire.facts import CapabilityManifest, Streaming
from factwire.projection.reading import listed, table, word
from factwire.runtime.configuration import Agent
from factwire.runtime.provider import Decision
from factwire.sources.ag_ui import SOURCE, AgUi
from factwire.sources.live.ag_ui_messages import Message, Messages
from factwire.sources.live.agent import LiveAgent
from factwire.sources.live.remote import Place, Remote, RemoteWork, place_of
from factwire.sources.live.sdk_inputs import INPUTS, given
from factwire.sources.live.sdk_past import Memory, told_again
from factwire.sources.live.turn import LiveTurn

MANIFEST: Final = CapabilityManifest(
    agent_id="ag-ui",
    title="AG-UI",
    version="1.0",
    inputs=INPUTS,
    streaming=Streaming(text="yes", reasoning="yes", tool_args="yes", tool_output="no"),
    approvals="interrupt",
    action_types=("tool_approval", "structured_input"),
    controls=("send", "queue", "stop", "approve", "reject", "answer", "retry"),
    topologies=("solo_run", "coordinator_team"),
    cancel="yes",
    steer="no",
    queue="yes",
    resume="no",
    subagents="yes",
    artifacts="yes",
    evidence="no",
    sandbox="no",
)


class AgUiAgent(LiveAgent):
    """Runs one remote agent; what was said on a thread is remembered as it was sent."""

    def __init__(self, place: Place, *, keep_raw: bool = False) -> None:
        manifest = msgspec.structs.replace(MANIFEST, title=place.title)
        super().__init__(SOURCE, manifest, keep_raw=keep_raw)
        self.place = place
        self.memory: Memory[list[Message]] = Memory()

    def work(self, live: LiveTurn) -> "AgUiWork":
        return AgUiWork(live, self)


class AgUiWork(RemoteWork):
    """One run and, after each interrupt, the run that goes on with it."""

    def __init__(self, live: LiveTurn, owner: AgUiAgent) -> None:
        super().__init__(live, owner.place)
        self._owner = owner
        self._messages = Messages([])
        self._forms: set[str] = set()
        self._runs = 0

    async def follow(self, remote: Remote) -> None:
        memory, turn = self._owner.memory, self.live.turn
        past = memory.recall(turn)
        memory.forget(turn)
        self._messages = Messages([*(past or self._past()), await self._asked()])
        await self._run(remote, {})
        while self._converter.is_waiting:
            decisions = await self.all_answered()
            entries = [self._entry(*each) for each in decisions.items()]
            self._resumed(entries)
            await self._run(remote, {"resume": entries})
        memory.keep(turn, self._messages.rows)

    def waits_no_more(self) -> None:
        self._converter.is_waiting = False

    @property
    def _converter(self) -> AgUi:
        return cast("AgUi", self.live.converter)

    @property
    def _ids(self) -> dict[str, str]:
        turn = self.live.turn
        run = turn.turn_id if self._runs == 1 else f"{turn.turn_id}:run-{self._runs}"
        return {"threadId": turn.thread_id, "runId": run}

    async def _run(self, remote: Remote, more: dict[str, Any]) -> None:
        self._runs += not more
        empty: dict[str, Any] = {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
        body = {**self._ids, **empty, "messages": self._messages.rows, **more}
        async for item in remote.stream(body):
            if isinstance(item, dict):
                self._note(item)
            await self.live.hear(item)

    def _resumed(self, entries: list[dict[str, Any]]) -> None:
        """What is decided is told as the run that goes on has it; not every agent repeats that."""
        parent = self._ids["runId"]
        self._runs += 1
        echo = {**self._ids, "messages": [], "resume": entries}
        begin = {"type": "RUN_STARTED", **self._ids, "parentRunId": parent, "input": echo}
        self.live.take(begin)

    def _note(self, event: dict[str, Any]) -> None:
        """What a run has said, and which of its questions are about no call."""
        self._messages.take(event)
        outcome = table(event.get("outcome")) or {}
        for each in map(table, listed(outcome.get("interrupts")) or ()):
            if each is not None and word(each, "toolCallId") is None:
                self._forms.add(word(each, "id") or "")

    def _entry(self, question: str, decision: Decision) -> dict[str, Any]:
        """An answer; a form that nobody filled in is cancelled, and a no to a call is an answer."""
        if not decision.allowed and question in self._forms:
            return {"interruptId": question, "status": "cancelled"}
        payload: Any = {"approved": decision.allowed}
        if decision.reason is not None:
            payload["reason"] = decision.reason
        if decision.allowed and decision.response is not None:
            payload = decision.response
        return {"interruptId": question, "status": "resolved", "payload": payload}

    async def _asked(self) -> Message:
        content: Any = await given(self.live.turn)
        if not isinstance(content, str):
            content = [_part(each) for each in content]
        return {"id": f"{self.live.turn.turn_id}:prompt", "role": "user", "content": content}

    def _past(self) -> list[Message]:
        return [
            {"id": f"past-{at}", "role": each.role, "content": each.text}
            for at, each in enumerate(told_again(self.live.turn))
        ]


def agent(settings: Agent) -> AgUiAgent:
    """The agent that a configuration names; raises `AgentError`."""
    place, options = place_of(settings)
    return AgUiAgent(place, keep_raw=options.raw)


def _part(each: Any) -> dict[str, Any]:
    if isinstance(each, str):
        return {"type": "text", "text": each}
    value = b64encode(each.data).decode()
    return {
        "type": "image",
        "source": {"type": "data", "value": value, "mimeType": each.media_type},
    }
