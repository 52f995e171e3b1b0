"""`FactBuilder`: what an outside agent did, as facts that can stand in a journal.

A source says what happened; the builder keeps the books: ids that are the same each time, the
order, what is open. Whatever a source leaves open when its turn ends is closed before the end,
with a category that says so, and a stream that stops without an end was cut off. Nothing is
read out of prose. Times are stated as facts state them: UTC, in milliseconds; one without a
zone is taken for UTC, so that a recording reads the same on every machine.

Notes that our own outlets put into protocols which have no word for them are read back here.
They come from outside like anything else: only classes are believed that begin and end nothing,
and only with the fields that their class requires.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from factwire.facts import Fact, class_issues, content_ref, redact_text, redact_value
from factwire.facts.fact import ATTRIBUTES
from factwire.facts.json_values import text_at
from factwire.runtime.mint import FactScope, Mint
from factwire.runtime.turn_end import carry_result, describe_context, read_route


def parse_iso_time(value: str | None) -> str | None:
    """A time in ISO 8601."""
    try:
        moment = datetime.fromisoformat(value or "")
        return _format_time(moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC))
    except (OverflowError, ValueError):
        return None


def parse_epoch_seconds(value: float | None) -> str | None:
    """Seconds since 1970."""
    if value is None:
        return None
    try:
        return _format_time(datetime.fromtimestamp(value, UTC))
    except (OverflowError, OSError, ValueError):
        return None


def _format_time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


DONE_IN_A_TURN: Final = frozenset(
    {
        "action",
        "command",
        "context",
        "file",
        "model",
        "patch",
        "permission",
        "plan",
        "reasoning",
        "sandbox",
        "test",
        "tool",
    }
)
"""Families of classes that stand in a turn and nowhere else."""

TURNS_KEPT: Final = 4_096
"""Turns whose ids are remembered, so that none begins twice under the same one."""


class OpenMessage(msgspec.Struct):
    """A text that is being written; its pieces are joined at its end."""

    pieces: list[str]
    message_id: str
    part_id: str | None
    scope: FactScope


class SubagentTeam(msgspec.Struct):
    """The subagents of one parent since none of them was at work."""

    members: set[str] = msgspec.field(default_factory=set[str])
    working: set[str] = msgspec.field(default_factory=set[str])
    all_completed: bool = True


class OpenTool(msgspec.Struct, frozen=True):
    """A call that has not ended."""

    name: str | None
    args: Any
    scope: FactScope


START: Final = "1970-01-01T00:00:00.000Z"
"""The time of facts whose source tells none, until somebody gives a better one."""

_UNNAMED: Final = "unnamed"
"""The id of what a source gave none, where one is needed."""

KeepRaw = Callable[[bytes], str]
"""Keeps a raw item and gives its ref; the default only names it."""


def name_raw(data: bytes) -> str:
    """The ref of a raw item that nobody keeps."""
    return content_ref("raw", data)


def redact_raw(data: bytes) -> bytes:
    """A raw item as it may be kept: without secrets, and the very same bytes if it has none."""
    try:
        value: Any = msgspec.json.decode(data)
    except msgspec.DecodeError:
        clean, rules = redact_text(data.decode("utf-8", "replace"))
        return clean.encode("utf-8", "replace") if rules else data
    found, findings = redact_value(value)
    return msgspec.json.encode(found) if findings else data


class FactBuilder:
    """Makes the facts of one stream; `drain` hands out what was told since the last time.

    `thread_id` is where they stand; turns are numbered on it.
    """

    def __init__(
        self,
        source: str,
        *,
        thread_id: str,
        at: str = START,
        keep: KeepRaw = name_raw,
    ) -> None:
        self.source = source
        self.at = at
        self.turn_id: str | None = None
        self._scope = FactScope(thread_id=thread_id, session_id=thread_id, agent_id=source)
        self.keep = keep
        self._mint = Mint(source, clock=lambda: self.at, ids=self._next_id)
        self._out: list[Fact] = []
        self._turns = 0
        self._facts = 0
        self._facts_outside_turns = 0
        self._begun_turns: dict[str, None] = {}
        self.messages: dict[str, OpenMessage] = {}
        self.tools: dict[str, OpenTool] = {}
        self.actions: dict[str, FactScope] = {}
        self.subagents: dict[str, FactScope] = {}
        self._teams: dict[str, SubagentTeam] = {}
        self.commands: dict[str, FactScope] = {}
        self.usage: dict[str, Any] = {}

    @property
    def thread_id(self) -> str:
        return self._scope.thread_id or ""

    @property
    def is_open(self) -> bool:
        """Whether a turn is under way."""
        return self.turn_id is not None

    def drain(self) -> list[Fact]:
        """What was told since the last time."""
        out, self._out = self._out, []
        return out

    # Turns

    def begin_turn(
        self, prompt: str | None = None, *, turn_id: str | None = None, **extra_fields: Any
    ) -> None:
        """A turn begins; one that is open still was left without an end."""
        if self.is_open:
            self.fail_turn("stream_interrupted", "the stream continued with another turn")
        self._turns += 1
        self.turn_id = turn_id or f"{self.thread_id}:turn-{self._turns}"
        while self.turn_id in self._begun_turns:  # No turn begins twice, whatever a source says.
            self.turn_id = f"{self.turn_id}:again-{self._turns}"
        self._begun_turns[self.turn_id] = None
        if len(self._begun_turns) > TURNS_KEPT:
            del self._begun_turns[next(iter(self._begun_turns))]
        self._facts = 0
        self._scope = self._scope.within(turn_id=self.turn_id, run_id=f"run_{self.turn_id}")
        self.add_fact("turn.submitted", {**({"prompt": prompt} if prompt else {}), **extra_fields})
        self.add_fact("turn.started", {"agentId": self.source})
        self.add_fact("run.status", {"status": "running"})

    def complete_turn(self, **extra_fields: Any) -> None:
        """The turn has done what it was asked, and said what it had to say: a text whose end a
        source does not tell is whole.
        """
        if self.is_open:
            for each in [m for m in self.messages.values() if self._ends_with_turn(m.scope)]:
                self.end_text(each.message_id, part_id=each.part_id)
        self._end_turn("turn.completed", extra_fields, "interrupted", "the turn ended first")

    def fail_turn(
        self, category: str, message: str, hint: str | None = None, **extra_fields: Any
    ) -> None:
        """The turn has failed."""
        hint = hint or "Check the diagnostics of the turn, then retry it."
        payload = {
            "failureCategory": category,
            "message": message,
            "recoveryHint": hint,
            **extra_fields,
        }
        self._end_turn("turn.failed", payload, "interrupted", "the turn ended first")

    def cancel_turn(self, reason: str = "requested", **extra_fields: Any) -> None:
        """The turn was stopped."""
        self._end_turn(
            "turn.canceled", {"reason": reason, **extra_fields}, "cancelled", "the turn was stopped"
        )

    def close_stream(self) -> None:
        """The stream is over. A turn without an end was cut off there, and so was whatever went on
        beside the turns.
        """
        if self.is_open:
            self.fail_turn(
                "stream_interrupted",
                "the stream ended before the turn did",
                "Retry the turn; what it did so far is kept.",
            )
        self._close_open_work("interrupted", "the stream ended first", everything=True)

    # Text

    def add_text(
        self,
        message_id: str,
        delta: str,
        *,
        part_id: str | None = None,
        subagent_id: str | None = None,
    ) -> None:
        """The next piece of a message, or of one of its parts."""
        message = self.messages.get(part_id or message_id)
        if message is None:
            message = OpenMessage([], message_id, part_id, self._speaker_scope(subagent_id))
            self.messages[part_id or message_id] = message
        first = None if message.pieces else True
        message.pieces.append(delta)
        ids = {"message_id": message_id, "part_id": part_id}
        self._append_fact(message.scope, "model.delta", {"delta": delta, "first": first}, **ids)

    def end_text(
        self,
        message_id: str,
        text: str | None = None,
        *,
        part_id: str | None = None,
        subagent_id: str | None = None,
        **extra_fields: Any,
    ) -> None:
        """A message, or a part of one, is whole: as it was streamed, or as it is given here."""
        message = self.messages.pop(part_id or message_id, None)
        whole = text if text is not None else "".join(message.pieces if message else ())
        scope = message.scope if message else self._speaker_scope(subagent_id)
        ids = {"message_id": message_id, "part_id": part_id}
        self._append_fact(scope, "model.completed", {"text": whole, **extra_fields}, **ids)

    def retract_messages(self, *message_ids: str) -> None:
        """Messages are taken back; the timeline keeps that they were said."""
        gone = [key for key, message in self.messages.items() if message.message_id in message_ids]
        for key in gone:
            del self.messages[key]
        self.add_fact("messages.snapshot", {"retractedMessageIds": list(message_ids)})

    def add_reasoning(self, message_id: str, delta: str, **ids: str | None) -> None:
        """That the model reasons; the words themselves are shown nowhere."""
        scope = self._speaker_scope(ids.pop("subagent_id", None))
        self._append_fact(scope, "reasoning.delta", {"delta": delta}, message_id=message_id, **ids)

    def add_reasoning_summary(self, message_id: str, summary: str, **ids: str | None) -> None:
        """The summary that a model gives of its reasoning."""
        scope = self._speaker_scope(ids.pop("subagent_id", None))
        self._append_fact(
            scope, "reasoning.summary", {"summary": summary}, message_id=message_id, **ids
        )

    # Tools

    def start_tool(
        self,
        call_id: str,
        name: str | None,
        args: Any = None,
        *,
        title: str | None = None,
        **ids: str | None,
    ) -> None:
        """A tool is called; a call that is open already only gets its arguments."""
        call_id = call_id or _UNNAMED
        open_tool = self.tools.get(call_id)
        if open_tool is not None:
            self._describe_tool(call_id, open_tool, name, args)
            return
        scope = self._speaker_scope(ids.get("subagent_id")).within(**ids)
        self.tools[call_id] = OpenTool(name, args, scope)
        payload = {"toolName": name, "args": args, "title": title}
        self._append_fact(scope, "tool.started", payload, tool_call_id=call_id)

    def _describe_tool(
        self, call_id: str, open_tool: OpenTool, name: str | None, args: Any
    ) -> None:
        """More about a call that is open: its name or its arguments, if they are news."""
        fresh = OpenTool(
            name or open_tool.name, open_tool.args if args is None else args, open_tool.scope
        )
        if fresh != open_tool:
            self.tools[call_id] = fresh
            payload = {"toolName": fresh.name, "args": fresh.args}
            self._append_fact(open_tool.scope, "tool.args", payload, tool_call_id=call_id)

    def add_tool_args(self, call_id: str, delta: str) -> None:
        """The next piece of a call's arguments."""
        self._add_tool_fact("tool.args.delta", call_id, {"delta": delta})

    def add_tool_output(self, call_id: str, delta: str, stream: str | None = None) -> None:
        """The next piece of a call's output."""
        self._add_tool_fact("tool.output.delta", call_id, {"delta": delta, "stream": stream})

    def report_tool_progress(self, call_id: str, **extra_fields: Any) -> None:
        self._add_tool_fact("tool.progress", call_id, extra_fields)

    def complete_tool(self, call_id: str, output: Any = None, **extra_fields: Any) -> None:
        """A call has done its work; one that nobody saw begin begins here."""
        self._close_tool("tool.result", call_id, {"output": output, **extra_fields})

    def fail_tool(self, call_id: str, category: str, message: str, **extra_fields: Any) -> None:
        """A call has failed."""
        payload = {"failureCategory": category, "message": message, **extra_fields}
        self._close_tool("tool.failed", call_id, payload)

    # Decisions

    def require_action(self, action_id: str, payload: dict[str, Any], **ids: str | None) -> None:
        """A person is asked; once for each id."""
        action_id = action_id or _UNNAMED
        if action_id in self.actions:
            return
        of = {name: value for name, value in ids.items() if name != "tool_call_id"}
        scope = self._speaker_scope(ids.get("subagent_id")).within(**of)
        self.actions[action_id] = scope
        call = ids.get("tool_call_id")
        self._append_fact(scope, "action.required", payload, action_id=action_id, tool_call_id=call)

    def resolve_action(self, action_id: str, decision: str, **extra_fields: Any) -> None:
        """What was decided."""
        action_id = action_id or _UNNAMED
        scope = self.actions.pop(action_id, None)
        if scope is not None:
            payload = {"decision": decision, **extra_fields}
            self._append_fact(scope, "action.resolved", payload, action_id=action_id)

    def cancel_action(self, action_id: str, reason: str, *, has_expired: bool = False) -> None:
        """Nobody waits for an answer any more."""
        scope = self.actions.pop(action_id, None)
        if scope is not None:
            event_class = "action.expired" if has_expired else "action.cancelled"
            self._append_fact(scope, event_class, {"reason": reason}, action_id=action_id)

    # Teams

    def start_subagent(
        self,
        subagent_id: str,
        *,
        task_id: str | None = None,
        turn_id: str | None = None,
        **extra_fields: Any,
    ) -> None:
        """Another agent begins to work, on a task of its own; one with a `turn_id` of its own goes
        on when the turn that started it is over. The id of a turn of the thread is not its own.
        """
        subagent_id = subagent_id or _UNNAMED
        if subagent_id in self.subagents:
            return
        if turn_id in self._begun_turns:  # It ends, or has ended, whatever the subagent does.
            turn_id = None
        if turn_id is None:
            self._ensure_turn()
        task = task_id or f"{subagent_id}:task"
        scope = self._scope.within(subagent_id=subagent_id, task_id=task)
        scope = self.subagents[subagent_id] = self._subagent_scope(scope, turn_id)
        parent = extra_fields.pop("parentTaskId", None)
        team = self._teams.setdefault(parent or scope.run_id or self.thread_id, SubagentTeam())
        team.members.add(subagent_id)
        team.working.add(subagent_id)
        self._append_fact(scope, "task.created", {**extra_fields, "parentTaskId": parent})
        self._append_fact(scope, "subagent.started", extra_fields)

    def _subagent_scope(self, scope: FactScope, turn_id: str | None) -> FactScope:
        """Where a subagent works: in the turn, or in one of its own beside it."""
        return scope.within(turn_id=turn_id, run_id=f"run_{turn_id}") if turn_id else scope

    def end_subagent(self, subagent_id: str, event_class: str, **extra_fields: Any) -> None:
        """Another agent is done: `subagent.completed` or `subagent.failed`."""
        subagent_id = subagent_id or _UNNAMED
        scope = self.subagents.get(subagent_id)
        if scope is None:
            return
        for call_id in [key for key, tool in self.tools.items() if tool.scope == scope]:
            self.fail_tool(call_id, "interrupted", "the subagent ended first")
        for each in [message for message in self.messages.values() if message.scope == scope]:
            self.end_text(each.message_id, part_id=each.part_id)
        del self.subagents[subagent_id]
        self._append_fact(scope, event_class, extra_fields)
        ended = "task.completed" if event_class == "subagent.completed" else "task.failed"
        self._append_fact(scope, ended, extra_fields)
        self._leave_team(subagent_id, is_completed=ended == "task.completed")

    def _leave_team(self, subagent_id: str, *, is_completed: bool) -> None:
        """Once the last subagent of a parent is done, report that all of them are."""
        parents = (name for name, team in self._teams.items() if subagent_id in team.working)
        if (parent := next(parents, None)) is None:
            return
        team = self._teams[parent]
        team.working.discard(subagent_id)
        team.all_completed = team.all_completed and is_completed
        if not team.working:
            del self._teams[parent]
            counts = {"childCount": len(team.members), "allComplete": team.all_completed}
            self._append_fact(self._scope, "team.changed", {"parentId": parent, **counts})

    def add_subagent_fact(
        self, subagent_id: str | None, event_class: str, payload: dict[str, Any], **fields: Any
    ) -> None:
        """Any other fact of a subagent, or of the turn itself."""
        self._append_fact(self._speaker_scope(subagent_id), event_class, payload, **fields)

    def report_context(self, input_tokens: int, output_tokens: int, window: int | None) -> None:
        """How full the context of the turn's model is."""
        for event_class, payload in describe_context(input_tokens, output_tokens, window):
            self.add_fact(event_class, payload)

    def unique_name(self, name: str) -> str:
        """The name under which facts have what the source calls so."""
        return name

    def warn(self, code: str, message: str, item: Any) -> None:
        """Something that is not known, or not as it should be; the item itself is behind a ref."""
        data = item if isinstance(item, bytes) else msgspec.json.encode(item)
        self.add_fact(
            "runtime.warning", {"code": code, "message": message}, ref_ids=(self.keep(data),)
        )

    def warn_unknown(self, what: str, item: Any) -> None:
        """An item that this adapter does not know."""
        self.warn("unknown_source_item", f"{self.source} sent {what!r}, which is unknown", item)

    def add_fact(
        self, event_class: str, payload: dict[str, Any] | None = None, **fields: Any
    ) -> None:
        """Any other fact of the turn."""
        if event_class.partition(".")[0] in DONE_IN_A_TURN:
            self._ensure_turn()
        self._append_fact(self._scope, event_class, payload or {}, **fields)

    def set_ids(self, **ids: Any) -> None:
        """What the source says about itself: ids that all further facts carry."""
        self._scope = self._scope.within(**ids)

    def _add_tool_fact(self, event_class: str, call_id: str, payload: dict[str, Any]) -> None:
        call_id = call_id or _UNNAMED
        if call_id not in self.tools:
            self.start_tool(call_id, None)
        self._append_fact(self.tools[call_id].scope, event_class, payload, tool_call_id=call_id)

    def _close_tool(self, event_class: str, call_id: str, payload: dict[str, Any]) -> None:
        call_id = call_id or _UNNAMED
        if call_id not in self.tools:
            self.start_tool(call_id, None)
        tool = self.tools.pop(call_id)
        named_payload = {"toolName": tool.name, **payload}
        self._append_fact(tool.scope, event_class, named_payload, tool_call_id=call_id)

    def _end_turn(
        self, event_class: str, payload: dict[str, Any], category: str, message: str
    ) -> None:
        if not self.is_open:
            return
        self._close_open_work(category, message)
        if self.usage:
            self.add_fact("metrics.changed", dict(self.usage))
        end = {**self.usage, **payload}
        self.add_fact(event_class, end)
        self._finish_turn(event_class.removeprefix("turn."), end)
        self.usage = {}

    def _finish_turn(self, status: str, end: dict[str, Any]) -> None:
        """The terminal of the turn was told."""
        if (route := read_route(end)) is not None:
            self.add_fact("routing.decided", route)
        self.add_fact("snapshot.updated", {"status": status, **carry_result(end)})
        self.turn_id = None
        self._scope = self._scope.within(turn_id=None, run_id=None, step_id=None)

    def _close_open_work(self, category: str, message: str, *, everything: bool = False) -> None:
        """Close what is open in the turn that ends, innermost first; `everything` means what is
        open beside it as well.
        """

        def ends(scope: FactScope) -> bool:
            return everything or self._ends_with_turn(scope)

        for command_id, scope in [each for each in self.commands.items() if ends(each[1])]:
            del self.commands[command_id]
            self._append_fact(
                scope, "command.exited", {"commandId": command_id, "status": category}
            )
        for action_id in [key for key, scope in self.actions.items() if ends(scope)]:
            self.cancel_action(action_id, message)
        for call_id in [key for key, tool in self.tools.items() if ends(tool.scope)]:
            self.fail_tool(call_id, category, message)
        for each in [m for m in self.messages.values() if ends(m.scope)]:
            self.end_text(each.message_id, part_id=each.part_id, finishReason=category)
        for subagent_id in [key for key, scope in self.subagents.items() if ends(scope)]:
            self.end_subagent(
                subagent_id, "subagent.failed", failureCategory=category, message=message
            )

    def _ends_with_turn(self, scope: FactScope) -> bool:
        return scope.turn_id == self._scope.turn_id

    def _speaker_scope(self, subagent_id: str | None) -> FactScope:
        """Where somebody speaks: where a subagent works, or in the turn."""
        scope = self.subagents.get(subagent_id) if subagent_id else None
        if scope is None:
            self._ensure_turn()
            scope = self._scope.within(subagent_id=subagent_id) if subagent_id else self._scope
        return scope

    def _ensure_turn(self) -> None:
        """What an agent does, it does in a turn; one that nobody announced begins here."""
        if not self.is_open:
            self.begin_turn()

    def _append_fact(
        self, scope: FactScope, event_class: str, payload: dict[str, Any], **fields: Any
    ) -> None:
        stated = {name: value for name, value in payload.items() if value is not None}
        ids = {name: value for name, value in fields.items() if value is not None}
        self._out.append(self._mint.fact(scope, event_class, stated, **ids))

    def _next_id(self, _: str) -> str:
        """The same stream gives the same ids, each time it is told."""
        if self.turn_id is None:
            self._facts_outside_turns += 1
            return f"{self.thread_id}:{self._facts_outside_turns}"
        self._facts += 1
        return f"{self.turn_id}:{self._facts}"


