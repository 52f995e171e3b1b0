"""Turns of a story: how each begins and ends, and what was used in it."""

from collections.abc import Callable
from typing import Final

from factwire.facts import Fact
from factwire.outlets.calls import usage_of
from factwire.outlets.limits import PROMPTS_REMEMBERED
from factwire.outlets.story import Story
from factwire.projection.reading import word


def _submitted(story: Story, fact: Fact) -> None:
    prompt = word(fact.payload, "prompt")
    if prompt is None or fact.turn_id is None or fact.subagent_id is not None:
        return
    story.prompts[fact.turn_id] = prompt
    if len(story.prompts) > PROMPTS_REMEMBERED:
        del story.prompts[next(iter(story.prompts))]


def _started(story: Story, fact: Fact) -> None:
    if fact.subagent_id is not None or fact.turn_id in (None, story.turn_id):
        return
    _submitted(story, fact)
    if story.turn_id is not None:
        story.leave(fact)
    story.begin(fact, fact.turn_id or "")


def _ends_turn(story: Story, fact: Fact) -> bool:
    """Whether a terminal is that of the turn that is told."""
    if fact.subagent_id is not None or fact.turn_id == story.ended:
        return False
    story.open(fact)
    return fact.turn_id in (None, story.turn_id)


def _completed(story: Story, fact: Fact) -> None:
    if _ends_turn(story, fact):
        story.wire.complete(fact, story.end(fact))


def _failed(story: Story, fact: Fact) -> None:
    if _ends_turn(story, fact):
        category = word(fact.payload, "failureCategory") or "unknown"
        message = word(fact.payload, "message") or category
        story.wire.fail(fact, category, message, story.end(fact))


def _canceled(story: Story, fact: Fact) -> None:
    if _ends_turn(story, fact):
        story.wire.cancel(fact, word(fact.payload, "reason"), story.end(fact))


def _measured(story: Story, fact: Fact) -> None:
    if fact.subagent_id is None:
        story.usage = usage_of(fact.payload)


def _requested(story: Story, fact: Fact) -> None:
    if fact.subagent_id is None:
        story.open(fact)
        story.wire.requested(fact)


TURNS: Final[dict[str, Callable[[Story, Fact], None]]] = {
    "turn.submitted": _submitted,
    "turn.started": _started,
    "turn.completed": _completed,
    "turn.failed": _failed,
    "turn.canceled": _canceled,
    "metrics.changed": _measured,
    "model.requested": _requested,
}
