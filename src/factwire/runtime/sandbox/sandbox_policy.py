"""What is asked of a sandbox, and which places of this machine it then shows, hides or lets be
written.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

import msgspec

from factwire.runtime.policy.policy_rules import (
    ANY,
    FAMILIES,
    PolicyRule,
    Steps,
    covers_below,
    fold,
    matches,
    may_match_below,
    path_steps,
)
from factwire.runtime.sandbox import limits
from factwire.runtime.sandbox.bubblewrap import Mount, order_mounts


class SandboxError(Exception):
    """The root of every error that `factwire.runtime.sandbox` raises; `code` is stable."""

    code: str = "sandbox_error"


class SandboxRefused(SandboxError):
    code = "sandbox_refused"

    def __init__(self, reason_code: str, message: str) -> None:
        self.reason_code = reason_code
        super().__init__(
            f"a sandbox is required but not available: {message}; install or allow bubblewrap, or "
            "set the sandbox mode to prefer"
        )


class InvalidPolicy(SandboxError):
    code = "invalid_policy"


SandboxMode = Literal["off", "prefer", "require"]
"""prefer: run without one where none can be had, and say so. require: then refuse to run."""


class SandboxLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on what runs inside; None asks for none."""

    processes: int | None = limits.PROCESSES
    memory_bytes: int | None = limits.MEMORY_BYTES
    file_bytes: int | None = limits.FILE_BYTES
    open_files: int | None = limits.OPEN_FILES


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`readable` are folders of the home that stay visible, `writable` are more folders to work
    in beside the workspace, `hidden` is more to hide. `deny` are rules about paths: a file that
    may not be read cannot be opened inside, and one that may not be edited is read-only.
    """

    mode: SandboxMode = "off"
    network: bool = False
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    deny: tuple[PolicyRule, ...] = ()
    limits: SandboxLimits = SandboxLimits()


HOME_CREDENTIALS: Final = (
    *(
        ".ssh",
        ".gnupg",
        ".pki",
        ".password-store",
        ".local/share/keyrings",
        ".local/share/kwalletd",
    ),
    *(".aws", ".azure", ".config/gcloud", ".config/doctl", ".oci", ".kube", ".docker"),
    *(".terraform.d", ".vault-token", ".config/op", ".config/sops", ".databrickscfg"),
    *(".netrc", ".authinfo", ".authinfo.gpg", ".git-credentials", ".config/git/credentials"),
    *(".config/gh", ".config/glab-cli", ".config/hub", ".npmrc", ".yarnrc.yml", ".pypirc"),
    *(".config/pip", ".gem/credentials", ".cargo/credentials", ".cargo/credentials.toml"),
    *(".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties"),
    *(".pgpass", ".my.cnf", ".mongorc.js", ".config/rclone", ".s3cfg", ".boto"),
    *(".claude", ".claude.json", ".codex", ".gemini", ".config/opencode", ".local/share/opencode"),
    *(".mozilla", ".config/google-chrome", ".config/chromium", ".thunderbird"),
    *(".bash_history", ".zsh_history", ".python_history", ".psql_history", ".node_repl_history"),
    *(".Xauthority", ".ICEauthority"),
)
"""Below the home: keys, tokens, browsers' profiles and histories of what was typed."""

SYSTEM_CREDENTIALS: Final = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers"),
    *("/etc/sudoers.d", "/etc/ssh", "/etc/ssl/private", "/etc/wireguard", "/etc/kubernetes"),
    *("/etc/NetworkManager/system-connections", "/etc/docker", "/var/lib/docker"),
    *("/var/lib/kubelet", "/var/spool/cron", "/home", "/root"),
)
"""Of the machine and of other people on it; most are closed to a user anyway, and open to root."""

EMPTY: Final = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - these become private, they are not used
"""Replaced by scratch folders: what others left there, and the sockets of every service."""


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
        kinds = {mount.path: mount.kind for mount in order_mounts(self.mounts)}
        around = (path, *path.parents)
        nearest = next((kinds[str(place)] for place in around if str(place) in kinds), "read")
        return nearest in ("read", "write")


