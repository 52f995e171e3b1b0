"""`OpenTurn`: what of a thread is open while it is translated for one client.

Whoever speaks or acts has done thinking; whoever is done has nothing open. A turn that somebody
joins late, and what happens beside turns, gets a beginning and an end as well. Memory is that of
what is open.
"""

from typing import Any

from factwire.facts import Fact
from factwire.outlets.protocol_writer import (
    OpenCall,
    ProtocolWriter,
    StreamedText,
    UnansweredAction,
    usage_of,
)

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
