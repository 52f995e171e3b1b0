"""Observe: facts of a program that runs its agents itself; `factwire.observe` and its thread."""

from factwire.sources.observe.errors import (
    AlreadyObserving,
    NoPlace,
    NothingToObserve,
    ObserveError,
)
from factwire.sources.observe.observing import Observing, observe
from factwire.sources.observe.threads import thread

__all__ = [
    "AlreadyObserving",
    "NoPlace",
    "NothingToObserve",
    "ObserveError",
    "Observing",
    "observe",
    "thread",
]
