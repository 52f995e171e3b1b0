"""A command line: a program and its arguments where that is certain, else text for a shell.

What is run and what the policy is asked about are the same thing: the arguments, or the whole text.
"""

import re
import shlex
from typing import Any, Final, cast

from factwire.runtime.toolbox.outcomes import ToolRefused

_SHELL_SIGNS: Final = re.compile(r"[|&;<>()$`\\*?\[\]{}~#!\n\r]")
_SHELL_WORDS: Final = frozenset(
    {
        *(".", ":", "!", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done"),
        *("elif", "else", "esac", "eval", "exec", "exit", "export", "fc", "fg", "fi", "for"),
        *("function", "getopts", "hash", "if", "in", "jobs", "local", "read", "readonly"),
        *("return", "set", "shift", "source", "then", "times", "trap", "type", "ulimit", "umask"),
        *("unalias", "unset", "until", "wait", "while"),
    }
)
"""Words that a shell acts on itself; there is no program of that name, or it would do nothing."""


def parse_command(command: Any) -> tuple[tuple[str, ...], str | tuple[str, ...]]:
    """The arguments to run, and the command as the policy is to judge it."""
    if isinstance(command, list):
        argv = tuple(str(word) for word in cast("list[object]", command))
        if not argv or not argv[0]:
            raise ToolRefused("invalid_arguments", "expected a program first, got none")
        return argv, argv
    if not isinstance(command, str) or not command.strip():
        raise ToolRefused("invalid_arguments", "expected a command line or a list of arguments")
    argv = _simple(command)
    return (argv, argv) if argv is not None else (("/bin/sh", "-c", command), command)


def _simple(line: str) -> tuple[str, ...] | None:
    """The words of a line that every reader reads alike; None where a shell is needed."""
    if _SHELL_SIGNS.search(line):
        return None
    try:
        words = tuple(shlex.split(line))
    except ValueError:
        return None
    if not words or not words[0] or "=" in words[0] or words[0] in _SHELL_WORDS:
        return None
    return words
