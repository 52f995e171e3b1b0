"""`factwire edge` and `factwire open`: the server of this machine, and its page."""

from factwire.cli.edge.command import edge
from factwire.cli.edge.opening import open_workbench

__all__ = ["edge", "open_workbench"]
