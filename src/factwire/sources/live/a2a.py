"""A remote agent of A2A 1.0, over JSON-RPC: its task is worked on by a remote teammate.

A task that needs something ends its stream; the answer is a message to the same task, whose stream
goes on with it. The next turn of a thread is in the same context. A turn that is cancelled cancels
the task, and an answer that is refused does so too, because the protocol has no other no.
"""

from itertools import count
from typing import Any, Final, TypeGuard, cast

import msgspec

from factwire.facts import CapabilityManifest, Streaming
from factwire.projection.reading import table, word
from factwire.runtime.configuration import Agent
from factwire.runtime.provider import Decision
from factwire.sources.a2a import SOURCE, A2a
from factwire.sources.framing import Item
from factwire.sources.live.agent import LiveAgent
from factwire.sources.live.attachments import Given, Words, given_to, words_of
from factwire.sources.live.remote import Place, Remote, RemoteWork, place_of
from factwire.sources.live.turn import LiveTurn

_HEADERS: Final = {"A2A-Version": "1.0"}

MANIFEST: Final = CapabilityManifest(
    agent_id="a2a",
    title="A2A",
    version="1.0",
    inputs=("text", "document", "workspace"),
    streaming=Streaming(text="no", reasoning="no", tool_args="no", tool_output="no"),
    approvals="interrupt",
    action_types=("clarification", "credential_request"),
    controls=("send", "queue", "stop", "answer", "retry"),
    topologies=("remote_teammate",),
    cancel="yes",
    steer="no",
    queue="yes",
    resume="no",
    subagents="yes",
    artifacts="yes",
    evidence="no",
    sandbox="no",
    cost="no",
)


class A2aAgent(LiveAgent):
    """Runs tasks of one remote agent."""

    def __init__(self, place: Place, *, keep_raw: bool = False) -> None:
        super().__init__(
            SOURCE, msgspec.structs.replace(MANIFEST, title=place.title), keep_raw=keep_raw
        )
        self._place = place

    def work(self, live: LiveTurn) -> "A2aWork":
        return A2aWork(live, self._place)


class A2aWork(RemoteWork):
    """One task."""

    def __init__(self, live: LiveTurn, place: Place) -> None:
        super().__init__(live, place)
        self._ids = count(1)
        self._task: str | None = None
        self._context = live.known_session

    async def follow(self, remote: Remote) -> None:
        turn = self.live.turn
        given = await given_to(turn.prompt, turn.input, self.live.host.means.blobs, images=False)
        await self._send(remote, "\n\n".join(words_of(each) for each in given if _is_text(each)))
        while self._converter.is_waiting:
            if not self.live.tell.actions:
                raise self.silent()
            decisions = await self.all_answered()
            if not all(decision.allowed for decision in decisions.values()):
                await self.withdraw(remote)
                self.waits_no_more()
                return
            for question, decision in decisions.items():
                self.live.tell.answered(question, decision.decision)
            await self._send(remote, "\n".join(map(_answer, decisions.values())))

    def waits_no_more(self) -> None:
        self._converter.is_waiting = False

    @property
    def _converter(self) -> A2a:
        return cast("A2a", self.live.converter)

    async def withdraw(self, remote: Remote) -> None:
        """The task is cancelled, as far as the agent does that."""
        if self._task is not None:
            await self._heard(remote, "CancelTask", {"id": self._task})

    async def _send(self, remote: Remote, text: str) -> None:
        message: dict[str, Any] = {
            "messageId": self.live.host.mint.ids("msg"),
            "role": "ROLE_USER",
            "parts": [{"text": text}],
        }
        if self._context is not None:
            message["contextId"] = self._context
        if self._task is not None:
            message["taskId"] = self._task
        await self._heard(remote, "SendStreamingMessage", {"message": message})

    async def _heard(self, remote: Remote, method: str, params: dict[str, Any]) -> None:
        call = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        async for item in remote.stream(call, **_HEADERS):
            self._note(item)
            await self.live.hear(_response(item, method))

    def _note(self, item: Item) -> None:
        """What the other side calls its task and the conversation."""
        result = table(item.get("result")) if isinstance(item, dict) else None
        for kind, name in (
            ("task", "id"),
            ("statusUpdate", "taskId"),
            ("artifactUpdate", "taskId"),
        ):
            told = table((result or {}).get(kind))
            if told is not None:
                self._task = word(told, name) or self._task
                self._remember(word(told, "contextId"))

    def _remember(self, context: str | None) -> None:
        if context is not None and context != self._context:
            self._context = context
            self.live.tell.session(context)


def agent(settings: Agent) -> A2aAgent:
    """The agent that a configuration names; raises `AgentError`."""
    place, options = place_of(settings)
    return A2aAgent(place, keep_raw=options.raw)


def _response(item: Item, method: str) -> Item:
    """A cancelled task is the bare result of its request."""
    if method != "CancelTask" or not isinstance(item, dict) or "result" not in item:
        return item
    return {"task": item["result"]}


def _is_text(each: Given) -> TypeGuard[Words]:
    return isinstance(each, Words)


def _answer(decision: Decision) -> str:
    if isinstance(decision.response, str) and decision.response:
        return decision.response
    said = table(decision.response)
    told = word(said, "text", "answer", "value") if said else None
    return told or decision.reason or decision.decision
