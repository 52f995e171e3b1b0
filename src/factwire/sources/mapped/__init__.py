"""Mapped: JSON lines of any program, told as facts by a mapping file."""

from factwire.sources.mapped.converter import Mapped, mapped_source
from factwire.sources.mapped.mapping import VERSION, Mapping, read_mapping
from factwire.sources.mapped.problems import MappingError

__all__ = [
    "VERSION",
    "Mapped",
    "Mapping",
    "MappingError",
    "mapped_source",
    "read_mapping",
]
