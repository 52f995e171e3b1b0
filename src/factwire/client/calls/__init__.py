"""Calls: every address of an Edge, as functions that make the call and leave the sending to others.

One module for each kind of thing. Both clients are made of these; nothing is written down twice.
"""

__all__: list[str] = []
