"""`factwire run` and `factwire resume`: turns of agents, seen as they happen."""

from factwire.cli.run.command import run
from factwire.cli.run.resume import resume

__all__ = ["resume", "run"]
