"""Facts as AG-UI 1.0 events. `AgUiRun` holds what is open on the wire.

A turn is a run. A question to a person ends its run with an interrupt, and what follows is a run
that goes on with it: `resume` has the answers once all questions have one. Whatever is open on the
wire is closed before a run ends, and opened again, under a name of its own, if it goes on in the
next; so a client that verifies each event has nothing to refuse. What the protocol has no event for
stands in `CUSTOM` events and in `metadata`, both under `factwire`.
"""

from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import msgspec

from factwire.facts import Fact, id_of
from factwire.facts.json_values import object_at, text_at
from factwire.outlets.protocol_writer import (
    NAMES_REMEMBERED,
    ActionAnswer,
    Note,
    OpenCall,
    StreamedText,
    UnansweredAction,
    WireNames,
    content_of,
    failure_details,
    has_failed,
    shared_patch_of,
    thing_of,
)
from factwire.outlets.translator import Translator

PROTOCOL: Final = "1.0"

OwnedName = tuple[str, str | None]
"""The name of something on the wire, and the subagent that it is of."""


class AgUiRun:
    """One run after the other, on one thread."""

    def __init__(self) -> None:
        self.is_open = False
        self.names = WireNames()
        self._out: list[dict[str, Any]] = []
        self._thread_id = "thread"
        self._turn_id = ""
        self._run_id = ""
        self._runs = 0
        self._step: str | None = None
        self._texts: dict[StreamedText, OwnedName] = {}
        self._thoughts: dict[str, OwnedName] = {}
        self._inputs: dict[str, list[str]] = {}
        self._calls: dict[str, OwnedName] = {}
        self._owners: dict[str, str | None] = {}
        self._working: dict[str, dict[str, Any]] = {}
        self._started: dict[str, str] = {}
        self._used: set[str] = set()

    def drain(self) -> list[dict[str, Any]]:
        out, self._out = self._out, []
        return out

    def emit(self, fact: Fact | None, kind: str, **fields: Any) -> None:
        present = {name: value for name, value in fields.items() if value is not None}
        event: dict[str, Any] = {"type": kind, **present}
        if fact is not None and (at := _to_milliseconds(fact.created_at)) is not None:
            event["timestamp"] = at
        self._out.append(event)

    # Runs

    def begin(
        self, fact: Fact, turn_id: str, messages: list[dict[str, Any]], *, is_aside: bool
    ) -> None:
        """The first run of a turn."""
        self._thread_id, self._turn_id, self._runs = fact.thread_id or self._thread_id, turn_id, 1
        self._step, self._run_id = None, turn_id
        metadata = {"factwire": {"isAside": True}} if is_aside else None
        self._open_run(fact, {"messages": messages} if messages else None, metadata=metadata)

    def resume(self, fact: Fact | None, answers: list[dict[str, Any]]) -> None:
        """The next run of a turn."""
        parent = self._run_id
        self._runs += 1
        self._run_id = f"{self._turn_id}:run-{self._runs}"
        echo_fields = {"messages": [], "resume": answers} if answers else None
        self._open_run(fact, echo_fields, parentRunId=parent)
        if self._step is not None:
            self.emit(fact, "STEP_STARTED", stepName=self._step)

    def _open_run(self, fact: Fact | None, echo_fields: dict[str, Any] | None, **more: Any) -> None:
        self.is_open = True
        ids = {"threadId": self._thread_id, "runId": self._run_id}
        echo = {**ids, **echo_fields} if echo_fields else None
        self.emit(fact, "RUN_STARTED", **ids, protocolVersion=PROTOCOL, input=echo, **more)
        self._owners, self._started, self._used = {}, {}, set()
        for subagent_id in self._working:
            self._start_subagent_run(fact, subagent_id)

    def finish(self, fact: Fact | None, **fields: Any) -> None:
        """A run ends, done or waiting; what is open is closed first."""
        self._close_all(fact)
        ids = {"threadId": self._thread_id, "runId": self._run_id}
        self.emit(fact, "RUN_FINISHED", **ids, **fields)
        self.is_open = False

    def fail(self, fact: Fact | None, **fields: Any) -> None:
        self._close_all(fact)
        self.emit(fact, "RUN_ERROR", **fields)
        self.is_open = False

    def end_turn(self) -> None:
        """With a turn its subagents are done; those of a turn of their own work on."""
        self._calls, self._step = {}, None
        self._working = {
            each: subagent
            for each, subagent in self._working.items()
            if subagent["turnId"] not in (None, self._turn_id)
        }

    def set_step(self, fact: Fact, name: str | None) -> None:
        if self._step is not None:
            self.emit(fact, "STEP_FINISHED", stepName=self._step)
        self._step = name
        if name is not None:
            self.emit(fact, "STEP_STARTED", stepName=name)

    def _close_all(self, fact: Fact | None) -> None:
        for text in list(self._texts):
            self.end_text(fact, text)
        for thought_id in list(self._thoughts):
            self.end_thought(fact, thought_id)
        for call_id in list(self._inputs):
            self._end_input(fact, call_id)
        if self._step is not None:
            self.emit(fact, "STEP_FINISHED", stepName=self._step)
        for name in reversed(self._started.values()):
            self.emit(fact, "SUBAGENT_FINISHED", subagentRunId=name, outcome={"type": "suspended"})
        self._started = {}

    # Texts and thoughts

    def open_text(self, fact: Fact, text: StreamedText) -> OwnedName:
        """The message that a text is on the wire; it is begun if it is not open."""
        if text not in self._texts:
            name = self.names.assign(text.message_id, text.message_id)
            text.names.append(name)
            self._texts[text] = name, self.owner_of(fact.subagent_id)
            owner = owner_fields(self._texts[text][1])
            self.emit(fact, "TEXT_MESSAGE_START", messageId=name, role="assistant", **owner)
        return self._texts[text]

    def end_text(self, fact: Fact | None, text: StreamedText) -> None:
        if text in self._texts:
            name, owner = self._texts.pop(text)
            self.emit(fact, "TEXT_MESSAGE_END", messageId=name, **owner_fields(owner))

    def open_thought(self, fact: Fact, thought_id: str) -> OwnedName:
        """The span that somebody thinks in; it is begun if it is not open."""
        if thought_id not in self._thoughts:
            name = self.names.assign(f"{thought_id}:thought")
            self._thoughts[thought_id] = name, self.owner_of(fact.subagent_id)
            owner = owner_fields(self._thoughts[thought_id][1])
            self.emit(fact, "REASONING_START", messageId=name, **owner)
        return self._thoughts[thought_id]

    def end_thought(self, fact: Fact | None, thought_id: str) -> None:
        if thought_id in self._thoughts:
            name, owner = self._thoughts.pop(thought_id)
            self.emit(fact, "REASONING_END", messageId=name, **owner_fields(owner))

    # Calls

    def start_call(self, fact: Fact, call: OpenCall) -> None:
        owner = self.owner_of(call.speaker)
        name = call.call_id
        if self._owners.get(name, owner) != owner:
            name = self.names.assign(f"{name}:{owner or 'agent'}")
        self._calls[call.call_id] = name, owner
        self._owners[name] = owner
        if len(self._owners) > NAMES_REMEMBERED:
            del self._owners[next(iter(self._owners))]
        self._inputs[call.call_id] = []
        ids = {"toolCallId": name, "toolCallName": call.name, **owner_fields(owner)}
        self.emit(fact, "TOOL_CALL_START", **ids)

    def pop_call_name(self, call: OpenCall) -> OwnedName:
        """What a call that ends was called."""
        return self._calls.pop(call.call_id, (call.call_id, self.owner_of(call.speaker)))

    def write_args_piece(self, fact: Fact, call: OpenCall, delta: str) -> None:
        pieces = self._inputs.get(call.call_id)
        if pieces is not None:
            pieces.append(delta)
            name, owner = self._calls[call.call_id]
            self.emit(fact, "TOOL_CALL_ARGS", toolCallId=name, delta=delta, **owner_fields(owner))

    def end_args(self, fact: Fact, call: OpenCall) -> bool:
        """The arguments are whole; whether the client has been told them."""
        pieces = self._inputs.get(call.call_id)
        if pieces is None:
            return False
        if not pieces and call.args is not None:
            self.write_args_piece(fact, call, msgspec.json.encode(call.args).decode())
        text = "".join(pieces)
        self._end_input(fact, call.call_id)
        return call.args is None or _parse_json(text) == call.args

    def _end_input(self, fact: Fact | None, call_id: str) -> None:
        del self._inputs[call_id]
        name, owner = self._calls[call_id]
        self.emit(fact, "TOOL_CALL_END", toolCallId=name, **owner_fields(owner))

    # Subagents

    def owner_of(self, subagent_id: str | None) -> str | None:
        """What a subagent is called on the wire."""
        return self._started.get(subagent_id, subagent_id) if subagent_id is not None else None

    def start_subagent(self, fact: Fact, subagent_id: str) -> None:
        payload = fact.payload
        self._working[subagent_id] = {
            "name": text_at(payload, "title", "name", "role") or subagent_id,
            "description": text_at(payload, "objective"),
            "parentToolCallId": id_of(fact, "toolCallId"),
            "turnId": fact.turn_id,
            "taskId": id_of(fact, "taskId"),
            "parentTaskId": id_of(fact, "parentTaskId"),
        }
        self._start_subagent_run(fact, subagent_id)

    def _start_subagent_run(self, fact: Fact | None, subagent_id: str) -> None:
        name, count = subagent_id, 1
        while name in self._used:
            count += 1
            name = f"{subagent_id}:{count}"
        self._used.add(name)
        self._started[subagent_id] = name
        fields = dict(self._working[subagent_id])
        turn_id = fields.pop("turnId")
        ours: dict[str, str] = {} if name == subagent_id else {"subagentId": subagent_id}
        if turn_id not in (None, self._turn_id):
            ours["turnId"] = turn_id
        parent = self._parent_of(fields.pop("taskId"), fields.pop("parentTaskId"))
        ids = {"subagentRunId": name, "parentSubagentRunId": parent}
        self.emit(
            fact, "SUBAGENT_STARTED", **ids, **fields, metadata={"factwire": ours} if ours else None
        )

    def _parent_of(self, task_id: str | None, parent_task_id: str | None) -> str | None:
        """The subagent, if it has begun in this run, whose task another one's is a part of."""
        if parent_task_id is None or parent_task_id == task_id:
            return None
        for each, name in self._started.items():
            if self._working[each]["taskId"] == parent_task_id:
                return name
        return None

    def end_subagent(self, fact: Fact, subagent_id: str) -> None:
        name = self._started.pop(subagent_id)
        del self._working[subagent_id]
        payload = fact.payload
        if has_failed(fact):
            message = text_at(payload, "message") or "the subagent failed"
            code = text_at(payload, "failureCategory")
            self.emit(fact, "SUBAGENT_ERROR", subagentRunId=name, message=message, code=code)
            return
        result = payload.get("output") or text_at(payload, "summary")
        self.emit(fact, "SUBAGENT_FINISHED", subagentRunId=name, result=result)


