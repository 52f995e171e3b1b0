"""`OpenTurn`: what of a thread is open while it is translated for one client.

Whoever speaks or acts has done thinking; whoever is done has nothing open. A turn that somebody
joins late, and what happens beside turns, gets a beginning and an end as well. Memory is that of
what is open.

`Translator`: facts of one thread, written to a protocol in an order that a client can follow.

The reverse of a source. One table says what each class does: turns begin and end, texts grow, calls
and actions open and close. Of reasoning only the summary is written that a model gives to be read.
Cost per fact does not depend on how many came before.
"""

from collections.abc import Callable
from typing import Any, Final

from factwire.facts import Fact, id_of
from factwire.facts.json_values import text_at, texts_of
from factwire.facts.outcomes import call_outcome
from factwire.outlets.protocol_writer import (
    ACTION_NEWS,
    ARTIFACT,
    SUBAGENT_NEWS,
    UNNAMED_TOOL,
    OpenCall,
    ProtocolWriter,
    StreamedText,
    UnansweredAction,
    answer_of,
    artifact_notes,
    failure_of,
    note_of,
    result_of,
    thing_of,
    usage_of,
)

PROMPTS_REMEMBERED: Final = 64
"""Prompts of turns that were submitted and have not started; more than wait in any queue."""

TextKey = tuple[str | None, str | None, str | None]
"""Which text: who speaks, in which message, in which part of it."""


class OpenTurn:
    """One thread, as one wire is told it."""

    def __init__(self, writer: ProtocolWriter) -> None:
        self.writer = writer
        self.thread_id: str | None = None
        self.turn_id: str | None = None
        self.is_aside = False
        self.ended: str | None = None
        self.asides = 0
        self.step_id: str | None = None
        self.prompts: dict[str, str] = {}
        self.texts: dict[TextKey, StreamedText] = {}
        self.thoughts: dict[str | None, str] = {}
        self.calls: dict[str, OpenCall] = {}
        self.actions: dict[str, UnansweredAction] = {}
        self.subagents: dict[str, str | None] = {}
        self.usage: dict[str, Any] = {}

    def begin(self, fact: Fact, turn_id: str, *, is_aside: bool = False) -> None:
        self.turn_id, self.is_aside = turn_id, is_aside
        self.writer.begin_turn(fact, turn_id, self.prompts.pop(turn_id, None), is_aside=is_aside)

    def open(self, fact: Fact) -> None:
        """What is told stands in a turn: in the open one, in the fact's own, or beside them."""
        is_main = fact.subagent_id is None
        its_own = fact.turn_id if is_main and fact.turn_id != self.ended else None
        if self.is_aside and its_own is not None:
            self.interrupt(fact)
        if self.turn_id is None:
            self.asides += its_own is None
            beside = f"{self.ended or self.thread_id or 'thread'}:aside-{self.asides}"
            self.begin(fact, its_own or beside, is_aside=its_own is None)
        if is_main and fact.step_id != self.step_id:
            self.step_id = fact.step_id
            self.writer.set_step(fact, fact.step_id)

    def interrupt(self, fact: Fact) -> None:
        """Another turn begins; the open one has no end of its own."""
        was_aside, before = self.is_aside, self.ended
        usage = self.end(fact)
        if was_aside:
            self.ended = before
            self.writer.complete_turn(None, {})
        else:
            self.writer.fail_turn(fact, "stream_interrupted", "another turn began first", usage)

    def end(self, fact: Fact) -> dict[str, Any]:
        """Close what is open before a turn ends; what was used in it."""
        self.close(fact, everyone=True)
        self._drop_ended()
        usage, self.usage = usage_of(fact.payload) or self.usage, {}
        self.ended, self.turn_id, self.step_id = self.turn_id, None, None
        self.is_aside = False
        return usage

    def close(self, fact: Fact, *, everyone: bool = False) -> None:
        """End the texts and thoughts of a speaker, or all of them. A text of one who is done may
        still be said to be whole, so how much of it was told is known until its turn ends.
        """
        speaker = fact.subagent_id
        for key, text in self.texts.items():
            if everyone or key[0] == speaker:
                self.writer.end_text(fact, text)
        if everyone:
            self.texts = {}
        for each in [each for each in self.thoughts if everyone or each == speaker]:
            self.writer.end_thought(fact, self.thoughts.pop(each))

    def stop_thinking(self, fact: Fact) -> None:
        """Somebody speaks or acts, and so has done thinking."""
        self.open(fact)
        thought = self.thoughts.pop(fact.subagent_id, None)
        if thought is not None:
            self.writer.end_thought(fact, thought)

    def _drop_ended(self) -> None:
        """With a turn ends what was open in it; subagents of a turn of their own work on."""
        ended_turns = (None, self.turn_id)
        self.subagents = {
            each: turn for each, turn in self.subagents.items() if turn not in ended_turns
        }
        on = self.subagents
        self.calls = {key: call for key, call in self.calls.items() if call.speaker in on}
        self.actions = {key: each for key, each in self.actions.items() if each.speaker in on}


