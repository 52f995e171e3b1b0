"""Journals of joined Edges, taken in byte for byte and served to read like those of an Edge."""

__all__ = []
