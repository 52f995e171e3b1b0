"""`factwire diff`: how two runs differ."""

from factwire.cli.diff.command import diff

__all__ = ["diff"]
