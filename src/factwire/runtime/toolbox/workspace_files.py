"""Files of a workspace: reached by folders that are held open, never through a link; and a
change of one as a unified diff.
"""

import difflib
import os
import secrets
import stat
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from factwire.runtime.toolbox.limits import DIFF_LINES, FILE_BYTES
from factwire.runtime.toolbox.tool_calls import ToolRefused

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileRevision(msgspec.Struct, frozen=True, kw_only=True):
    """A file that gets another text; `before` is absent where there was no file."""

    path: str
    before: str | None
    after: str

    @property
    def kind(self) -> str:
        return "created" if self.before is None else "modified"


class WorkspaceFiles:
    """The files below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))

    def locate(self, path: str) -> str:
        """Where a path really leads, from the workspace on; raises `ToolRefused`."""
        try:
            path.encode()
            real = Path(os.path.realpath(self.root / path))
        except ValueError as error:
            raise ToolRefused(
                "invalid_arguments", f"{path!r} is not a valid path: {error}"
            ) from error
        if not path or (real != self.root and self.root not in real.parents):
            raise ToolRefused("outside_workspace", f"{path!r} is outside the workspace")
        return real.relative_to(self.root).as_posix()

    def text(self, path: str) -> str:
        """The text of a file at its real path; raises `ToolRefused`."""
        with _translate_errors(path), self._folder(path) as (folder, name):
            return _decode_text(_content(folder, name, path), path)

    def text_if_any(self, path: str) -> str | None:
        """The text of a file, or None where there is none."""
        try:
            return self.text(path)
        except ToolRefused as refusal:
            if refusal.category != "not_found":
                raise
            return None

    def apply(self, changes: Sequence[FileRevision]) -> None:
        """Write all changes or none; raises `ToolRefused`, also where a file is no longer as it
        was when the change was made.
        """
        done: list[FileRevision] = []
        try:
            for change in changes:
                self._write(change)
                done.append(change)
        except BaseException:
            for change in reversed(done):
                self._undo(change)
            raise

    def _write(self, change: FileRevision) -> None:
        if self.text_if_any(change.path) != change.before:
            raise ToolRefused(
                "conflict", f"{change.path} has changed in the meantime; read it again"
            )
        with _translate_errors(change.path), self._folder(change.path, make=True) as (folder, name):
            _replace(folder, name, change.after.encode())

    def _undo(self, change: FileRevision) -> None:
        with suppress(OSError, ToolRefused), self._folder(change.path) as (folder, name):
            if change.before is None:
                os.unlink(name, dir_fd=folder)
            else:
                _replace(folder, name, change.before.encode())

    @contextmanager
    def _folder(self, path: str, *, make: bool = False) -> Generator[tuple[int, str]]:
        """The folder of a file, open, and the file's name in it."""
        *folders, name = path.split("/")
        if name in ("", ".", ".."):
            raise ToolRefused("not_a_file", f"{path} is a folder")
        at = os.open(self.root, _FOLDER)
        try:
            for folder in folders:
                inner = _enter_folder(at, folder, make=make)
                os.close(at)
                at = inner
            yield at, name
        finally:
            os.close(at)


def _enter_folder(at: int, folder: str, *, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(folder, dir_fd=at)
    return os.open(folder, _FOLDER, dir_fd=at)


def _content(folder: int, name: str, path: str) -> bytes:
    file = os.open(name, _FILE, dir_fd=folder)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise ToolRefused("not_a_file", f"{path} is not a regular file")
        with os.fdopen(file, "rb", closefd=False) as opened:
            data = opened.read(FILE_BYTES + 1)
    finally:
        os.close(file)
    if len(data) > FILE_BYTES:
        raise ToolRefused("too_big", f"{path} is larger than {FILE_BYTES} bytes")
    return data


def _decode_text(data: bytes, path: str) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ToolRefused("not_text", f"{path} is not text in UTF-8") from error
    if "\0" in text:
        raise ToolRefused("not_text", f"{path} contains a NUL character, so it is not text")
    return text


def _replace(folder: int, name: str, data: bytes) -> None:
    """Put a whole file in place of another, with its permissions; a link there is replaced."""
    unfinished = f".factwire-{secrets.token_hex(8)}.new"
    file = os.open(unfinished, _NEW, 0o666, dir_fd=folder)
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(data)
            with suppress(FileNotFoundError):
                mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
                if stat.S_ISREG(mode):
                    os.fchmod(opened.fileno(), stat.S_IMODE(mode) & 0o777)
        os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(unfinished, dir_fd=folder)
        raise


_CATEGORIES: Final[dict[type[OSError], str]] = {
    FileNotFoundError: "not_found",
    NotADirectoryError: "not_found",
    IsADirectoryError: "not_a_file",
}


@contextmanager
def _translate_errors(path: str) -> Generator[None]:
    """What the system says against a path, with a stable category."""
    try:
        yield
    except OSError as error:
        category = _CATEGORIES.get(type(error), "io_error")
        raise ToolRefused(category, f"{path}: {error.strerror or error}") from error


_NO_END: Final = "\\ No newline at end of file\n"


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    added: int
    removed: int


def build_diff(change: FileRevision) -> Diff:
    """The diff of one file; of a long one, all of it as replaced."""
    before, after = _lines(change.before or ""), _lines(change.after)
    old = f"a/{change.path}" if change.before is not None else "/dev/null"
    names = (old, f"b/{change.path}")
    if max(len(before), len(after)) > DIFF_LINES:
        body = [f"@@ -{_range(before)} +{_range(after)} @@\n", *_mark_lines("-", before)]
        lines = [f"--- {names[0]}\n", f"+++ {names[1]}\n", *body, *_mark_lines("+", after)]
    else:
        lines = list(difflib.unified_diff(before, after, *names))
    changed = lines[2:]
    return Diff(
        text="".join(_end_lines(lines)),
        added=sum(line.startswith("+") for line in changed),
        removed=sum(line.startswith("-") for line in changed),
    )


def join_diffs(changes: Iterable[FileRevision]) -> str:
    """The diffs of several files as one text."""
    return "".join(build_diff(change).text for change in changes)


def _lines(text: str) -> list[str]:
    """Lines as diff tools count them: ended by a line feed alone."""
    pieces = text.split("\n")
    last = pieces.pop()
    return [f"{piece}\n" for piece in pieces] + ([last] if last else [])


def _range(lines: list[str]) -> str:
    return f"1,{len(lines)}" if lines else "0,0"


def _mark_lines(mark: str, lines: list[str]) -> list[str]:
    return [f"{mark}{line}" for line in lines]


def _end_lines(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n{_NO_END}"
