"""The catalogue: what each stream shows at its end, and which surfaces it fills."""

from collections.abc import Iterable
from typing import Final

from factwire.facts import Fact
from factwire.facts.classes.class_tables import RUNTIME_CLASSES
from factwire.facts.vocabulary import SURFACES, UNKNOWN

from .recorder import Story

_HEAD: Final = """\
# Recorded streams

One small stream of facts (NDJSON, shape A) for each state that a screen can show. They are what
projections, screens and adapters are tried with; `stories/` tells them, each with what a person
must see at its end, and `python record.py` writes them down anew.

Streams whose point is a defect name it below; all others pass `factwire validate`.

| stream | facts | a screen shows at its end | surfaces |
|---|---|---|---|
"""


def catalogue(stories: Iterable[Story]) -> str:
    """The whole page."""
    return _HEAD + "".join(map(_line, stories))


def _line(story: Story) -> str:
    facts = story.record()
    defects = ", ".join(f"`{code}`" for code in dict.fromkeys(story.issues))
    shows = f"{story.shows} Defects: {defects}." if defects else story.shows
    name = f"[{story.name}]({story.name}.ndjson)"
    return f"| {name} | {len(facts)} | {shows} | {', '.join(surfaces(facts))} |\n"


def surfaces(facts: list[Fact]) -> list[str]:
    """The surfaces that facts fill, in the order of the vocabulary."""
    filled = {fact.surface or _surface(fact.event_class or "") for fact in facts}
    return [surface for surface in SURFACES if surface in filled - {UNKNOWN}]


def _surface(event_class: str) -> str:
    row = RUNTIME_CLASSES.get(event_class)
    return row.surface if row else UNKNOWN
