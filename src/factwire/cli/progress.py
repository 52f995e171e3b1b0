"""A progress bar on standard error, for people only: nothing is drawn into a pipe or a log."""

import sys
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from factwire.cli.documents import Source
from factwire.cli.failures import errors

Item = TypeVar("Item")

_WORTH_SHOWING: Final = 4 * 1024 * 1024
_STEP: Final = 1000


def watched(items: Iterable[Item], source: Source, doing: str) -> Iterator[Item]:
    """The same items; while they pass, a bar shows how much of the input has been read."""
    if not sys.stderr.isatty() or (source.size is not None and source.size < _WORTH_SHOWING):
        yield from items
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, TimeRemainingColumn(), console=errors, transient=True) as bar:
        task = bar.add_task(doing, total=source.size)
        for index, item in enumerate(items):
            if index % _STEP == 0:
                bar.update(task, completed=_position(source))
            yield item


def _position(source: Source) -> int:
    return source.stream.tell() if source.stream.seekable() else 0
