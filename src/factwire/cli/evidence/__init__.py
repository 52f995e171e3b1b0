"""`factwire evidence`: a history in one file that anybody can check."""

from factwire.cli.evidence.verbs import evidence

__all__ = ["evidence"]