_FAMILIES: Final = frozenset(
    {
        "agent",
        "artifact",
        "benchmark",
        "channel",
        "context",
        "cost",
        "evidence",
        "handoff",
        "history",
        "hook",
        "job",
        "limit",
        "output",
        "permission",
        "plan",
        "policy",
        "process",
        "queue",
        "quota",
        "rate_limit",
        "review",
        "routing",
        "runtime",
        "sandbox",
        "task",
        "team",
        "worker",
    }
)
_CLASSES: Final = frozenset(
    {
        "file.changed",
        "file.read",
        "state.delta",
        "state.snapshot",
        "subagent.closed",
        "subagent.input",
        "subagent.progress",
        "subagent.status",
        "tool.catalog.resolved",
    }
)
_COVERED_BY_THEIR_CALL: Final = frozenset({"command", "patch", "test"})
"""Families that begin and end things inside of a call, whose result says how it went."""
_IDS: Final = (
    "subagentId",
    "taskId",
    "toolCallId",
    "artifactId",
    "evidenceId",
    "handoffId",
    "attemptId",
    "reviewId",
    "agentId",
    "workerId",
    "channelId",
    "jobId",
    "jobItemId",
    "processId",
)
_NOT_IN_PAYLOAD: Final = frozenset({*_IDS, "class", "refIds"})


