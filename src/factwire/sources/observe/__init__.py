"""Observe: facts of a program that runs its agents itself; `factwire.observe` and its thread."""

from factwire.sources.kit.observed_run import thread
from factwire.sources.observe.observer import (
    AlreadyObserving,
    NoPlace,
    NothingToObserve,
    ObserveError,
    Observer,
    observe,
)

__all__ = [
    "AlreadyObserving",
    "NoPlace",
    "NothingToObserve",
    "ObserveError",
    "Observer",
    "observe",
    "thread",
]
