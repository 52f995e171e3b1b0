"""Files are written whole or not at all, whatever interrupts the writer and at whatever step."""

import errno
import os
import secrets
import signal
import stat
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factwire.journal import atomic_files
from factwire.journal.atomic_files import create_file, open_target, replace_file, write_target

pytestmark = pytest.mark.requirement("journal.files.whole")

STEPS = ("open", "write", "fsync", "rename", "fsync folder")
"""What a writer does, in its order."""


class Interrupted(BaseException):
    """An error that no writer expects."""


def full_disk() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def be_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def be_interrupted() -> None:
    raise Interrupted


def _replace(path: Path, data: bytes) -> None:
    replace_file(path, data)


def _stream(path: Path, data: bytes) -> None:
    with open_target(path) as stream:
        stream.write(data)


def _text(path: Path, data: bytes) -> None:
    write_target(path, data.decode())


WRITERS: list[Callable[[Path, bytes], None]] = [_replace, _stream, _text]


@contextmanager
def stopped_at(step: str, stop: Callable[[], None]) -> Generator[None]:
    """Calls `stop` instead of a step of a writer."""
    with pytest.MonkeyPatch.context() as patch:
        synced = iter((False, True))

        def replaced(name: str, call: Any) -> Any:
            def run(*arguments: Any, **named: Any) -> Any:
                place = name
                if name == "fsync":
                    place = "fsync folder" if next(synced) else "fsync"
                if place == step:
                    stop()
                return call(*arguments, **named)

            return run

        patch.setattr(os, "fsync", replaced("fsync", os.fsync))
        patch.setattr(Path, "replace", replaced("rename", Path.replace))
        patch.setattr(os, "link", replaced("rename", os.link))
        patch.setattr(atomic_files.os, "fdopen", replaced("write", os.fdopen))
        patch.setattr(atomic_files.secrets, "token_hex", replaced("open", secrets.token_hex))
        yield


def run_in_a_child(work: Callable[[], None]) -> int:
    """How a process ends that does some work and then leaves without another word."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("stop", [full_disk, be_interrupted], ids=lambda stop: stop.__name__)
@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
@pytest.mark.parametrize("before", [None, b"old"])
def test_a_failed_write_leaves_the_old_content_and_nothing_else(
    tmp_path: Path,
    step: str,
    stop: Callable[[], None],
    write: Callable[[Path, bytes], None],
    before: bytes | None,
):
    path = tmp_path / "file"
    if before is not None:
        path.write_bytes(before)
    with stopped_at(step, stop), pytest.raises((OSError, Interrupted)):
        write(path, b"new")
    after = b"new" if step == "fsync folder" else before
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == (
        {} if after is None else {"file": after}
    )
    write(path, b"again")
    assert path.read_bytes() == b"again"


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("write", [*WRITERS, create_file], ids=lambda write: write.__name__)
def test_a_killed_writer_leaves_the_whole_old_or_the_whole_new_content(
    tmp_path: Path, step: str, write: Callable[[Path, bytes], None]
):
    path = tmp_path / "file"
    creates = write is create_file
    if not creates:
        path.write_bytes(b"old")

    def work() -> None:
        with stopped_at(step, be_killed):
            write(path, b"new" * 1000)

    assert os.WTERMSIG(run_in_a_child(work)) == signal.SIGKILL
    content = path.read_bytes() if path.exists() else None
    done = step == "fsync folder"
    assert content == (b"new" * 1000 if done else None if creates else b"old")
    if not (creates and done):
        write(path, b"again")
        assert path.read_bytes() == b"again"


def test_what_a_killed_writer_left_is_removed_by_a_later_one(tmp_path: Path):
    path, other = tmp_path / "file", tmp_path / f".another.{'a' * 16}.unfinished"
    left = [tmp_path / f".file.{digit * 16}.unfinished" for digit in "ab"]
    for each in (*left, other):
        each.write_bytes(b"half")
    os.utime(left[0], (0, 0))
    os.utime(other, (0, 0))
    replace_file(path, b"new")
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(
        ["file", left[1].name, other.name]
    )


def test_a_new_file_is_private_and_never_overwrites_one(tmp_path: Path):
    path = tmp_path / "file"
    create_file(path, b"first")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        create_file(path, b"second")
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"file": b"first"}


def device(path: Path) -> Path:
    del path
    return Path(os.devnull)


def link_to_a_device(path: Path) -> Path:
    path.symlink_to(os.devnull)
    return path


@pytest.mark.parametrize("target", [device, link_to_a_device], ids=lambda target: target.__name__)
def test_a_device_is_written_to_and_stays_one(tmp_path: Path, target: Callable[[Path], Path]):
    path = target(tmp_path / "target")
    before = path.lstat()
    write_target(path, "text")
    after = path.lstat()
    assert (after.st_mode, after.st_rdev, after.st_ino) == (
        before.st_mode,
        before.st_rdev,
        before.st_ino,
    )
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path):
    pipe, received = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    write_target(pipe, "text")
    reader.join(60)
    assert (received, stat.S_ISFIFO(pipe.lstat().st_mode)) == ([b"text"], True)
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_keeps_pointing_to_the_file_that_is_written(tmp_path: Path, there: bool):
    (tmp_path / "far").mkdir()
    link, far = tmp_path / "link", tmp_path / "far" / "file"
    link.symlink_to("far/file")
    if there:
        far.write_bytes(b"old")
    write_target(link, "new")
    assert (link.readlink(), far.read_bytes()) == (Path("far/file"), b"new")
    assert [each.name for each in far.parent.iterdir()] == ["file"]


def test_a_file_without_a_name_is_written_to(tmp_path: Path):
    with (tmp_path / "file").open("w+b") as opened:
        (tmp_path / "file").unlink()
        write_target(Path(f"/proc/self/fd/{opened.fileno()}"), "text")
        opened.seek(0)
        assert opened.read() == b"text"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_target(tmp_path: Path):
    with pytest.raises(IsADirectoryError):
        write_target(tmp_path, "text")


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=64)), max_size=20))
@settings(max_examples=50)
def test_a_file_holds_what_the_last_successful_write_gave_it(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[bool, bytes]]
):
    path = tmp_path_factory.mktemp("law") / "file*[a]"
    held: bytes | None = None
    for fails, data in writes:
        if fails:
            with stopped_at("rename", full_disk), pytest.raises(OSError, match="No space"):
                replace_file(path, data)
        else:
            replace_file(path, data)
            held = data
    assert (path.read_bytes() if path.exists() else None) == held