def _remember_prompt(turn: OpenTurn, fact: Fact) -> None:
    prompt = text_at(fact.payload, "prompt")
    if prompt is None or fact.turn_id is None or fact.subagent_id is not None:
        return
    turn.prompts[fact.turn_id] = prompt
    if len(turn.prompts) > PROMPTS_REMEMBERED:
        del turn.prompts[next(iter(turn.prompts))]


def _start_turn(turn: OpenTurn, fact: Fact) -> None:
    if fact.subagent_id is not None or fact.turn_id in (None, turn.turn_id):
        return
    _remember_prompt(turn, fact)
    if turn.turn_id is not None:
        turn.interrupt(fact)
    turn.begin(fact, fact.turn_id or "")


def _is_end_of_turn(turn: OpenTurn, fact: Fact) -> bool:
    """Whether a terminal is that of the turn that is told; one of a subagent's own turn ends it."""
    if fact.subagent_id is not None:
        _close_subagent(turn, fact)
        return False
    if fact.turn_id == turn.ended:
        return False
    turn.open(fact)
    return fact.turn_id in (None, turn.turn_id)


def _complete_turn(turn: OpenTurn, fact: Fact) -> None:
    if _is_end_of_turn(turn, fact):
        turn.writer.complete_turn(fact, turn.end(fact))


def _fail_turn(turn: OpenTurn, fact: Fact) -> None:
    if _is_end_of_turn(turn, fact):
        category = text_at(fact.payload, "failureCategory") or "unknown"
        message = text_at(fact.payload, "message") or category
        turn.writer.fail_turn(fact, category, message, turn.end(fact))


def _cancel_turn(turn: OpenTurn, fact: Fact) -> None:
    if _is_end_of_turn(turn, fact):
        turn.writer.cancel_turn(fact, text_at(fact.payload, "reason"), turn.end(fact))


def _record_usage(turn: OpenTurn, fact: Fact) -> None:
    if fact.subagent_id is None:
        turn.usage = usage_of(fact.payload)


def _start_model_request(turn: OpenTurn, fact: Fact) -> None:
    if fact.subagent_id is None:
        turn.open(fact)
        turn.writer.start_model_request(fact)


_TURN_HANDLERS: Final[dict[str, Callable[[OpenTurn, Fact], None]]] = {
    "turn.submitted": _remember_prompt,
    "turn.started": _start_turn,
    "turn.completed": _complete_turn,
    "turn.failed": _fail_turn,
    "turn.canceled": _cancel_turn,
    "metrics.changed": _record_usage,
    "model.requested": _start_model_request,
}


def _add_text(turn: OpenTurn, fact: Fact) -> None:
    text = _open_text(turn, fact)
    delta = fact.payload.get("delta")
    if not isinstance(delta, str):
        delta = text.rest_of(text_at(fact.payload, "text") or "")
    if delta:
        text.add(delta)
        turn.writer.write_text(fact, text, delta)


def _finish_text(turn: OpenTurn, fact: Fact) -> None:
    """A text is whole; one that says something else than was streamed takes its place."""
    whole = fact.payload.get("text")
    if not whole and _text_key(fact) not in turn.texts:
        return
    text = _open_text(turn, fact)
    rest = text.rest_of(whole) if isinstance(whole, str) else _last_piece(fact)
    if rest is None:
        turn.writer.end_text(fact, text)
        turn.writer.retract_texts(fact, text.names)
        rest, text = str(whole), StreamedText(text.message_id)
    if rest:
        turn.writer.write_text(fact, text, rest)
    turn.texts.pop(_text_key(fact), None)
    turn.writer.end_text(fact, text)


def _break_off_text(turn: OpenTurn, fact: Fact) -> None:
    text = turn.texts.pop(_text_key(fact), None)
    if text is not None:
        if rest := _last_piece(fact):
            turn.writer.write_text(fact, text, rest)
        turn.writer.end_text(fact, text)


def _last_piece(fact: Fact) -> str:
    """What redaction held back of a text until a fact ended it."""
    return text_at(fact.payload, "delta") or ""


def _open_text(turn: OpenTurn, fact: Fact) -> StreamedText:
    turn.stop_thinking(fact)
    key = _text_key(fact)
    text = turn.texts.get(key)
    if text is None:
        text = turn.texts[key] = StreamedText(key[1] or f"{turn.turn_id}:text")
    return text


def _text_key(fact: Fact) -> TextKey:
    return fact.subagent_id, id_of(fact, "messageId"), id_of(fact, "partId")