def owner_fields(owner: str | None) -> dict[str, str]:
    """The mark of what a subagent says or does."""
    return {"subagentRunId": owner} if owner is not None else {}


def _parse_json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


@lru_cache(maxsize=64)
def _to_milliseconds(at: str) -> int | None:
    try:
        return int(datetime.fromisoformat(at).timestamp() * 1_000) or None
    except ValueError:
        return None


_OURS: Final = "factwire"
_DETAILS: Final = ("actionType", "severity", "options", "toolName", "args", "argsHash")
_TOKENS: Final = {
    "inputTokens": "inputTokens",
    "outputTokens": "outputTokens",
    "totalTokens": "totalTokens",
    "reasoningTokens": "reasoningTokens",
    "cachedInputTokens": "cachedInputTokens",
    "cacheReadTokens": "cachedInputTokens",
    "cacheWriteTokens": "cacheWriteInputTokens",
}


class AgUiOutlet:
    """Encodes the facts of one thread; `take` gives the events of a fact."""

    def __init__(self) -> None:
        self._writer = _EventWriter()
        self._translator = Translator(self._writer)

    def take(self, fact: Fact) -> list[dict[str, Any]]:
        self._translator.take(fact)
        return self._writer.run.drain()

    def finish(self) -> list[dict[str, Any]]:
        """No fact comes any more."""
        self._translator.finish()
        return self._writer.run.drain()


