"""Errors for people: one line that says what is wrong and what to do, and an exit code.

0 done or valid · 1 the input was read and something in it is wrong · 2 the command could not do its
work: unreadable input, wrong usage, a missing file · 130 stopped by the user. Never a traceback.
"""

from typing import Final

from rich.console import Console

from factwire.cli.terminal_text import harmless

DONE: Final = 0
ISSUES: Final = 1
UNUSABLE: Final = 2
INTERRUPTED: Final = 130

errors = Console(stderr=True, highlight=False)


class CliError(Exception):
    """A failure that ends a command; the message is shown as it is."""

    def __init__(self, message: str, exit_code: int = UNUSABLE) -> None:
        self.exit_code = exit_code
        super().__init__(message)


def report(message: str) -> None:
    """Say on standard error what went wrong, in one harmless line."""
    errors.print("error:", style="bold red", end=" ")
    errors.print(harmless(message), markup=False, soft_wrap=True)
