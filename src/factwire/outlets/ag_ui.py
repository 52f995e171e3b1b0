"""AG-UI 1.0 events.

A turn is a run. A question to a person ends its run with an interrupt, and what follows is a run
that goes on with it: `resume` has the answers once all questions have one. Whatever is open on the
wire is closed before a run ends, and opened again, under a name of its own, if it goes on in the
next; so a client that verifies each event has nothing to refuse. What the protocol has no event for
stands in `CUSTOM` events and in `metadata`, both under `factwire`.
"""

from typing import Any, Final

import msgspec

from factwire.facts import Fact
from factwire.outlets.ag_ui_run import Run, tagged
from factwire.outlets.calls import Answer, Call, Question, shared_patch
from factwire.outlets.narrator import Narrator
from factwire.outlets.notes import Note, content_of, thing_of
from factwire.outlets.spoken import Spoken
from factwire.projection.reading import table, word

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
        self._wire = _Events()
        self._narrator = Narrator(self._wire)

    def take(self, fact: Fact) -> list[dict[str, Any]]:
        self._narrator.take(fact)
        return self._wire.run.drain()

    def finish(self) -> list[dict[str, Any]]:
        """No fact comes any more."""
        self._narrator.finish()
        return self._wire.run.drain()


class _Events:
    """The wire; `run` keeps what is open on it. `questions` wait for an answer, and `answers` for
    those of the other questions.
    """

    def __init__(self) -> None:
        self.run = Run()
        self.questions: dict[str, Question] = {}
        self.answers: list[dict[str, Any]] = []

    def say(self, fact: Fact | None, kind: str, **fields: Any) -> None:
        """An event of the run; one that waits goes on with it."""
        self._go_on(fact)
        self.run.say(fact, kind, **fields)

    def custom(self, fact: Fact, name: str, value: dict[str, Any]) -> None:
        self.say(fact, "CUSTOM", name=f"{_OURS}.{name}", value=value)

    # The turn

    def begin(self, fact: Fact, turn_id: str, prompt: str | None, *, is_aside: bool) -> None:
        self.questions, self.answers = {}, []
        asked = {"id": f"{turn_id}:prompt", "role": "user", "content": prompt}
        self.run.begin(fact, turn_id, messages=[asked] if prompt else [], is_aside=is_aside)

    def complete(self, fact: Fact | None, usage: dict[str, Any]) -> None:
        result = fact.payload.get("structuredOutput") if fact is not None else None
        self._finish(fact, usage, "success", result)

    def cancel(self, fact: Fact, reason: str | None, usage: dict[str, Any]) -> None:
        del reason
        self._finish(fact, usage, "cancelled", None)

    def _finish(self, fact: Fact | None, usage: dict[str, Any], how: str, result: Any) -> None:
        self._go_on(fact)
        self.run.finish(fact, outcome={"type": how}, result=result, usage=_tokens(usage))
        self.run.end_turn()

    def fail(self, fact: Fact | None, category: str, message: str, usage: dict[str, Any]) -> None:
        self._go_on(fact)
        ours = {_OURS: {"failureCategory": category}}
        said = {"message": message, "code": category, "metadata": ours}
        self.run.fail(fact, **said, usage=_tokens(usage))
        self.run.end_turn()

    def requested(self, fact: Fact) -> None:
        """A request to a model is none of the protocol's events."""

    def step(self, fact: Fact, name: str | None) -> None:
        self._go_on(fact)
        self.run.step(fact, name)

    def _go_on(self, fact: Fact | None) -> None:
        if not self.run.is_open:
            self._resume(fact, [])

    def _resume(self, fact: Fact | None, answers: list[dict[str, Any]]) -> None:
        """A run that waits goes on: with all the answers, or because something else happens."""
        self.run.resume(fact, answers)
        given, self.answers = self.answers, []
        if not answers:
            for entry in given:
                self.run.say(fact, "CUSTOM", name=f"{_OURS}.answer", value=entry)

    # What is said

    def text(self, fact: Fact, spoken: Spoken, delta: str) -> None:
        self._go_on(fact)
        message_id, owner = self.run.text_of(fact, spoken)
        self.run.say(
            fact, "TEXT_MESSAGE_CONTENT", messageId=message_id, delta=delta, **tagged(owner)
        )

    def text_end(self, fact: Fact, spoken: Spoken) -> None:
        self.run.end_text(fact, spoken)

    def names_of(self, message_id: str) -> list[str]:
        return self.run.names.of(message_id)

    def withdraw(self, fact: Fact, names: list[str]) -> None:
        if names:
            self.custom(fact, "retraction", {"messageIds": names})

    def thinking(self, fact: Fact, thought_id: str, summary: str | None) -> None:
        self._go_on(fact)
        name, owner = self.run.thought_of(fact, thought_id)
        if not summary:
            return
        message_id = self.run.names.fresh(f"{name}:summary")
        ids = {"messageId": message_id, **tagged(owner)}
        self.run.say(fact, "REASONING_MESSAGE_START", role="reasoning", **ids)
        self.run.say(fact, "REASONING_MESSAGE_CONTENT", delta=summary, **ids)
        self.run.say(fact, "REASONING_MESSAGE_END", **ids)

    def thought(self, fact: Fact, thought_id: str) -> None:
        self.run.end_thought(fact, thought_id)

    # What is done

    def tool(self, fact: Fact, call: Call) -> None:
        self._go_on(fact)
        self.run.call(fact, call)

    def tool_args_piece(self, fact: Fact, call: Call, delta: str) -> None:
        self._go_on(fact)
        self.run.call_piece(fact, call, delta)

    def tool_args(self, fact: Fact, call: Call) -> None:
        """The arguments; a client that was told others is told these beside the call."""
        self._go_on(fact)
        if not self.run.end_call(fact, call):
            self.custom(fact, "args", {"toolCallId": call.call_id, "args": call.args})

    def tool_news(self, fact: Fact, call: Call) -> None:
        self.custom(fact, "call-news", {**fact.payload, "toolCallId": call.call_id})

    def tool_result(self, fact: Fact, call: Call, output: Any) -> None:
        """A result is text; one that is something else says how it is written."""
        if isinstance(output, str):
            self._result(fact, call, output, None)
        elif output is None:
            self._result(fact, call, "", {"encoding": "none"})
        else:
            content = msgspec.json.encode(output).decode()
            self._result(fact, call, content, {"encoding": "json"})

    def tool_failed(self, fact: Fact, call: Call, category: str, message: str) -> None:
        self._result(fact, call, message, {"failureCategory": category})

    def _result(self, fact: Fact, call: Call, content: str, ours: dict[str, str] | None) -> None:
        self._go_on(fact)
        self.run.end_call(fact, call)
        call_id, owner = self.run.call_name(call)
        self.run.say(
            fact,
            "TOOL_CALL_RESULT",
            messageId=self.run.names.fresh(f"{call_id}:result"),
            toolCallId=call_id,
            content=content,
            role="tool",
            metadata={_OURS: ours} if ours else None,
            **tagged(owner),
        )

    def ask(self, fact: Fact, question: Question, call: Call | None) -> None:
        """Every question that is open is one of the run that ends here."""
        del call
        self._go_on(fact)
        self.questions[question.action_id] = question
        self._interrupted(fact)

    def wait(self) -> None:
        if self.run.is_open:
            self._interrupted(None)

    def _interrupted(self, fact: Fact | None) -> None:
        interrupts = [self._interrupt(each) for each in self.questions.values()]
        self.run.finish(fact, outcome={"type": "interrupt", "interrupts": interrupts})

    def _interrupt(self, question: Question) -> dict[str, Any]:
        said = question.said
        schema = table(said.get("responseSchema"))
        details = {name: said[name] for name in _DETAILS if said.get(name) is not None}
        told = {
            "id": question.action_id,
            "reason": question.action_type,
            "message": question.prompt,
            "toolCallId": question.call_id,
            "responseSchema": schema,
            "expiresAt": word(said, "expiresAt"),
            "metadata": {_OURS: details} if details else None,
            "subagentRunId": self.run.owner_of(question.speaker),
        }
        return {name: value for name, value in told.items() if value is not None}

    def answered(self, fact: Fact, question: Question, answer: Answer) -> None:
        self.questions.pop(question.action_id, None)
        entry = _entry(question, answer)
        if self.run.is_open:
            self.custom(fact, "answer", entry)
            return
        self.answers.append(entry)
        if not self.questions:
            self._resume(fact, self.answers)

    def subagent(self, fact: Fact, subagent_id: str) -> None:
        self._go_on(fact)
        self.run.subagent(fact, subagent_id)

    def subagent_end(self, fact: Fact, subagent_id: str) -> None:
        self._go_on(fact)
        self.run.end_subagent(fact, subagent_id)

    def state(self, fact: Fact) -> None:
        if fact.event_class == "state.snapshot":
            self.say(fact, "STATE_SNAPSHOT", snapshot=fact.payload.get("state") or {})
        elif patch := shared_patch(fact):
            self.say(fact, "STATE_DELTA", delta=patch)

    def note(self, fact: Fact, note: Note) -> None:
        thing = thing_of(fact, note)
        if thing is None:
            self.custom(fact, note.name, content_of(fact))
            return
        told = {"activityType": f"{_OURS}.{note.name}", "content": content_of(fact)}
        self.say(fact, "ACTIVITY_SNAPSHOT", messageId=f"{note.name}:{thing}", **told)


def _entry(question: Question, answer: Answer) -> dict[str, Any]:
    """An answer as the run that goes on has it."""
    if answer.decision is None:
        return {"interruptId": question.action_id, "status": "cancelled"}
    said = {
        "decision": answer.decision,
        "approved": answer.is_approval,
        "reason": answer.reason,
        "response": answer.response,
    }
    payload = {name: value for name, value in said.items() if value is not None}
    return {"interruptId": question.action_id, "status": "resolved", "payload": payload}


def _tokens(usage: dict[str, Any]) -> list[dict[str, int]] | None:
    """Counts of tokens as the protocol names them; it has no place for money."""
    counts = {
        wanted: usage[name] for name, wanted in _TOKENS.items() if isinstance(usage.get(name), int)
    }
    return [counts] if counts else None
