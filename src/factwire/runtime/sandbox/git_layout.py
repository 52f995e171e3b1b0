"""Where a repository keeps what we need of it, read without git.

A repository's own settings are never handed to git (see `git`), so its folder, its objects and its
head are found here. A worktree's folder lies elsewhere; it is believed only if it points back and
lies among the worktrees of the repository that it names, so that a workspace cannot borrow somebody
else's.
"""

import re
from pathlib import Path
from typing import Final

import msgspec

from factwire.runtime.sandbox import limits

_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF: Final = re.compile(r"refs/(?:[A-Za-z0-9_+@=-][A-Za-z0-9_.+@=-]*/?)+")
_SHA256_HEX: Final = 64
_SMALL: Final = 4 * 1024 * 1024


class NoRepository(Exception):
    """Why there is nothing to compare with; `reason` is stable."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class GitLayout(msgspec.Struct, frozen=True, kw_only=True):
    """`head` is None before the first commit."""

    common: Path
    objects: Path
    head: str | None
    is_sha256: bool


def find_layout(workspace: Path) -> GitLayout:
    """The layout of the repository whose top is `workspace`; raises `NoRepository`."""
    own = _own_folder(workspace)
    common = _common_folder(own)
    objects = common / "objects"
    if not objects.is_dir() or objects.is_symlink() or "\n" in str(objects):
        raise NoRepository("damaged_repository")
    if (common / "reftable").exists():
        raise NoRepository("unsupported_ref_storage")
    if (own / "info" / "sparse-checkout").exists():
        raise NoRepository("sparse_checkout")
    head = _resolve((own, common), "HEAD", limits.REF_DEPTH)
    is_sha256 = _is_sha256(common, head)
    return GitLayout(common=common, objects=objects, head=head, is_sha256=is_sha256)


def _own_folder(workspace: Path) -> Path:
    entry = workspace / ".git"
    if entry.is_symlink():
        raise NoRepository("damaged_repository")
    if entry.is_dir():
        return entry
    if not entry.is_file():
        raise NoRepository("not_a_repository")
    named = _read(entry).removeprefix("gitdir:").strip()
    folder = (workspace / named).resolve()
    back = _read(folder / "gitdir").strip()
    if not back or (folder / back).resolve() != entry.resolve():
        raise NoRepository("damaged_repository")
    return folder


def _common_folder(own: Path) -> Path:
    named = _read(own / "commondir").strip()
    if not named:
        return own
    common = (own / named).resolve()
    if own.parent != common / "worktrees":
        raise NoRepository("damaged_repository")
    return common


def _resolve(folders: tuple[Path, Path], name: str, depth: int) -> str | None:
    """The commit that a ref names; None where it has none yet."""
    text = next((text for folder in folders if (text := _read(folder / name).strip())), "")
    if not text and name != "HEAD":
        text = _packed(folders[1], name)
    if _COMMIT.fullmatch(text):
        return text
    target = text.removeprefix("ref:").strip()
    if text.startswith("ref:") and depth and _REF.fullmatch(target) and ".." not in target:
        return _resolve(folders, target, depth - 1)
    if name == "HEAD" or text:
        raise NoRepository("damaged_repository")
    return None


def _packed(common: Path, name: str) -> str:
    for line in _read(common / "packed-refs").splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name:
            return commit
    return ""


def _is_sha256(common: Path, head: str | None) -> bool:
    if head is not None:
        return len(head) == _SHA256_HEX
    return (
        re.search(r"objectformat\s*=\s*sha256", _read(common / "config"), re.IGNORECASE) is not None
    )


def _read(path: Path) -> str:
    """A small file of text, or nothing."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _SMALL:
            return ""
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