def _retract_messages(turn: OpenTurn, fact: Fact) -> None:
    message_ids = texts_of(fact.payload.get("retractedMessageIds"))
    if not message_ids:
        return
    turn.open(fact)
    for key in [key for key, text in turn.texts.items() if text.message_id in message_ids]:
        turn.writer.end_text(fact, turn.texts.pop(key))
    turn.writer.retract_texts(
        fact, [name for each in message_ids for name in turn.writer.names_of(each)]
    )


def _write_thought(turn: OpenTurn, fact: Fact) -> None:
    turn.open(fact)
    open_thought = turn.thoughts.get(fact.subagent_id)
    thought = id_of(fact, "messageId") or open_thought or f"{turn.turn_id}:thought"
    if open_thought not in (None, thought):
        turn.writer.end_thought(fact, open_thought)
    turn.thoughts[fact.subagent_id] = thought
    summary = text_at(fact.payload, "summary") if fact.event_class == "reasoning.summary" else None
    turn.writer.write_thought(fact, thought, summary)


def _end_thought(turn: OpenTurn, fact: Fact) -> None:
    turn.open(fact)
    open_thought = turn.thoughts.pop(fact.subagent_id, None)
    if open_thought is not None:
        turn.writer.end_thought(fact, open_thought)


_TEXT_HANDLERS: Final[dict[str, Callable[[OpenTurn, Fact], None]]] = {
    "model.delta": _add_text,
    "model.completed": _finish_text,
    "model.failed": _break_off_text,
    "messages.snapshot": _retract_messages,
    "reasoning.started": _write_thought,
    "reasoning.delta": _write_thought,
    "reasoning.summary": _write_thought,
    "reasoning.completed": _end_thought,
}


def _start_call(turn: OpenTurn, fact: Fact) -> None:
    call_id = id_of(fact, "toolCallId")
    if call_id is None:
        return
    if call_id in turn.calls:
        _set_args(turn, fact)
        return
    turn.stop_thinking(fact)
    call = turn.calls[call_id] = OpenCall(
        call_id=call_id,
        name=text_at(fact.payload, "toolName") or UNNAMED_TOOL,
        title=text_at(fact.payload, "title"),
        args=fact.payload.get("args"),
        speaker=fact.subagent_id,
    )
    turn.writer.start_call(fact, call)
    if call.args:  # An empty object may only stand for arguments that are still to come.
        turn.writer.write_args(fact, call)
        call.is_whole = True


def _find_call(turn: OpenTurn, fact: Fact) -> OpenCall | None:
    """The call of a fact; one that nobody saw begin begins here."""
    call_id = id_of(fact, "toolCallId")
    if call_id is not None and call_id not in turn.calls:
        _start_call(turn, fact)
    turn.open(fact)
    return turn.calls.get(call_id or "")


def _add_args_piece(turn: OpenTurn, fact: Fact) -> None:
    call, delta = _find_call(turn, fact), text_at(fact.payload, "delta")
    if call is not None and delta is not None and not call.is_whole:
        turn.writer.write_args_piece(fact, call, delta)


def _set_args(turn: OpenTurn, fact: Fact) -> None:
    call, args = _find_call(turn, fact), fact.payload.get("args")
    if call is None or args is None or (call.is_whole and args == call.args):
        return
    call.args, call.name = args, text_at(fact.payload, "toolName") or call.name
    turn.writer.write_args(fact, call)
    call.is_whole = True


def _settle_args(turn: OpenTurn, fact: Fact, call: OpenCall) -> None:
    """Something follows the arguments of a call, so they are what they were said to be."""
    if not call.is_whole and call.args is not None:
        turn.writer.write_args(fact, call)
    call.is_whole = call.is_whole or call.args is not None


def _report_progress(turn: OpenTurn, fact: Fact) -> None:
    call = _find_call(turn, fact)
    if call is not None:
        _settle_args(turn, fact, call)
        turn.writer.write_progress(fact, call)


def _finish_call(turn: OpenTurn, fact: Fact) -> None:
    """The result of a call; one that states a failure is told as a failure."""
    if call_outcome(fact) in ("failed", "canceled"):
        _fail_call(turn, fact)
        return
    call = _find_call(turn, fact)
    if call is not None:
        _settle_args(turn, fact, call)
        del turn.calls[call.call_id]
        turn.writer.finish_call(fact, call, result_of(fact))
        _write_artifacts(turn, fact)


def _fail_call(turn: OpenTurn, fact: Fact) -> None:
    call = _find_call(turn, fact)
    if call is not None:
        _settle_args(turn, fact, call)
        del turn.calls[call.call_id]
        turn.writer.fail_call(fact, call, *failure_of(fact))
        _write_artifacts(turn, fact)


