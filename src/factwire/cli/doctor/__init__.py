"""`factwire doctor`: what is installed and set up, what is wrong, and how to mend it."""

from factwire.cli.doctor.command import doctor

__all__ = ["doctor"]