def build_layout(
    policy: SandboxPolicy, *, workspace: Path, home: Path, data: Iterable[Path] = ()
) -> Layout:
    """The layout for a workspace as its files are now; raises `InvalidPolicy` where it would show
    what it hides, or where the rules cover more than can be hidden.
    """
    denied = find_denied_paths(policy.deny, workspace.resolve())
    writable = _resolve_existing([workspace, *map(Path, policy.writable)])
    readable = _resolve_existing([*map(Path, policy.readable), *_resolver(policy)])
    hidden = _resolve_existing([home, *_list_credentials(home), *map(Path, policy.hidden), *data])
    shown = {*writable, *readable}
    for path in _resolve_existing([*_list_credentials(home), *map(Path, policy.hidden), *data]):
        if path in shown:
            raise InvalidPolicy(
                f"{path} must stay hidden, so it cannot be a working folder; choose another"
            )
    hidden = [path for path in hidden if path not in shown and path != Path("/")]
    masked = [path for path in denied.unreadable if path not in shown]
    locked = [path for path in denied.uneditable if path not in shown]
    hidden += [path for path in masked if path not in hidden]
    covered = [path for path in hidden if not _is_gone(path, hidden, shown)]
    locked = [path for path in locked if path not in hidden and not _is_gone(path, hidden, shown)]
    readable += locked
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
    return tuple(Mount("empty", str(path)) for path in _resolve_existing(map(Path, EMPTY)))


def _list_credentials(home: Path) -> Iterator[Path]:
    yield from (home / name for name in HOME_CREDENTIALS)
    yield from (path for path in map(Path, SYSTEM_CREDENTIALS) if path != home)


def _resolver(policy: SandboxPolicy) -> list[Path]:
    """With a network, names are looked up where a hidden folder may say how."""
    return [Path("/etc/resolv.conf")] if policy.network else []


def _resolve_existing(paths: Iterable[Path]) -> list[Path]:
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


class DeniedPaths(msgspec.Struct, frozen=True, kw_only=True):
    """What is there of what rules deny: files, and folders of which they deny everything."""

    unreadable: tuple[Path, ...] = ()
    uneditable: tuple[Path, ...] = ()


def find_denied_paths(rules: Iterable[PolicyRule], workspace: Path) -> DeniedPaths:
    """The files that rules deny now, by every name that leads to them inside the workspace."""
    found: dict[str, set[Path]] = {"read": set(), "edit": set()}
    left = limits.DENIED_ENTRIES
    for rule in rules:
        absolute, steps = path_steps(rule.pattern or "", folded=True)
        root = Path("/") if absolute else workspace
        walk = _DeniedWalk(rule, steps, left)
        walk.visit(root, ())
        left = walk.left
        found[FAMILIES[rule.tool.lower()]] |= walk.found
    for paths in found.values():
        paths.update(_find_hard_links(paths, workspace))
    if sum(map(len, found.values())) > limits.DENIED_PATHS:
        raise InvalidPolicy(
            f"the path rules deny more than {limits.DENIED_PATHS} existing files, which is more "
            "than a sandbox can hide; deny their folders with /**"
        )
    return DeniedPaths(
        unreadable=tuple(sorted(found["read"])), uneditable=tuple(sorted(found["edit"]))
    )


class _DeniedWalk:
    """One rule's files. A link counts as what it leads to, which may lie elsewhere; `**` enters no
    folder by a link, since what lies in the workspace is found where it is.
    """

    def __init__(self, rule: PolicyRule, steps: Steps, left: int) -> None:
        self.left = left
        self.found: set[Path] = set()
        self._rule = rule
        self._steps = steps
        self._last = steps[-1] if steps else None
        self._follows = ANY not in steps

    def visit(self, folder: Path, words: tuple[str, ...]) -> None:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                self.left -= 1
                if self.left < 0:
                    raise InvalidPolicy(
                        f"{self._rule} covers folders with more than {limits.DENIED_ENTRIES} "
                        "entries, too many to look through before each command; narrow it"
                    )
                self._look_at(entry, words)

    def _look_at(self, entry: "os.DirEntry[str]", words: tuple[str, ...]) -> None:
        name = fold(entry.name)
        is_folder = entry.is_dir()
        if not is_folder and self._last is not None and not self._last.fullmatch(name):
            return
        words = (*words, name)
        covers = covers_below(self._steps, words)
        if covers or (not is_folder and matches(self._steps, words)):
            self.found.update(_resolve_existing([Path(entry.path)]))
        elif (
            entry.path not in _KERNEL
            and entry.is_dir(follow_symlinks=self._follows)
            and may_match_below(self._steps, words)
        ):
            self.visit(Path(entry.path), words)


_KERNEL: Final = frozenset({"/proc", "/sys", "/dev"})
"""Folders that a sandbox has its own of, or whose files are not on a disk."""


def _find_hard_links(paths: set[Path], workspace: Path) -> set[Path]:
    """Other names of the same files in the workspace."""
    inodes = {
        (about.st_dev, about.st_ino)
        for path in paths
        if path.is_file() and (about := path.stat()).st_nlink > 1
    }
    if not inodes:
        return set()
    twins: set[Path] = set()
    for folder, _, files, descriptor in os.fwalk(workspace):
        for name in files:
            with suppress(OSError):
                about = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                if (about.st_dev, about.st_ino) in inodes:
                    twins.add(Path(folder, name))
    return twins
