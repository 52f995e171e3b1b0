"""A remote chat endpoint of the AI SDK: the conversation goes there, its answer comes in chunks.

An approval ends the stream. Once people have decided all that was asked, the message in which it
was asked is sent back with what they said, and its answer goes on. To stop, one hangs up.
"""

from typing import Any, Final

import msgspec

from factwire.facts import CapabilityManifest, Streaming
from factwire.runtime.configuration import Agent
from factwire.runtime.errors import TurnFailed
from factwire.runtime.provider import Decision
from factwire.sources.ai_sdk import SOURCE
from factwire.sources.framing import Item
from factwire.sources.live.agent import LiveAgent
from factwire.sources.live.ai_sdk_messages import AnswerMessage
from factwire.sources.live.remote import Place, Remote, RemoteWork, place_of
from factwire.sources.live.sdk_inputs import INPUTS, data_url, given
from factwire.sources.live.sdk_past import Memory, told_again
from factwire.sources.live.turn import LiveTurn

Row = dict[str, Any]

MANIFEST: Final = CapabilityManifest(
    agent_id="ai-sdk",
    title="AI SDK endpoint",
    version="7",
    inputs=INPUTS,
    streaming=Streaming(text="yes", reasoning="yes", tool_args="yes", tool_output="no"),
    approvals="interrupt",
    action_types=("tool_approval",),
    controls=("send", "queue", "stop", "approve", "reject", "retry"),
    topologies=("solo_run",),
    cancel="yes",
    steer="no",
    queue="yes",
    resume="no",
    subagents="no",
    artifacts="yes",
    evidence="yes",
    sandbox="no",
    cost="no",
)


class AiSdkAgent(LiveAgent):
    """Speaks to one endpoint; what was said on a thread is remembered as it was sent."""

    def __init__(self, place: Place, *, keep_raw: bool = False) -> None:
        manifest = msgspec.structs.replace(MANIFEST, title=place.title)
        super().__init__(SOURCE, manifest, keep_raw=keep_raw)
        self.place = place
        self.memory: Memory[list[Row]] = Memory()

    def work(self, live: LiveTurn) -> "AiSdkWork":
        return AiSdkWork(live, self)


class AiSdkWork(RemoteWork):
    """One answer, in as many streams as there were approvals, and one."""

    def __init__(self, live: LiveTurn, owner: AiSdkAgent) -> None:
        super().__init__(live, owner.place)
        self._owner = owner
        self._message = AnswerMessage(f"{live.turn.turn_id}:answer")
        self._end: Item | None = None

    async def follow(self, remote: Remote) -> None:
        memory, turn = self._owner.memory, self.live.turn
        past = memory.recall(turn)
        memory.forget(turn)
        rows = [*(past or self._past()), await self._asked()]
        await self._stream(remote, rows)
        while self.live.tell.actions and self._end is not None:
            await self._decided()
            await self._stream(remote, [*rows, self._message.row()])
        if self._end is not None:
            self.live.take(self._end)
        memory.keep(turn, [*rows, self._message.row()])

    async def _stream(self, remote: Remote, rows: list[Row]) -> None:
        """Hear an answer; its `finish` is held back, because it may wait for an approval."""
        self._end = None
        ids = {"id": self.live.turn.thread_id, "trigger": "submit-message"}
        async for item in remote.stream({**ids, "messages": rows}):
            if isinstance(item, dict):
                self._message.take(item)
                if item.get("type") == "finish":
                    self._end = item
                    continue
            await self.live.hear(item)

    async def _decided(self) -> None:
        for approval_id, decision in (await self.all_answered()).items():
            allowed, reason = decision.allowed, decision.reason
            self._message.answer(approval_id, approved=allowed, reason=reason)
            said = {"approvalId": approval_id, "approved": allowed, "reason": reason}
            self.live.take({"type": "tool-approval-response", **said})

    async def answer(self, question: str, decision: Decision) -> None:
        if not self._message.asks(question):
            raise TurnFailed(
                "decision_not_delivered", "the endpoint takes approvals of calls alone"
            )
        await super().answer(question, decision)

    async def _asked(self) -> Row:
        content = await given(self.live.turn)
        each = [content] if isinstance(content, str) else content
        parts = [_part(part) for part in each]
        return {"id": f"{self.live.turn.turn_id}:prompt", "role": "user", "parts": parts}

    def _past(self) -> list[Row]:
        return [
            {"id": f"past-{at}", "role": each.role, "parts": [_part(each.text)]}
            for at, each in enumerate(told_again(self.live.turn))
        ]


def agent(settings: Agent) -> AiSdkAgent:
    """The agent that a configuration names; raises `AgentError`."""
    place, options = place_of(settings)
    return AiSdkAgent(place, keep_raw=options.raw)


def _part(each: Any) -> Row:
    if isinstance(each, str):
        return {"type": "text", "text": each}
    return {"type": "file", "mediaType": each.media_type, "url": data_url(each)}