class _EventWriter:
    """The wire; `run` keeps what is open on it. `questions` wait for an answer, and `answers` for
    those of the other questions.
    """

    def __init__(self) -> None:
        self.run = AgUiRun()
        self.actions: dict[str, UnansweredAction] = {}
        self.answers: list[dict[str, Any]] = []

    def emit(self, fact: Fact | None, kind: str, **fields: Any) -> None:
        """An event of the run; one that waits goes on with it."""
        self._ensure_run(fact)
        self.run.emit(fact, kind, **fields)

    def custom(self, fact: Fact, name: str, value: dict[str, Any]) -> None:
        self.emit(fact, "CUSTOM", name=f"{_OURS}.{name}", value=value)

    # The turn

    def begin_turn(self, fact: Fact, turn_id: str, prompt: str | None, *, is_aside: bool) -> None:
        self.actions, self.answers = {}, []
        message = {"id": f"{turn_id}:prompt", "role": "user", "content": prompt}
        self.run.begin(fact, turn_id, messages=[message] if prompt else [], is_aside=is_aside)

    def complete_turn(self, fact: Fact | None, usage: dict[str, Any]) -> None:
        result = fact.payload.get("structuredOutput") if fact is not None else None
        self._finish(fact, usage, "success", result)

    def cancel_turn(self, fact: Fact, reason: str | None, usage: dict[str, Any]) -> None:
        self._finish(fact, usage, "cancelled", None, reason)

    def _finish(
        self,
        fact: Fact | None,
        usage: dict[str, Any],
        outcome: str,
        result: Any,
        reason: str | None = None,
    ) -> None:
        self._ensure_run(fact)
        metadata = {_OURS: {"reason": reason}} if reason else None
        fields = {"result": result, "usage": _to_token_usage(usage), "metadata": metadata}
        self.run.finish(fact, outcome={"type": outcome}, **fields)
        self.run.end_turn()

    def fail_turn(
        self, fact: Fact | None, category: str, message: str, usage: dict[str, Any]
    ) -> None:
        self._ensure_run(fact)
        ours = {_OURS: failure_details(fact, category)}
        fields = {"message": message, "code": category, "metadata": ours}
        self.run.fail(fact, **fields, usage=_to_token_usage(usage))
        self.run.end_turn()

    def start_model_request(self, fact: Fact) -> None:
        """A request to a model is none of the protocol's events."""

    def set_step(self, fact: Fact, name: str | None) -> None:
        self._ensure_run(fact)
        self.run.set_step(fact, name)

    def _ensure_run(self, fact: Fact | None) -> None:
        if not self.run.is_open:
            self._resume_run(fact, [])

    def _resume_run(self, fact: Fact | None, answers: list[dict[str, Any]]) -> None:
        """A run that waits goes on: with all the answers, or because something else happens."""
        self.run.resume(fact, answers)
        waiting, self.answers = self.answers, []
        if not answers:
            for entry in waiting:
                self.run.emit(fact, "CUSTOM", name=f"{_OURS}.answer", value=entry)

    # What is said

    def write_text(self, fact: Fact, text: StreamedText, delta: str) -> None:
        self._ensure_run(fact)
        message_id, owner = self.run.open_text(fact, text)
        self.run.emit(
            fact, "TEXT_MESSAGE_CONTENT", messageId=message_id, delta=delta, **owner_fields(owner)
        )

    def end_text(self, fact: Fact, text: StreamedText) -> None:
        self.run.end_text(fact, text)

    def names_of(self, message_id: str) -> list[str]:
        return self.run.names.names_of(message_id)

    def retract_texts(self, fact: Fact, names: list[str]) -> None:
        if names:
            self.custom(fact, "retraction", {"messageIds": names})

    def write_thought(self, fact: Fact, thought_id: str, summary: str | None) -> None:
        self._ensure_run(fact)
        name, owner = self.run.open_thought(fact, thought_id)
        if not summary:
            return
        message_id = self.run.names.assign(f"{name}:summary")
        ids = {"messageId": message_id, **owner_fields(owner)}
        self.run.emit(fact, "REASONING_MESSAGE_START", role="reasoning", **ids)
        self.run.emit(fact, "REASONING_MESSAGE_CONTENT", delta=summary, **ids)
        self.run.emit(fact, "REASONING_MESSAGE_END", **ids)

    def end_thought(self, fact: Fact, thought_id: str) -> None:
        self.run.end_thought(fact, thought_id)

    # What is done

    def start_call(self, fact: Fact, call: OpenCall) -> None:
        self._ensure_run(fact)
        self.run.start_call(fact, call)

    def write_args_piece(self, fact: Fact, call: OpenCall, delta: str) -> None:
        self._ensure_run(fact)
        self.run.write_args_piece(fact, call, delta)

    def write_args(self, fact: Fact, call: OpenCall) -> None:
        """The arguments; a client that was told others is told these beside the call."""
        self._ensure_run(fact)
        if not self.run.end_args(fact, call):
            self.custom(fact, "args", {"toolCallId": call.call_id, "args": call.args})

    def write_progress(self, fact: Fact, call: OpenCall) -> None:
        self.custom(fact, "call-news", {**fact.payload, "toolCallId": call.call_id})

    def finish_call(self, fact: Fact, call: OpenCall, output: Any) -> None:
        """A result is text; one that is something else says how it is written."""
        if isinstance(output, str):
            self._write_result(fact, call, output, None)
        elif output is None:
            self._write_result(fact, call, "", {"encoding": "none"})
        else:
            content = msgspec.json.encode(output).decode()
            self._write_result(fact, call, content, {"encoding": "json"})

    def fail_call(self, fact: Fact, call: OpenCall, category: str, message: str) -> None:
        self._write_result(fact, call, message, {"failureCategory": category})

    def _write_result(
        self, fact: Fact, call: OpenCall, content: str, ours: dict[str, str] | None
    ) -> None:
        self._ensure_run(fact)
        self.run.end_args(fact, call)
        call_id, owner = self.run.pop_call_name(call)
        self.run.emit(
            fact,
            "TOOL_CALL_RESULT",
            messageId=self.run.names.assign(f"{call_id}:result"),
            toolCallId=call_id,
            content=content,
            role="tool",
            metadata={_OURS: ours} if ours else None,
            **owner_fields(owner),
        )

    def open_action(self, fact: Fact, action: UnansweredAction, call: OpenCall | None) -> None:
        """Every question that is open is one of the run that ends here."""
        del call
        self._ensure_run(fact)
        self.actions[action.action_id] = action
        self._finish_interrupted(fact)

    def pause_turn(self) -> None:
        if self.run.is_open:
            self._finish_interrupted(None)

    def _finish_interrupted(self, fact: Fact | None) -> None:
        interrupts = [self._to_interrupt(each) for each in self.actions.values()]
        self.run.finish(fact, outcome={"type": "interrupt", "interrupts": interrupts})

    def _to_interrupt(self, action: UnansweredAction) -> dict[str, Any]:
        payload = action.payload
        schema = object_at(payload.get("responseSchema"))
        details = {name: payload[name] for name in _DETAILS if payload.get(name) is not None}
        fields = {
            "id": action.action_id,
            "reason": action.action_type,
            "message": action.prompt,
            "toolCallId": action.call_id,
            "responseSchema": schema,
            "expiresAt": text_at(payload, "expiresAt"),
            "metadata": {_OURS: details} if details else None,
            "subagentRunId": self.run.owner_of(action.speaker),
        }
        return {name: value for name, value in fields.items() if value is not None}

    def close_action(self, fact: Fact, action: UnansweredAction, answer: ActionAnswer) -> None:
        self.actions.pop(action.action_id, None)
        entry = _to_resume_entry(action, answer)
        if self.run.is_open:
            self.custom(fact, "answer", entry)
            return
        self.answers.append(entry)
        if not self.actions:
            self._resume_run(fact, self.answers)

    def start_subagent(self, fact: Fact, subagent_id: str) -> None:
        self._ensure_run(fact)
        self.run.start_subagent(fact, subagent_id)

    def end_subagent(self, fact: Fact, subagent_id: str) -> None:
        self._ensure_run(fact)
        self.run.end_subagent(fact, subagent_id)

    def write_state(self, fact: Fact) -> None:
        if fact.event_class == "state.snapshot":
            self.emit(fact, "STATE_SNAPSHOT", snapshot=fact.payload.get("state") or {})
        elif patch := shared_patch_of(fact):
            self.emit(fact, "STATE_DELTA", delta=patch)

    def write_note(self, fact: Fact, note: Note) -> None:
        thing = thing_of(fact, note)
        if thing is None:
            self.custom(fact, note.name, content_of(fact))
            return
        fields = {"activityType": f"{_OURS}.{note.name}", "content": content_of(fact)}
        self.emit(fact, "ACTIVITY_SNAPSHOT", messageId=f"{note.name}:{thing}", **fields)


def _to_resume_entry(action: UnansweredAction, answer: ActionAnswer) -> dict[str, Any]:
    """An answer as the run that goes on has it."""
    if answer.decision is None:
        outcome = "expired" if answer.has_expired else "cancelled"
        details = {"outcome": outcome, "reason": answer.reason}
        return {"interruptId": action.action_id, "status": "cancelled", "payload": details}
    fields = {
        "decision": answer.decision,
        "approved": answer.is_approval,
        "reason": answer.reason,
        "response": answer.response,
    }
    payload = {name: value for name, value in fields.items() if value is not None}
    return {"interruptId": action.action_id, "status": "resolved", "payload": payload}


def _to_token_usage(usage: dict[str, Any]) -> list[dict[str, int]] | None:
    """Counts of tokens as the protocol names them; it has no place for money."""
    counts = {
        wire_name: usage[name]
        for name, wire_name in _TOKENS.items()
        if isinstance(usage.get(name), int)
    }
    return [counts] if counts else None
