"""Layout: which places of this machine a sandbox shows, hides or lets be written.

Every path is free of symlinks before it is decided about; a hidden name that points elsewhere hides
what it points to. Only what exists is mounted over.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from factwire.runtime.sandbox.bubblewrap import Mount, ordered
from factwire.runtime.sandbox.errors import InvalidPolicy
from factwire.runtime.sandbox.hiding import EMPTY, HOME_CREDENTIALS, SYSTEM_CREDENTIALS
from factwire.runtime.sandbox.policy import SandboxPolicy


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of it, and the mounts that make it so."""

    writable: tuple[str, ...]
    readable: tuple[str, ...]
    hidden: tuple[str, ...]
    mounts: tuple[Mount, ...]

    def shows(self, path: Path) -> bool:
        """Whether a file can be seen inside, by its name and by what its name leads to."""
        return all(self._shows(place) for place in (path, path.resolve()))

    def _shows(self, path: Path) -> bool:
        kinds = {mount.path: mount.kind for mount in ordered(self.mounts)}
        around = (path, *path.parents)
        nearest = next((kinds[str(place)] for place in around if str(place) in kinds), "read")
        return nearest in ("read", "write")


def layout_of(
    policy: SandboxPolicy, *, workspace: Path, home: Path, data: Iterable[Path] = ()
) -> Layout:
    """The layout for a workspace; raises `InvalidPolicy` where it would show what it hides."""
    writable = _existing([workspace, *map(Path, policy.writable)])
    readable = _existing([*map(Path, policy.readable), *_resolver(policy)])
    hidden = _existing([home, *_known(home), *map(Path, policy.hidden), *data])
    shown = {*writable, *readable}
    for path in _existing([*_known(home), *map(Path, policy.hidden), *data]):
        if path in shown:
            raise InvalidPolicy(f"{path} is to be hidden and cannot be worked in; choose another")
    hidden = [path for path in hidden if path not in shown and path != Path("/")]
    covered = [path for path in hidden if not _is_gone(path, hidden, shown)]
    return Layout(
        writable=_names(writable),
        readable=_names(readable),
        hidden=_names(hidden),
        mounts=(
            *private_folders(),
            *(Mount("empty" if path.is_dir() else "no-file", str(path)) for path in covered),
            *(Mount("read", str(path)) for path in readable),
            *(Mount("write", str(path)) for path in writable),
        ),
    )


def private_folders() -> tuple[Mount, ...]:
    """The folders that every sandbox has for itself."""
    return tuple(Mount("empty", str(path)) for path in _existing(map(Path, EMPTY)))


def _known(home: Path) -> Iterator[Path]:
    yield from (home / name for name in HOME_CREDENTIALS)
    yield from (path for path in map(Path, SYSTEM_CREDENTIALS) if path != home)


def _resolver(policy: SandboxPolicy) -> list[Path]:
    """With a network, names are looked up where a hidden folder may say how."""
    return [Path("/etc/resolv.conf")] if policy.network else []


def _existing(paths: Iterable[Path]) -> list[Path]:
    found: dict[Path, None] = {}
    for path in paths:
        try:
            found[path.expanduser().resolve(strict=True)] = None
        except (OSError, RuntimeError):
            continue
    return list(found)


def _is_gone(path: Path, hidden: list[Path], shown: set[Path]) -> bool:
    """Whether a place is out of sight anyway: hidden around it, with nothing shown between."""
    around = path.parents
    nearest = next((place for place in around if place in shown or place in hidden), None)
    return nearest is not None and nearest not in shown


def _names(paths: Iterable[Path]) -> tuple[str, ...]:
    return tuple(sorted(map(str, paths)))
