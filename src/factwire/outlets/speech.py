"""What is said in a story: texts as they grow, and that somebody thinks.

Of reasoning only the summary is told that a model gives to be read.
"""

from collections.abc import Callable
from typing import Final

from factwire.facts import Fact, id_of
from factwire.outlets.spoken import Spoken
from factwire.outlets.story import Key, Story
from factwire.projection.reading import word, words


def _delta(story: Story, fact: Fact) -> None:
    spoken = _spoken(story, fact)
    delta = fact.payload.get("delta")
    if not isinstance(delta, str):
        delta = spoken.rest_of(word(fact.payload, "text") or "")
    if delta:
        spoken.add(delta)
        story.wire.text(fact, spoken, delta)


def _final(story: Story, fact: Fact) -> None:
    """A text is whole; one that says something else than was streamed takes its place."""
    whole = fact.payload.get("text")
    if not whole and _key(fact) not in story.texts:
        return
    spoken = _spoken(story, fact)
    rest = spoken.rest_of(whole) if isinstance(whole, str) else ""
    if rest is None:
        story.wire.text_end(fact, spoken)
        story.wire.withdraw(fact, spoken.names)
        rest, spoken = str(whole), Spoken(spoken.message_id)
    if rest:
        story.wire.text(fact, spoken, rest)
    story.texts.pop(_key(fact), None)
    story.wire.text_end(fact, spoken)


def _broken(story: Story, fact: Fact) -> None:
    spoken = story.texts.pop(_key(fact), None)
    if spoken is not None:
        story.wire.text_end(fact, spoken)


def _spoken(story: Story, fact: Fact) -> Spoken:
    story.acts(fact)
    key = _key(fact)
    spoken = story.texts.get(key)
    if spoken is None:
        spoken = story.texts[key] = Spoken(key[1] or f"{story.turn_id}:text")
    return spoken


def _key(fact: Fact) -> Key:
    return fact.subagent_id, id_of(fact, "messageId"), id_of(fact, "partId")


def _retracted(story: Story, fact: Fact) -> None:
    gone = words(fact.payload.get("retractedMessageIds"))
    if not gone:
        return
    story.open(fact)
    for key in [key for key, spoken in story.texts.items() if spoken.message_id in gone]:
        story.wire.text_end(fact, story.texts.pop(key))
    story.wire.withdraw(fact, [name for each in gone for name in story.wire.names_of(each)])


def _thinking(story: Story, fact: Fact) -> None:
    story.open(fact)
    known = story.thoughts.get(fact.subagent_id)
    thought = id_of(fact, "messageId") or known or f"{story.turn_id}:thought"
    if known not in (None, thought):
        story.wire.thought(fact, known)
    story.thoughts[fact.subagent_id] = thought
    summary = word(fact.payload, "summary") if fact.event_class == "reasoning.summary" else None
    story.wire.thinking(fact, thought, summary)


def _thought(story: Story, fact: Fact) -> None:
    story.open(fact)
    known = story.thoughts.pop(fact.subagent_id, None)
    if known is not None:
        story.wire.thought(fact, known)


SPEECH: Final[dict[str, Callable[[Story, Fact], None]]] = {
    "model.delta": _delta,
    "model.completed": _final,
    "model.failed": _broken,
    "messages.snapshot": _retracted,
    "reasoning.started": _thinking,
    "reasoning.delta": _thinking,
    "reasoning.summary": _thinking,
    "reasoning.completed": _thought,
}
