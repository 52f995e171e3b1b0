"""Previews: a folder of a run, served on an origin of its own to whoever has its address."""

from factwire.edge.previews.folder import OpenFile, PathMissing, PathRefused, ServedFolder
from factwire.edge.previews.previews import Previews, TooManyPreviews

__all__ = [
    "OpenFile",
    "PathMissing",
    "PathRefused",
    "Previews",
    "ServedFolder",
    "TooManyPreviews",
]
