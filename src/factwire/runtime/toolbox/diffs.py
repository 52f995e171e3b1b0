"""A change of a file as a unified diff: what a person is shown, and what is kept."""

import difflib
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from factwire.runtime.toolbox.files import Change
from factwire.runtime.toolbox.limits import DIFF_LINES

_NO_END: Final = "\\ No newline at end of file\n"


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    added: int
    removed: int


def diff_of(change: Change) -> Diff:
    """The diff of one file; of a long one, all of it as replaced."""
    before, after = _lines(change.before or ""), _lines(change.after)
    old = f"a/{change.path}" if change.before is not None else "/dev/null"
    names = (old, f"b/{change.path}")
    if max(len(before), len(after)) > DIFF_LINES:
        body = [f"@@ -{_range(before)} +{_range(after)} @@\n", *_marked("-", before)]
        lines = [f"--- {names[0]}\n", f"+++ {names[1]}\n", *body, *_marked("+", after)]
    else:
        lines = list(difflib.unified_diff(before, after, *names))
    changed = lines[2:]
    return Diff(
        text="".join(_ended(lines)),
        added=sum(line.startswith("+") for line in changed),
        removed=sum(line.startswith("-") for line in changed),
    )


def whole_diff(changes: Iterable[Change]) -> str:
    """The diffs of several files as one text."""
    return "".join(diff_of(change).text for change in changes)


def _lines(text: str) -> list[str]:
    """Lines as diff tools count them: ended by a line feed alone."""
    pieces = text.split("\n")
    last = pieces.pop()
    return [f"{piece}\n" for piece in pieces] + ([last] if last else [])


def _range(lines: list[str]) -> str:
    return f"1,{len(lines)}" if lines else "0,0"


def _marked(mark: str, lines: list[str]) -> list[str]:
    return [f"{mark}{line}" for line in lines]


def _ended(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n{_NO_END}"
