"""Mapped: JSON lines of any program, told as facts by a mapping file."""

from factwire.sources.mapped.convert import (
    VERSION,
    AgentMapping,
    MappedConverter,
    read_mapped_source,
    read_mapping,
)
from factwire.sources.mapped.mapping_values import MappingError

__all__ = [
    "VERSION",
    "AgentMapping",
    "MappedConverter",
    "MappingError",
    "read_mapped_source",
    "read_mapping",
]
