"""`Run`: what is open on an AG-UI wire, so that each event finds what it needs and nothing else.

A run that waits ends, and its turn goes on in another; everything that was open is closed for that,
and what speaks again does so under a new name. A subagent's name is used once in a run, and whoever
opens something is the one who goes on with it.
"""

from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import msgspec

from factwire.facts import Fact, id_of
from factwire.outlets.calls import Call
from factwire.outlets.limits import NAMES_REMEMBERED
from factwire.outlets.names import Names
from factwire.outlets.spoken import Spoken
from factwire.projection.reading import word

PROTOCOL: Final = "1.0"

Owned = tuple[str, str | None]
"""The name of something on the wire, and the subagent that it is of."""


class Run:
    """One run after the other, on one thread."""

    def __init__(self) -> None:
        self.is_open = False
        self.names = Names()
        self._out: list[dict[str, Any]] = []
        self._thread_id = "thread"
        self._turn_id = ""
        self._run_id = ""
        self._runs = 0
        self._step: str | None = None
        self._texts: dict[Spoken, Owned] = {}
        self._thoughts: dict[str, Owned] = {}
        self._inputs: dict[str, list[str]] = {}
        self._calls: dict[str, Owned] = {}
        self._owners: dict[str, str | None] = {}
        self._working: dict[str, dict[str, Any]] = {}
        self._started: dict[str, str] = {}
        self._used: set[str] = set()

    def drain(self) -> list[dict[str, Any]]:
        out, self._out = self._out, []
        return out

    def say(self, fact: Fact | None, kind: str, **fields: Any) -> None:
        given = {name: value for name, value in fields.items() if value is not None}
        event: dict[str, Any] = {"type": kind, **given}
        if fact is not None and (at := _milliseconds(fact.created_at)) is not None:
            event["timestamp"] = at
        self._out.append(event)

    # Runs

    def begin(
        self, fact: Fact, turn_id: str, messages: list[dict[str, Any]], *, is_aside: bool
    ) -> None:
        """The first run of a turn."""
        self._thread_id, self._turn_id, self._runs = fact.thread_id or self._thread_id, turn_id, 1
        self._step, self._run_id = None, turn_id
        marked = {"factwire": {"isAside": True}} if is_aside else None
        self._open(fact, {"messages": messages} if messages else None, metadata=marked)

    def resume(self, fact: Fact | None, answers: list[dict[str, Any]]) -> None:
        """The next run of a turn."""
        parent = self._run_id
        self._runs += 1
        self._run_id = f"{self._turn_id}:run-{self._runs}"
        given = {"messages": [], "resume": answers} if answers else None
        self._open(fact, given, parentRunId=parent)
        if self._step is not None:
            self.say(fact, "STEP_STARTED", stepName=self._step)

    def _open(self, fact: Fact | None, given: dict[str, Any] | None, **more: Any) -> None:
        self.is_open = True
        ids = {"threadId": self._thread_id, "runId": self._run_id}
        echo = {**ids, **given} if given else None
        self.say(fact, "RUN_STARTED", **ids, protocolVersion=PROTOCOL, input=echo, **more)
        self._owners, self._started, self._used = {}, {}, set()
        for subagent_id in self._working:
            self._start(fact, subagent_id)

    def finish(self, fact: Fact | None, **fields: Any) -> None:
        """A run ends, done or waiting; what is open is closed first."""
        self._close(fact)
        ids = {"threadId": self._thread_id, "runId": self._run_id}
        self.say(fact, "RUN_FINISHED", **ids, **fields)
        self.is_open = False

    def fail(self, fact: Fact | None, **fields: Any) -> None:
        self._close(fact)
        self.say(fact, "RUN_ERROR", **fields)
        self.is_open = False

    def end_turn(self) -> None:
        """With a turn its subagents are done; those of a turn of their own work on."""
        self._calls, self._step = {}, None
        self._working = {
            each: said
            for each, said in self._working.items()
            if said["turnId"] not in (None, self._turn_id)
        }

    def step(self, fact: Fact, name: str | None) -> None:
        if self._step is not None:
            self.say(fact, "STEP_FINISHED", stepName=self._step)
        self._step = name
        if name is not None:
            self.say(fact, "STEP_STARTED", stepName=name)

    def _close(self, fact: Fact | None) -> None:
        for spoken in list(self._texts):
            self.end_text(fact, spoken)
        for thought_id in list(self._thoughts):
            self.end_thought(fact, thought_id)
        for call_id in list(self._inputs):
            self._end_input(fact, call_id)
        if self._step is not None:
            self.say(fact, "STEP_FINISHED", stepName=self._step)
        for name in reversed(self._started.values()):
            self.say(fact, "SUBAGENT_FINISHED", subagentRunId=name, outcome={"type": "suspended"})
        self._started = {}

    # Texts and thoughts

    def text_of(self, fact: Fact, spoken: Spoken) -> Owned:
        """The message that a text is on the wire; it is begun if it is not open."""
        if spoken not in self._texts:
            name = self.names.fresh(spoken.message_id, spoken.message_id)
            spoken.names.append(name)
            self._texts[spoken] = name, self.owner_of(fact.subagent_id)
            owner = tagged(self._texts[spoken][1])
            self.say(fact, "TEXT_MESSAGE_START", messageId=name, role="assistant", **owner)
        return self._texts[spoken]

    def end_text(self, fact: Fact | None, spoken: Spoken) -> None:
        if spoken in self._texts:
            name, owner = self._texts.pop(spoken)
            self.say(fact, "TEXT_MESSAGE_END", messageId=name, **tagged(owner))

    def thought_of(self, fact: Fact, thought_id: str) -> Owned:
        """The span that somebody thinks in; it is begun if it is not open."""
        if thought_id not in self._thoughts:
            name = self.names.fresh(f"{thought_id}:thought")
            self._thoughts[thought_id] = name, self.owner_of(fact.subagent_id)
            owner = tagged(self._thoughts[thought_id][1])
            self.say(fact, "REASONING_START", messageId=name, **owner)
        return self._thoughts[thought_id]

    def end_thought(self, fact: Fact | None, thought_id: str) -> None:
        if thought_id in self._thoughts:
            name, owner = self._thoughts.pop(thought_id)
            self.say(fact, "REASONING_END", messageId=name, **tagged(owner))

    # Calls

    def call(self, fact: Fact, call: Call) -> None:
        owner = self.owner_of(call.speaker)
        name = call.call_id
        if self._owners.get(name, owner) != owner:
            name = self.names.fresh(f"{name}:{owner or 'agent'}")
        self._calls[call.call_id] = name, owner
        self._owners[name] = owner
        if len(self._owners) > NAMES_REMEMBERED:
            del self._owners[next(iter(self._owners))]
        self._inputs[call.call_id] = []
        ids = {"toolCallId": name, "toolCallName": call.name, **tagged(owner)}
        self.say(fact, "TOOL_CALL_START", **ids)

    def call_name(self, call: Call) -> Owned:
        """What a call that ends was called."""
        return self._calls.pop(call.call_id, (call.call_id, self.owner_of(call.speaker)))

    def call_piece(self, fact: Fact, call: Call, delta: str) -> None:
        pieces = self._inputs.get(call.call_id)
        if pieces is not None:
            pieces.append(delta)
            name, owner = self._calls[call.call_id]
            self.say(fact, "TOOL_CALL_ARGS", toolCallId=name, delta=delta, **tagged(owner))

    def end_call(self, fact: Fact, call: Call) -> bool:
        """The arguments are whole; whether the client has been told them."""
        pieces = self._inputs.get(call.call_id)
        if pieces is None:
            return False
        if not pieces and call.args is not None:
            self.call_piece(fact, call, msgspec.json.encode(call.args).decode())
        told = "".join(pieces)
        self._end_input(fact, call.call_id)
        return call.args is None or _parsed(told) == call.args

    def _end_input(self, fact: Fact | None, call_id: str) -> None:
        del self._inputs[call_id]
        name, owner = self._calls[call_id]
        self.say(fact, "TOOL_CALL_END", toolCallId=name, **tagged(owner))

    # Subagents

    def owner_of(self, subagent_id: str | None) -> str | None:
        """What a subagent is called on the wire."""
        return self._started.get(subagent_id, subagent_id) if subagent_id is not None else None

    def subagent(self, fact: Fact, subagent_id: str) -> None:
        said = fact.payload
        self._working[subagent_id] = {
            "name": word(said, "title", "name", "role") or subagent_id,
            "description": word(said, "objective"),
            "parentToolCallId": id_of(fact, "toolCallId"),
            "turnId": fact.turn_id,
            "taskId": id_of(fact, "taskId"),
            "parentTaskId": id_of(fact, "parentTaskId"),
        }
        self._start(fact, subagent_id)

    def _start(self, fact: Fact | None, subagent_id: str) -> None:
        name, count = subagent_id, 1
        while name in self._used:
            count += 1
            name = f"{subagent_id}:{count}"
        self._used.add(name)
        self._started[subagent_id] = name
        said = dict(self._working[subagent_id])
        turn_id = said.pop("turnId")
        ours: dict[str, str] = {} if name == subagent_id else {"subagentId": subagent_id}
        if turn_id not in (None, self._turn_id):
            ours["turnId"] = turn_id
        parent = self._parent(said.pop("taskId"), said.pop("parentTaskId"))
        ids = {"subagentRunId": name, "parentSubagentRunId": parent}
        self.say(
            fact, "SUBAGENT_STARTED", **ids, **said, metadata={"factwire": ours} if ours else None
        )

    def _parent(self, task_id: str | None, parent_task_id: str | None) -> str | None:
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
        said = fact.payload
        if fact.event_class == "subagent.failed":
            message = word(said, "message") or "the subagent failed"
            code = word(said, "failureCategory")
            self.say(fact, "SUBAGENT_ERROR", subagentRunId=name, message=message, code=code)
            return
        result = said.get("output") or word(said, "summary")
        self.say(fact, "SUBAGENT_FINISHED", subagentRunId=name, result=result)


def tagged(owner: str | None) -> dict[str, str]:
    """The mark of what a subagent says or does."""
    return {"subagentRunId": owner} if owner is not None else {}


def _parsed(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


@lru_cache(maxsize=64)
def _milliseconds(at: str) -> int | None:
    try:
        return int(datetime.fromisoformat(at).timestamp() * 1_000) or None
    except ValueError:
        return None
