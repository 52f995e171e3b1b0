"""`Story`: what of a thread is open, as it is told to a wire.

Whoever speaks or acts has done thinking; whoever is done has nothing open. A turn that somebody
joins late, and what happens beside turns, gets a beginning and an end as well. Memory is that of
what is open.
"""

from typing import Any

from factwire.facts import Fact
from factwire.outlets.calls import Call, Question, usage_of
from factwire.outlets.spoken import Spoken
from factwire.outlets.wire import Wire

Key = tuple[str | None, str | None, str | None]
"""Which text: who speaks, in which message, in which part of it."""


class Story:
    """One thread, as one wire is told it."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.thread_id: str | None = None
        self.turn_id: str | None = None
        self.is_aside = False
        self.ended: str | None = None
        self.asides = 0
        self.step_id: str | None = None
        self.prompts: dict[str, str] = {}
        self.texts: dict[Key, Spoken] = {}
        self.thoughts: dict[str | None, str] = {}
        self.calls: dict[str, Call] = {}
        self.questions: dict[str, Question] = {}
        self.subagents: dict[str, str | None] = {}
        self.usage: dict[str, Any] = {}

    def begin(self, fact: Fact, turn_id: str, *, is_aside: bool = False) -> None:
        self.turn_id, self.is_aside = turn_id, is_aside
        self.wire.begin(fact, turn_id, self.prompts.pop(turn_id, None), is_aside=is_aside)

    def open(self, fact: Fact) -> None:
        """What is told stands in a turn: in the open one, in the fact's own, or beside them."""
        is_main = fact.subagent_id is None
        its_own = fact.turn_id if is_main and fact.turn_id != self.ended else None
        if self.is_aside and its_own is not None:
            self.leave(fact)
        if self.turn_id is None:
            self.asides += its_own is None
            beside = f"{self.ended or self.thread_id or 'thread'}:aside-{self.asides}"
            self.begin(fact, its_own or beside, is_aside=its_own is None)
        if is_main and fact.step_id != self.step_id:
            self.step_id = fact.step_id
            self.wire.step(fact, fact.step_id)

    def leave(self, fact: Fact) -> None:
        """Another turn begins; the open one has no end of its own."""
        was_aside, before = self.is_aside, self.ended
        usage = self.end(fact)
        if was_aside:
            self.ended = before
            self.wire.complete(None, {})
        else:
            self.wire.fail(fact, "stream_interrupted", "another turn began first", usage)

    def end(self, fact: Fact) -> dict[str, Any]:
        """Close what is open before a turn ends; what was used in it."""
        self.close(fact, everyone=True)
        self._forget()
        usage, self.usage = usage_of(fact.payload) or self.usage, {}
        self.ended, self.turn_id, self.step_id = self.turn_id, None, None
        self.is_aside = False
        return usage

    def close(self, fact: Fact, *, everyone: bool = False) -> None:
        """End the texts and thoughts of a speaker, or all of them. A text of one who is done may
        still be said to be whole, so how much of it was told is known until its turn ends.
        """
        speaker = fact.subagent_id
        for key, spoken in self.texts.items():
            if everyone or key[0] == speaker:
                self.wire.text_end(fact, spoken)
        if everyone:
            self.texts = {}
        for each in [each for each in self.thoughts if everyone or each == speaker]:
            self.wire.thought(fact, self.thoughts.pop(each))

    def acts(self, fact: Fact) -> None:
        """Somebody speaks or acts, and so has done thinking."""
        self.open(fact)
        thought = self.thoughts.pop(fact.subagent_id, None)
        if thought is not None:
            self.wire.thought(fact, thought)

    def _forget(self) -> None:
        """With a turn ends what was open in it; subagents of a turn of their own work on."""
        ended = (None, self.turn_id)
        self.subagents = {each: turn for each, turn in self.subagents.items() if turn not in ended}
        on = self.subagents
        self.calls = {key: call for key, call in self.calls.items() if call.speaker in on}
        self.questions = {key: each for key, each in self.questions.items() if each.speaker in on}
