"""Sources: what outside agents emit, turned into facts; one module a source."""

from factwire.sources.kit.fact_builder import START, FactBuilder, KeepRaw, name_raw
from factwire.sources.kit.stream_framing import Framing, Item, Unreadable, read_items
from factwire.sources.source_registry import (
    MODULES,
    Converter,
    Source,
    UnknownSource,
    convert_recording,
    find_source,
)

__all__ = [
    "MODULES",
    "START",
    "Converter",
    "FactBuilder",
    "Framing",
    "Item",
    "KeepRaw",
    "Source",
    "UnknownSource",
    "Unreadable",
    "convert_recording",
    "find_source",
    "name_raw",
    "read_items",
]
