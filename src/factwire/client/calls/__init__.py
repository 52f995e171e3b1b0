"""Calls: every address of an Edge, as functions that make the call and leave the sending to others.

One module for each kind of thing. Both clients are made of these; nothing is written down twice.
"""

from factwire.client.calls import past, projects, runs, service, things, threads

__all__ = ["past", "projects", "runs", "service", "things", "threads"]