def _write_artifacts(turn: OpenTurn, fact: Fact) -> None:
    for artifact in artifact_notes(fact):
        turn.writer.write_note(artifact, ARTIFACT)


def _open_action(turn: OpenTurn, fact: Fact) -> None:
    action_id = id_of(fact, "actionId")
    if action_id is None or action_id in turn.actions:
        return
    turn.stop_thinking(fact)
    call = turn.calls.get(id_of(fact, "toolCallId") or "")
    if call is not None:
        _settle_args(turn, fact, call)
    action = turn.actions[action_id] = UnansweredAction(
        action_id=action_id,
        call_id=id_of(fact, "toolCallId"),
        speaker=fact.subagent_id,
        payload=fact.payload,
    )
    turn.writer.open_action(fact, action, call)


def _close_action(turn: OpenTurn, fact: Fact) -> None:
    action = turn.actions.pop(id_of(fact, "actionId") or "", None)
    if action is None:
        if id_of(fact, "actionId") is not None:
            turn.open(fact)
            turn.writer.write_note(fact, ACTION_NEWS)
        return
    turn.open(fact)
    answer = answer_of(fact)
    call = turn.calls.get(action.call_id or "")
    if call is not None and answer.is_approval is False:
        call.is_denied = True
    turn.writer.close_action(fact, action, answer)


def _start_subagent(turn: OpenTurn, fact: Fact) -> None:
    subagent_id = fact.subagent_id
    if subagent_id is not None and subagent_id not in turn.subagents:
        turn.open(fact)
        turn.subagents[subagent_id] = fact.turn_id
        turn.writer.start_subagent(fact, subagent_id)


def _end_subagent(turn: OpenTurn, fact: Fact) -> None:
    subagent_id = fact.subagent_id
    if subagent_id is None:
        return
    _start_subagent(turn, fact)
    turn.close(fact)
    turn.subagents.pop(subagent_id, None)
    turn.writer.end_subagent(fact, subagent_id)


def _close_subagent(turn: OpenTurn, fact: Fact) -> None:
    """A subagent that has ended stays as it ended when it is closed."""
    if fact.subagent_id in turn.subagents:
        _end_subagent(turn, fact)
    else:
        turn.open(fact)
        turn.writer.write_note(fact, SUBAGENT_NEWS)


def _write_state(turn: OpenTurn, fact: Fact) -> None:
    turn.open(fact)
    turn.writer.write_state(fact)


_WORK_HANDLERS: Final[dict[str, Callable[[OpenTurn, Fact], None]]] = {
    "tool.started": _start_call,
    "tool.args.delta": _add_args_piece,
    "tool.args": _set_args,
    "tool.progress": _report_progress,
    "tool.output.delta": _report_progress,
    "tool.result": _finish_call,
    "tool.failed": _fail_call,
    "action.required": _open_action,
    "action.resolved": _close_action,
    "action.cancelled": _close_action,
    "action.canceled": _close_action,
    "action.expired": _close_action,
    "subagent.spawned": _start_subagent,
    "subagent.started": _start_subagent,
    "subagent.completed": _end_subagent,
    "subagent.failed": _end_subagent,
    "subagent.closed": _close_subagent,
    "state.snapshot": _write_state,
    "state.delta": _write_state,
}


_HANDLERS: Final = {**_TURN_HANDLERS, **_TEXT_HANDLERS, **_WORK_HANDLERS}


class Translator:
    """Tells one thread to one wire: the thread of the first fact that names one."""

    def __init__(self, writer: ProtocolWriter) -> None:
        self._turn = OpenTurn(writer)

    def take(self, fact: Fact) -> None:
        """Tell one fact; those of other threads are told if a subagent of this one works there."""
        turn = self._turn
        turn.thread_id = turn.thread_id or fact.thread_id
        if fact.thread_id not in (None, turn.thread_id) and not fact.subagent_id:
            return
        handle = _HANDLERS.get(fact.event_class or "")
        if handle is not None:
            handle(turn, fact)
        else:
            self._write_note(fact)

    def finish(self) -> None:
        """Nothing more comes: a turn that is open waits for somebody, or was cut off."""
        turn = self._turn
        if turn.turn_id is not None and turn.is_aside:
            turn.writer.complete_turn(None, {})
        elif turn.turn_id is not None and turn.actions:
            turn.writer.pause_turn()
        elif turn.turn_id is not None:
            message = "the stream ended before the turn did"
            turn.writer.fail_turn(None, "stream_interrupted", message, turn.usage)
        turn.turn_id = None

    def _write_note(self, fact: Fact) -> None:
        """News stand in a turn; a thing that lasts is told beside turns as well."""
        note = note_of(fact.event_class or "")
        if note is None:
            return
        if self._turn.turn_id is not None or thing_of(fact, note) is not None:
            self._turn.open(fact)
            self._turn.writer.write_note(fact, note)
