"""Facts, not prose: what an agent does, as durable, validated, ordered facts."""

from importlib import import_module as _import_module
from typing import Any as _Any

__all__ = ["__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> _Any:
    """`observe` and `thread` are looked up when they are used, so that importing stays light."""
    if name in ("observe", "thread"):
        return getattr(_import_module("factwire.sources.observe"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
