"""`Narrator`: facts of one thread, told to a wire in an order that a client can follow.

The reverse of a source's telling. The words of a model's reasoning are told to nobody. Cost per
fact does not depend on how many came before.
"""

from typing import Final

from factwire.facts import Fact
from factwire.outlets.notes import note_of, thing_of
from factwire.outlets.speech import SPEECH
from factwire.outlets.story import Story
from factwire.outlets.turns import TURNS
from factwire.outlets.wire import Wire
from factwire.outlets.work import WORK

_HANDLERS: Final = {**TURNS, **SPEECH, **WORK}


class Narrator:
    """Tells one thread to one wire: the thread of the first fact that names one."""

    def __init__(self, wire: Wire) -> None:
        self._story = Story(wire)

    def take(self, fact: Fact) -> None:
        """Tell one fact; those of other threads are told if a subagent of this one works there."""
        story = self._story
        story.thread_id = story.thread_id or fact.thread_id
        if fact.thread_id not in (None, story.thread_id) and not fact.subagent_id:
            return
        handle = _HANDLERS.get(fact.event_class or "")
        if handle is not None:
            handle(story, fact)
        else:
            self._note(fact)

    def finish(self) -> None:
        """Nothing more comes: a turn that is open waits for somebody, or was cut off."""
        story = self._story
        if story.turn_id is not None and story.is_aside:
            story.wire.complete(None, {})
        elif story.turn_id is not None and story.questions:
            story.wire.wait()
        elif story.turn_id is not None:
            message = "the stream ended before the turn did"
            story.wire.fail(None, "stream_interrupted", message, story.usage)
        story.turn_id = None

    def _note(self, fact: Fact) -> None:
        """News stand in a turn; a thing that lasts is told beside turns as well."""
        note = note_of(fact.event_class or "")
        if note is None:
            return
        if self._story.turn_id is not None or thing_of(fact, note) is not None:
            self._story.open(fact)
            self._story.wire.note(fact, note)
