"""Sources: what outside agents emit, turned into facts; one folder an agent."""

from factwire.sources.kit.fact_builder import START, FactBuilder, KeepRaw, name_raw
from factwire.sources.kit.stream_framing import Framing, Item, Unreadable, read_items
from factwire.sources.source_registry import (
    OUTSIDE_AGENTS,
    SOURCE_NAMES,
    Converter,
    OutsideAgent,
    Source,
    UnknownSource,
    convert_recording,
    find_outside_agent,
    find_source,
)

__all__ = [
    "OUTSIDE_AGENTS",
    "SOURCE_NAMES",
    "START",
    "Converter",
    "FactBuilder",
    "Framing",
    "Item",
    "KeepRaw",
    "OutsideAgent",
    "Source",
    "UnknownSource",
    "Unreadable",
    "convert_recording",
    "find_outside_agent",
    "find_source",
    "name_raw",
    "read_items",
]