def add_outlet_note(builder: FactBuilder, content: dict[str, Any]) -> None:
    """Tell a note again; one that cannot be believed is a warning with a ref."""
    event_class = text_at(content, "class") or ""
    family = event_class.partition(".")[0]
    if family in _COVERED_BY_THEIR_CALL:
        return
    if family not in _FAMILIES and event_class not in _CLASSES:
        builder.warn_unknown(f"a note of {event_class}", content)
        return
    ids = {ATTRIBUTES[name]: value for name in _IDS if (value := text_at(content, name))}
    payload = {name: value for name, value in content.items() if name not in _NOT_IN_PAYLOAD}
    if class_issues(_probe_fact(event_class, payload, ids)):
        builder.warn_unknown(f"a note of {event_class} without the fields it requires", content)
    elif not (event_class.startswith("task.") and "subagent_id" in ids):
        # The task of a subagent is told with the subagent.
        builder.add_fact(event_class, payload, **ids)


def _probe_fact(event_class: str, payload: dict[str, Any], ids: dict[str, Any]) -> Fact:
    return Fact(
        id="probe",
        kind="state",
        status="pending",
        title=event_class,
        created_at=START,
        schema_version="probe",
        runtime_id="probe",
        event_class=event_class,
        payload=payload,
        **ids,
    )
