"""`factwire journal`: look at, check, move and shrink a journal, whichever backend it is on."""

from factwire.cli.journal.verbs import journal

__all__ = ["journal"]
