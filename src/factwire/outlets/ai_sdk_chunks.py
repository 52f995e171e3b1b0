"""The chunks of an AI SDK message, as they are told one after the other.

Texts, thoughts and streamed inputs are open until they have ended, and a step does not end while
anything is: a client forgets with a step what was open in it.
"""

from collections.abc import Callable
from typing import Any, Final

from factwire.facts import Fact
from factwire.outlets.ai_sdk_versions import Version, chunk, has_chunk
from factwire.outlets.calls import Answer, Call, Question
from factwire.outlets.names import Names
from factwire.outlets.notes import Note, content_of, thing_of
from factwire.outlets.spoken import Spoken
from factwire.projection.reading import word

Address = Callable[[str], str | None]
"""Where a client finds the content of a ref, if it can."""

_OURS: Final = "data-factwire-"
_ASSUMED: Final = "tool_error"
"""The category of a failed call of which nothing else is said."""

_FINISHES: Final = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "content-filter": "content-filter",
    "refusal": "content-filter",
    "tool-calls": "tool-calls",
    "tool_use": "tool-calls",
    "interrupt": "tool-calls",
}


class _Step:
    """What stands in the step that is told: texts that count, and whether anything else does."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.has_more = False


class Chunks:
    """The wire to one client."""

    def __init__(self, version: Version, address: Address) -> None:
        self.version: Version = version
        self.address = address
        self.out: list[dict[str, Any]] = []
        self.turn_id = ""
        self.names = Names()
        self.texts: dict[Spoken, str] = {}
        self.drafts: dict[Spoken, list[str]] = {}
        self.thoughts: dict[str, str] = {}
        self.inputs: set[str] = set()
        self.introduced: set[str] = set()
        self.approvals: set[str] = set()
        self.current = _Step()

    def drain(self) -> list[dict[str, Any]]:
        out, self.out = self.out, []
        return out

    def say(self, kind: str, **fields: Any) -> None:
        self.out.append(chunk(self.version, kind, fields))

    def has(self, kind: str) -> bool:
        return has_chunk(self.version, kind)

    def data(self, name: str, data: dict[str, Any], thing: str | None = None) -> None:
        """A part of ours: a thing that is told again when it changes, or news."""
        kept = {"id": thing} if thing is not None else {"transient": True}
        self.out.append({"type": f"{_OURS}{name}", **kept, "data": data})
        self.current.has_more = self.current.has_more or thing is not None

    # The turn

    def begin(self, fact: Fact, turn_id: str, prompt: str | None, *, is_aside: bool) -> None:
        del prompt  # The client has written it.
        self.names, self.turn_id = Names(), turn_id
        ids = {"threadId": fact.thread_id, "turnId": turn_id}
        metadata: dict[str, Any] = {name: value for name, value in ids.items() if value is not None}
        if is_aside:
            metadata["factwire"] = {"isAside": True}
        self.say("start", messageId=turn_id, messageMetadata=metadata)
        self.say("start-step")
        self.current, self.introduced = _Step(), set()

    def complete(self, fact: Fact | None, usage: dict[str, Any]) -> None:
        reason = word(fact.payload, "stopReason", "finishReason") if fact is not None else None
        finish = _FINISHES.get(reason, "other") if reason else "stop"
        self._end()
        self.say("finish-step")
        self.say("finish", finishReason=finish, messageMetadata={"usage": usage} if usage else None)

    def fail(self, fact: Fact | None, category: str, message: str, usage: dict[str, Any]) -> None:
        del fact
        self._end()
        self.data("failure", {"failureCategory": category, "message": message})
        if usage:
            self.say("message-metadata", messageMetadata={"usage": usage})
        self.say("error", errorText=message)

    def cancel(self, fact: Fact, reason: str | None, usage: dict[str, Any]) -> None:
        del fact
        self._end()
        if usage:
            self.say("message-metadata", messageMetadata={"usage": usage})
        self.say("abort", reason=reason)

    def wait(self) -> None:
        self._end()
        self.say("finish-step")
        self.say("finish", finishReason="tool-calls")

    def _end(self) -> None:
        self.texts, self.drafts, self.thoughts, self.inputs = {}, {}, {}, set()

    def requested(self, fact: Fact) -> None:
        del fact
        self._next_step()

    def step(self, fact: Fact, name: str | None) -> None:
        del fact, name
        self._next_step()

    def _next_step(self) -> None:
        is_used = self.current.texts or self.current.has_more
        if is_used and not (self.texts or self.thoughts or self.inputs):
            self.say("finish-step")
            self.say("start-step")
            self.current = _Step()

    # What is said

    def text(self, fact: Fact, spoken: Spoken, delta: str) -> None:
        if fact.subagent_id is not None:
            self._aside(fact, spoken, delta)
            return
        text_id = self.texts.get(spoken)
        if text_id is None:
            text_id = self._name(spoken)
            self.current.texts.append(text_id)
            self.say("text-start", id=text_id)
        self.say("text-delta", id=text_id, delta=delta)

    def _name(self, spoken: Spoken) -> str:
        name = self.texts[spoken] = self.names.fresh(spoken.message_id, spoken.message_id)
        spoken.names.append(name)
        return name

    def _aside(self, fact: Fact, spoken: Spoken, delta: str) -> None:
        if spoken not in self.drafts:
            self._name(spoken)
            self.drafts[spoken] = []
        self.drafts[spoken].append(delta)
        told = {"subagentId": fact.subagent_id, "messageId": self.texts[spoken], "delta": delta}
        self.data("subagent-delta", told)

    def text_end(self, fact: Fact, spoken: Spoken) -> None:
        text_id, draft = self.texts.pop(spoken, None), self.drafts.pop(spoken, None)
        if text_id is None:
            return
        if draft is None:
            self.say("text-end", id=text_id)
            return
        told = {"subagentId": fact.subagent_id, "messageId": text_id, "text": "".join(draft)}
        self.data("subagent-text", told, text_id)

    def names_of(self, message_id: str) -> list[str]:
        return self.names.of(message_id)

    def withdraw(self, fact: Fact, names: list[str]) -> None:
        """Texts are taken back; a step of nothing else is dropped as a whole, where that exists."""
        del fact
        is_step = bool(names) and set(names) == set(self.current.texts)
        if self.has("reset-step") and is_step and not self.current.has_more:
            self.say("reset-step")
            self.current = _Step()
        elif names:
            self.data("retraction", {"messageIds": names}, f"retraction:{names[0]}")

    def thinking(self, fact: Fact, thought_id: str, summary: str | None) -> None:
        if fact.subagent_id is not None:
            return
        name = self.thoughts.get(thought_id)
        if name is None:
            name = self.thoughts[thought_id] = self.names.fresh(f"{thought_id}:thought")
            self.say("reasoning-start", id=name)
        if summary:
            self.say("reasoning-delta", id=name, delta=summary)
        self.current.has_more = True

    def thought(self, fact: Fact, thought_id: str) -> None:
        name = self.thoughts.pop(thought_id, None)
        if name is not None and fact.subagent_id is None:
            self.say("reasoning-end", id=name)

    # What is done

    def _introduce(self, fact: Fact, call: Call) -> None:
        """A call that began in another message begins in this one as well."""
        if call.call_id not in self.introduced:
            self.tool(fact, call)
            if call.is_whole:
                self.tool_args(fact, call)

    def tool(self, fact: Fact, call: Call) -> None:
        del fact
        self.introduced.add(call.call_id)
        self.inputs.add(call.call_id)
        self.current.has_more = True
        if call.speaker is not None:
            told = {"toolCallId": call.call_id, "subagentId": call.speaker}
            self.data("call", told, call.call_id)
        self.say("tool-input-start", **_named(call))

    def tool_args_piece(self, fact: Fact, call: Call, delta: str) -> None:
        self._introduce(fact, call)
        self.say("tool-input-delta", toolCallId=call.call_id, inputTextDelta=delta)

    def tool_args(self, fact: Fact, call: Call) -> None:
        del fact
        self.inputs.discard(call.call_id)
        self.say("tool-input-available", **_named(call), input=call.args)

    def tool_news(self, fact: Fact, call: Call) -> None:
        self._introduce(fact, call)
        output = fact.payload.get("output")
        if output is not None:
            ids = {"toolCallId": call.call_id, "dynamic": True}
            self.say("tool-output-available", **ids, output=output, preliminary=True)
        else:
            self.data("call-news", {**fact.payload, "toolCallId": call.call_id})

    def tool_result(self, fact: Fact, call: Call, output: Any) -> None:
        self._introduce(fact, call)
        self.inputs.discard(call.call_id)
        chunk = {"type": "tool-output-available", "toolCallId": call.call_id, "dynamic": True}
        self.out.append({**chunk, "output": output})

    def tool_failed(self, fact: Fact, call: Call, category: str, message: str) -> None:
        self._introduce(fact, call)
        self.inputs.discard(call.call_id)
        if call.is_denied and self.has("tool-output-denied"):
            self.say("tool-output-denied", toolCallId=call.call_id)
            return
        if category != _ASSUMED:
            ids = {"toolCallId": call.call_id, "subagentId": call.speaker}
            told = {name: value for name, value in ids.items() if value is not None}
            self.data("call", {**told, "failureCategory": category}, call.call_id)
        self.say("tool-output-error", toolCallId=call.call_id, errorText=message, dynamic=True)

    def ask(self, fact: Fact, question: Question, call: Call | None) -> None:
        if call is None or not self.has("tool-approval-request"):
            self._action(question, "required", question.said)
            return
        self._introduce(fact, call)
        self.approvals.add(question.action_id)
        ids = {"approvalId": question.action_id, "toolCallId": call.call_id}
        self.say("tool-approval-request", **ids, reason=question.prompt)

    def answered(self, fact: Fact, question: Question, answer: Answer) -> None:
        del fact
        is_approval = question.action_id in self.approvals and answer.is_approval is not None
        self.approvals.discard(question.action_id)
        if is_approval and self.has("tool-approval-response"):
            said = {"approved": answer.is_approval, "reason": answer.reason}
            self.say("tool-approval-response", approvalId=question.action_id, **said)
            return
        told = {"decision": answer.decision, "reason": answer.reason, "response": answer.response}
        self._action(question, "resolved" if answer.decision else "cancelled", told)

    def _action(self, question: Question, status: str, said: dict[str, Any]) -> None:
        ids = {"toolCallId": question.call_id, "subagentId": question.speaker}
        told = {name: value for name, value in {**said, **ids}.items() if value is not None}
        action_id = question.action_id
        self.data("action", {**told, "actionId": action_id, "status": status}, action_id)

    def subagent(self, fact: Fact, subagent_id: str) -> None:
        self._subagent(fact, subagent_id, "started")

    def subagent_end(self, fact: Fact, subagent_id: str) -> None:
        is_failed = fact.event_class == "subagent.failed"
        self._subagent(fact, subagent_id, "failed" if is_failed else "completed")

    def _subagent(self, fact: Fact, subagent_id: str, status: str) -> None:
        told = {**content_of(fact), "status": status}
        if fact.turn_id not in (None, self.turn_id):
            told["turnId"] = fact.turn_id
        self.data("subagent", told, subagent_id)

    def state(self, fact: Fact) -> None:
        whole = fact.event_class == "state.snapshot"
        self.data("state", content_of(fact), "state" if whole else None)

    def note(self, fact: Fact, note: Note) -> None:
        handle = _NOTES.get(note.name)
        if handle is None or not handle(self, fact):
            self.data(note.name, content_of(fact), thing_of(fact, note))


def _named(call: Call) -> dict[str, Any]:
    """A call as a client knows it: tools of somewhere else are dynamic ones."""
    return {
        "toolCallId": call.call_id,
        "toolName": call.name,
        "title": call.title,
        "dynamic": True,
    }


def _cited(wire: Chunks, fact: Fact) -> bool:
    """Evidence that has an address is a source of the answer."""
    url, source_id = word(fact.payload, "url"), fact.evidence_id
    if url is None or source_id is None:
        return False
    wire.current.has_more = True
    wire.say("source-url", sourceId=source_id, url=url, title=word(fact.payload, "title"))
    return True


def _shown(wire: Chunks, fact: Fact) -> bool:
    """A file that a client can fetch is shown beside being told."""
    ref, media = word(fact.payload, "contentRef"), word(fact.payload, "mediaType")
    url = wire.address(ref) if ref is not None and media is not None else None
    if url is not None:
        wire.say("file", url=url, mediaType=media)
    return False


def _steered(wire: Chunks, fact: Fact) -> bool:
    """What a person has said meanwhile, once it has reached the agent."""
    said = fact.payload
    text, steer_id = word(said, "text"), word(said, "steerId")
    delivered = word(said, "status") == "delivered" and text is not None and steer_id is not None
    if not delivered or not wire.has("steering-message"):
        return False
    wire.current.has_more = True
    wire.say("steering-message", id=steer_id, parts=[{"type": "text", "text": text}])
    return True


_NOTES: Final[dict[str, Callable[[Chunks, Fact], bool]]] = {
    "artifact": _shown,
    "evidence": _cited,
    "queue": _steered,
}
