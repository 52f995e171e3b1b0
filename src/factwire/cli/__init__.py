"""The `factwire` command: one module a verb, and one place where failures become words."""

from factwire.cli.command_line import app, main

__all__ = ["app", "main"]
