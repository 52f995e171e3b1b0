"""Sources: what outside agents emit, turned into facts; one module a source."""

from factwire.sources.framing import Framing, Item, Unreadable, read_items
from factwire.sources.source import (
    MODULES,
    Converter,
    Source,
    UnknownSource,
    converted,
    source_of,
)
from factwire.sources.telling import START, Keep, Telling, name_raw

__all__ = [
    "MODULES",
    "START",
    "Converter",
    "Framing",
    "Item",
    "Keep",
    "Source",
    "Telling",
    "UnknownSource",
    "Unreadable",
    "converted",
    "name_raw",
    "read_items",
    "source_of",
]
