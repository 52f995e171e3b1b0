"""`factwire edge`: the server of this machine."""

from factwire.cli.edge.command import edge

__all__ = ["edge"]
