"""Where a pack goes: standard output, or a file that appears only when it is whole and on disk."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO, cast

from factwire.cli.failures import CliError
from factwire.cli.terminal_text import harmless


@contextmanager
def opened_target(file: str, *, force: bool) -> Generator[BinaryIO]:
    """The target to write to; `-` is standard output. With `force`, one that is there goes."""
    if file == "-":
        if sys.stdout.isatty():
            raise CliError("a pack is no text for a terminal; name a file with --output")
        yield sys.stdout.buffer
        return
    path = Path(file)
    _ensure_free(path, force=force)
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as partial:
        try:
            yield cast("BinaryIO", partial)
            partial.flush()
            os.fsync(partial.fileno())
            Path(partial.name).replace(path)
        except BaseException:
            Path(partial.name).unlink(missing_ok=True)
            raise


def _ensure_free(path: Path, *, force: bool) -> None:
    name = harmless(str(path))
    if not path.parent.is_dir():
        raise CliError(f"there is no folder {harmless(str(path.parent))} to write to")
    if path.is_dir():
        raise CliError(f"{name} is a folder; name a file in it with --output")
    if path.exists() and not force:
        raise CliError(f"{name} is there already; write over it with --force, or use --output")
