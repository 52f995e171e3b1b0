"""What is asked of a sandbox, and which places of this machine it then shows, hides or lets be
written.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

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
    in beside the workspace, `hidden` is more to hide.
    """

    mode: SandboxMode = "off"
    network: bool = False
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
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
    """The layout for a workspace; raises `InvalidPolicy` where it would show what it hides."""
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
