"""Classification: who owns a fact, what it is about, where it shows and how long it is kept.

The class's row fills what the source left open and nothing more; where the row cannot know, and
for classes without a row, the word is `unknown`.
"""

from typing import Final

import msgspec

from factwire.facts.class_rows import ClassRow
from factwire.facts.edge_classes import EDGE_CLASSES
from factwire.facts.fact import Fact
from factwire.facts.runtime_classes import RUNTIME_CLASSES
from factwire.facts.ui_classes import UI_CLASSES
from factwire.facts.vocabulary import UNKNOWN

_COLUMNS: Final = ("owner", "scope", "phase", "surface", "persistence")
_NOTHING: Final = ClassRow("", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)

KNOWN_CLASSES: Final[dict[str, ClassRow]] = {**UI_CLASSES, **EDGE_CLASSES, **RUNTIME_CLASSES}
"""Every class with a row; a name that two tables have is the runtime's."""


def classify(fact: Fact) -> Fact:
    """The fact with its five classification fields filled."""
    row = KNOWN_CLASSES.get(fact.event_class or "", _NOTHING)
    return filled_from(fact, row)


def filled_from(fact: Fact, row: ClassRow) -> Fact:
    """The fact with the classification fields it leaves open taken from `row`."""
    missing = {name: getattr(row, name) for name in _COLUMNS if getattr(fact, name) is None}
    return msgspec.structs.replace(fact, **missing) if missing else fact
