"""`factwire play`: watch a recorded run, and go back and forth in it."""

from factwire.cli.play.command import play

__all__ = ["play"]
