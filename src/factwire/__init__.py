"""Facts, not prose: what an agent does, as durable, validated, ordered facts."""

__all__ = ["__version__"]

__version__ = "0.1.0"
