"""`Telling`: what an outside agent did, told as facts that can stand in a journal.

A source says what happened; this keeps the books: ids that are the same each time, the order, what
is open. Whatever a source leaves open when its turn ends is closed before the end, with a category
that says so, and a stream that stops without an end was cut off. Nothing is read out of prose.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from factwire.facts import Fact, content_ref
from factwire.runtime.minting import Mint, Scope
from factwire.sources.open_work import DONE_IN_A_TURN, TURNS_KEPT, OpenMessage, OpenTool

START: Final = "1970-01-01T00:00:00.000Z"
"""The time of facts whose source tells none, until somebody gives a better one."""

_UNNAMED: Final = "unnamed"
"""The id of what a source gave none, where one is needed."""

Keep = Callable[[bytes], str]
"""Keeps a raw item and gives its ref; the default only names it."""


def name_raw(data: bytes) -> str:
    """The ref of a raw item that nobody keeps."""
    return content_ref("raw", data)


class Telling:
    """Makes the facts of one stream; `drain` hands out what was told since the last time.

    `thread_id` is where they stand; turns are numbered on it.
    """

    def __init__(
        self,
        source: str,
        *,
        thread_id: str,
        at: str = START,
        keep: Keep = name_raw,
    ) -> None:
        self.source = source
        self.at = at
        self.turn_id: str | None = None
        self._scope = Scope(thread_id=thread_id, session_id=thread_id, agent_id=source)
        self.keep = keep
        self._mint = Mint(source, clock=lambda: self.at, ids=self._next_id)
        self._out: list[Fact] = []
        self._turns = 0
        self._facts = 0
        self._asides = 0
        self._begun: dict[str, None] = {}
        self.messages: dict[str, OpenMessage] = {}
        self.tools: dict[str, OpenTool] = {}
        self.actions: dict[str, Scope] = {}
        self.subagents: dict[str, Scope] = {}
        self.commands: dict[str, Scope] = {}
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

    def begin(self, prompt: str | None = None, *, turn_id: str | None = None, **said: Any) -> None:
        """A turn begins; one that is open still was left without an end."""
        if self.is_open:
            self.fail("stream_interrupted", "the stream went on with another turn")
        self._turns += 1
        self.turn_id = turn_id or f"{self.thread_id}:turn-{self._turns}"
        if self.turn_id in self._begun:  # No turn begins twice, whatever a source says.
            self.turn_id = f"{self.turn_id}:again-{self._turns}"
        self._begun[self.turn_id] = None
        if len(self._begun) > TURNS_KEPT:
            del self._begun[next(iter(self._begun))]
        self._facts = 0
        self._scope = self._scope.within(turn_id=self.turn_id, run_id=f"run_{self.turn_id}")
        self.fact("turn.submitted", {**({"prompt": prompt} if prompt else {}), **said})
        self.fact("turn.started", {"agentId": self.source})
        self.fact("run.status", {"status": "running"})

    def complete(self, **said: Any) -> None:
        """The turn has done what it was asked."""
        self._end("turn.completed", said, "interrupted", "the turn ended first")

    def fail(self, category: str, message: str, hint: str | None = None, **said: Any) -> None:
        """The turn has failed."""
        hint = hint or "Look at the diagnostics of the turn, then retry it."
        told = {"failureCategory": category, "message": message, "recoveryHint": hint, **said}
        self._end("turn.failed", told, "interrupted", "the turn ended first")

    def cancel(self, reason: str = "requested", **said: Any) -> None:
        """The turn was stopped."""
        self._end("turn.canceled", {"reason": reason, **said}, "cancelled", "the turn was stopped")

    def cut(self) -> None:
        """The stream is over. A turn without an end was cut off there, and so was whatever went on
        beside the turns.
        """
        if self.is_open:
            self.fail(
                "stream_interrupted",
                "the stream ended before the turn did",
                "Retry the turn; what it had done until then is kept.",
            )
        self._close_all("interrupted", "the stream ended first", everything=True)

    # Text

    def text(
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
            message = OpenMessage([], message_id, part_id, self._speaking(subagent_id))
            self.messages[part_id or message_id] = message
        message.pieces.append(delta)
        ids = {"message_id": message_id, "part_id": part_id}
        self._say(message.scope, "model.delta", {"delta": delta}, **ids)

    def text_end(
        self,
        message_id: str,
        text: str | None = None,
        *,
        part_id: str | None = None,
        subagent_id: str | None = None,
        **said: Any,
    ) -> None:
        """A message, or a part of one, is whole: as it was streamed, or as it is given here."""
        message = self.messages.pop(part_id or message_id, None)
        whole = text if text is not None else "".join(message.pieces if message else ())
        scope = message.scope if message else self._speaking(subagent_id)
        ids = {"message_id": message_id, "part_id": part_id}
        self._say(scope, "model.completed", {"text": whole, **said}, **ids)

    def retract(self, *message_ids: str) -> None:
        """Messages are taken back; the timeline keeps that they were said."""
        gone = [key for key, message in self.messages.items() if message.message_id in message_ids]
        for key in gone:
            del self.messages[key]
        self.fact("messages.snapshot", {"retractedMessageIds": list(message_ids)})

    def reasoning(self, message_id: str, delta: str, **ids: str | None) -> None:
        """That the model reasons; the words themselves are shown nowhere."""
        scope = self._speaking(ids.pop("subagent_id", None))
        self._say(scope, "reasoning.delta", {"delta": delta}, message_id=message_id, **ids)

    def reasoning_summary(self, message_id: str, summary: str, **ids: str | None) -> None:
        """The summary that a model gives of its reasoning."""
        scope = self._speaking(ids.pop("subagent_id", None))
        self._say(scope, "reasoning.summary", {"summary": summary}, message_id=message_id, **ids)

    # Tools

    def tool(
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
        known = self.tools.get(call_id)
        if known is not None:
            self._describe(call_id, known, name, args)
            return
        scope = self._speaking(ids.get("subagent_id")).within(**ids)
        self.tools[call_id] = OpenTool(name, args, scope)
        said = {"toolName": name, "args": args, "title": title}
        self._say(scope, "tool.started", said, tool_call_id=call_id)

    def _describe(self, call_id: str, known: OpenTool, name: str | None, args: Any) -> None:
        """More about a call that is open: its name or its arguments, if they are news."""
        fresh = OpenTool(name or known.name, known.args if args is None else args, known.scope)
        if fresh != known:
            self.tools[call_id] = fresh
            said = {"toolName": fresh.name, "args": fresh.args}
            self._say(known.scope, "tool.args", said, tool_call_id=call_id)

    def tool_args(self, call_id: str, delta: str) -> None:
        """The next piece of a call's arguments."""
        self._of_tool("tool.args.delta", call_id, {"delta": delta})

    def tool_output(self, call_id: str, delta: str, stream: str | None = None) -> None:
        """The next piece of a call's output."""
        self._of_tool("tool.output.delta", call_id, {"delta": delta, "stream": stream})

    def tool_progress(self, call_id: str, **said: Any) -> None:
        self._of_tool("tool.progress", call_id, said)

    def tool_result(self, call_id: str, output: Any = None, **said: Any) -> None:
        """A call has done its work; one that nobody saw begin begins here."""
        self._close_tool("tool.result", call_id, {"output": output, **said})

    def tool_failed(self, call_id: str, category: str, message: str, **said: Any) -> None:
        """A call has failed."""
        told = {"failureCategory": category, "message": message, **said}
        self._close_tool("tool.failed", call_id, told)

    # Decisions

    def ask(self, action_id: str, said: dict[str, Any], **ids: str | None) -> None:
        """A person is asked; once for each id."""
        action_id = action_id or _UNNAMED
        if action_id in self.actions:
            return
        of = {name: value for name, value in ids.items() if name != "tool_call_id"}
        scope = self._speaking(ids.get("subagent_id")).within(**of)
        self.actions[action_id] = scope
        call = ids.get("tool_call_id")
        self._say(scope, "action.required", said, action_id=action_id, tool_call_id=call)

    def answered(self, action_id: str, decision: str, **said: Any) -> None:
        """What was decided."""
        action_id = action_id or _UNNAMED
        scope = self.actions.pop(action_id, None)
        if scope is not None:
            told = {"decision": decision, **said}
            self._say(scope, "action.resolved", told, action_id=action_id)

    def withdrawn(self, action_id: str, reason: str) -> None:
        """Nobody waits for an answer any more."""
        scope = self.actions.pop(action_id, None)
        if scope is not None:
            self._say(scope, "action.cancelled", {"reason": reason}, action_id=action_id)

    # Teams

    def subagent(
        self,
        subagent_id: str,
        *,
        task_id: str | None = None,
        turn_id: str | None = None,
        **said: Any,
    ) -> None:
        """Another agent begins to work, on a task of its own; one with a `turn_id` of its own goes
        on when the turn that started it is over.
        """
        subagent_id = subagent_id or _UNNAMED
        if subagent_id in self.subagents:
            return
        if turn_id is None:
            self._ensure_turn()
        task = task_id or f"{subagent_id}:task"
        scope = self._scope.within(subagent_id=subagent_id, task_id=task)
        scope = self.subagents[subagent_id] = self._beside(scope, turn_id)
        parent = said.pop("parentTaskId", None)
        self._say(scope, "task.created", {**said, "parentTaskId": parent})
        self._say(scope, "subagent.started", said)

    def _beside(self, scope: Scope, turn_id: str | None) -> Scope:
        """Where a subagent works: in the turn, or in one of its own beside it."""
        return scope.within(turn_id=turn_id, run_id=f"run_{turn_id}") if turn_id else scope

    def subagent_end(self, subagent_id: str, event_class: str, **said: Any) -> None:
        """Another agent is done: `subagent.completed` or `subagent.failed`."""
        subagent_id = subagent_id or _UNNAMED
        scope = self.subagents.get(subagent_id)
        if scope is None:
            return
        for call_id in [key for key, tool in self.tools.items() if tool.scope == scope]:
            self.tool_failed(call_id, "interrupted", "the subagent ended first")
        for each in [message for message in self.messages.values() if message.scope == scope]:
            self.text_end(each.message_id, part_id=each.part_id)
        del self.subagents[subagent_id]
        self._say(scope, event_class, said)
        ended = "task.completed" if event_class == "subagent.completed" else "task.failed"
        self._say(scope, ended, said)

    def within(
        self, subagent_id: str | None, event_class: str, said: dict[str, Any], **fields: Any
    ) -> None:
        """Any other fact of a subagent, or of the turn itself."""
        self._say(self._speaking(subagent_id), event_class, said, **fields)

    def warn(self, code: str, message: str, item: Any) -> None:
        """Something that is not known, or not as it should be; the item itself is behind a ref."""
        data = item if isinstance(item, bytes) else msgspec.json.encode(item)
        self.fact("runtime.warning", {"code": code, "message": message}, ref_ids=(self.keep(data),))

    def unknown(self, what: str, item: Any) -> None:
        """An item that this adapter does not know."""
        self.warn("unknown_source_item", f"{self.source} sent {what!r}, which is not known", item)

    def fact(self, event_class: str, payload: dict[str, Any] | None = None, **fields: Any) -> None:
        """Any other fact of the turn."""
        if event_class.partition(".")[0] in DONE_IN_A_TURN:
            self._ensure_turn()
        self._say(self._scope, event_class, payload or {}, **fields)

    def known(self, **ids: Any) -> None:
        """What the source says about itself: ids that all further facts carry."""
        self._scope = self._scope.within(**ids)

    def _of_tool(self, event_class: str, call_id: str, said: dict[str, Any]) -> None:
        call_id = call_id or _UNNAMED
        if call_id not in self.tools:
            self.tool(call_id, None)
        self._say(self.tools[call_id].scope, event_class, said, tool_call_id=call_id)

    def _close_tool(self, event_class: str, call_id: str, said: dict[str, Any]) -> None:
        call_id = call_id or _UNNAMED
        if call_id not in self.tools:
            self.tool(call_id, None)
        tool = self.tools.pop(call_id)
        told = {"toolName": tool.name, **said}
        self._say(tool.scope, event_class, told, tool_call_id=call_id)

    def _end(self, event_class: str, said: dict[str, Any], category: str, message: str) -> None:
        if not self.is_open:
            return
        self._close_all(category, message)
        if self.usage:
            self.fact("metrics.changed", dict(self.usage))
        self.fact(event_class, {**self.usage, **said})
        self._over(event_class.removeprefix("turn."))
        self.usage = {}

    def _over(self, status: str) -> None:
        """The terminal of the turn was told."""
        self.fact("snapshot.updated", {"status": status})
        self.turn_id = None
        self._scope = self._scope.within(turn_id=None, run_id=None, step_id=None)

    def _close_all(self, category: str, message: str, *, everything: bool = False) -> None:
        """Close what is open in the turn that ends, innermost first; `everything` means what is
        open beside it as well.
        """

        def ends(scope: Scope) -> bool:
            return everything or self._ends_with_turn(scope)

        for command_id, scope in [each for each in self.commands.items() if ends(each[1])]:
            del self.commands[command_id]
            self._say(scope, "command.exited", {"commandId": command_id, "status": category})
        for action_id in [key for key, scope in self.actions.items() if ends(scope)]:
            self.withdrawn(action_id, message)
        for call_id in [key for key, tool in self.tools.items() if ends(tool.scope)]:
            self.tool_failed(call_id, category, message)
        for each in [m for m in self.messages.values() if ends(m.scope)]:
            self.text_end(each.message_id, part_id=each.part_id, finishReason=category)
        for subagent_id in [key for key, scope in self.subagents.items() if ends(scope)]:
            self.subagent_end(
                subagent_id, "subagent.failed", failureCategory=category, message=message
            )

    def _ends_with_turn(self, scope: Scope) -> bool:
        return scope.turn_id == self._scope.turn_id

    def _speaking(self, subagent_id: str | None) -> Scope:
        """Where somebody speaks: where a subagent works, or in the turn."""
        scope = self.subagents.get(subagent_id) if subagent_id else None
        if scope is None:
            self._ensure_turn()
            scope = self._scope.within(subagent_id=subagent_id) if subagent_id else self._scope
        return scope

    def _ensure_turn(self) -> None:
        """What an agent does, it does in a turn; one that nobody announced begins here."""
        if not self.is_open:
            self.begin()

    def _say(self, scope: Scope, event_class: str, said: dict[str, Any], **fields: Any) -> None:
        payload = {name: value for name, value in said.items() if value is not None}
        given = {name: value for name, value in fields.items() if value is not None}
        self._out.append(self._mint.fact(scope, event_class, payload, **given))

    def _next_id(self, _: str) -> str:
        """The same stream gives the same ids, each time it is told."""
        if self.turn_id is None:
            self._asides += 1
            return f"{self.thread_id}:{self._asides}"
        self._facts += 1
        return f"{self.turn_id}:{self._facts}"
