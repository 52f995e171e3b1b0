"""Trust in a project's file: whoever clones a repository has not agreed to its settings.

A `factwire.toml` names programs, servers, keys and rules. It counts for nothing until a person has
trusted it, and what they trust is its location and the hash of its bytes: of a file that was
changed, moved or replaced, nothing counts. The bytes that are hashed are those that are parsed, so
that no swap comes in between. What is trusted is listed in the user's XDG data folder, where no
project's settings reach and only its user may write; a list that cannot be relied on trusts
nothing.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

import msgspec

from factwire.facts import redact_text
from factwire.journal.atomic_files import (
    find_exposure,
    make_private_folder,
    read_regular_file,
    replace_file,
)

PROJECT_FILE: Final = "factwire.toml"

LARGEST_FILE: Final = 1024 * 1024
"""Bytes of a configuration file; no person writes more."""

TRUST_FILE: Final = "trusted-projects.json"
_FORMAT: Final = "factwire-trusted-projects/v1"
_LARGEST_LIST: Final = 64 * 1024 * 1024

UntrustedReason = Literal["new", "changed", "unreadable", "list_unusable"]

_REASONS: Final[dict[UntrustedReason, str]] = {
    "new": "is not trusted",
    "changed": "was changed since it was trusted",
    "unreadable": "cannot be read",
    "list_unusable": "is not trusted, because the list of trusted projects cannot be used",
}


class TrustedProject(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A file as it was when a person trusted it; `content` is for showing what changed since, and
    holds no secrets.
    """

    path: str
    digest: str
    content: str
    trusted_at: str


class _TrustDocument(msgspec.Struct, frozen=True, kw_only=True):
    format: str
    projects: list[TrustedProject]


class UntrustedProject(msgspec.Struct, frozen=True, kw_only=True):
    """A project's file that does not count, and why."""

    path: str
    reason: UntrustedReason
    detail: str | None = None

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return (
            f"project_untrusted: {self.path} {_REASONS[self.reason]}{detail}, so its settings are "
            "ignored; review it and run `factwire trust`"
        )


class ProjectFile(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of a project's file, read once."""

    path: Path
    data: bytes

    @property
    def digest(self) -> str:
        return sha256(self.data).hexdigest()

    @property
    def shown(self) -> str:
        """Its text without secrets, for people and for the list."""
        return redact_text(self.data.decode("utf-8", "replace"))[0]


class TrustListUnusable(Exception):
    """The list of trusted projects is damaged, or others may write to it."""

    code = "trust_list_unusable"


def find_xdg_folder(environment: Mapping[str, str], name: str, *default: str) -> Path:
    """Our folder in one of the XDG specification, which says to ignore a relative one; `default`
    lies in the home folder.
    """
    configured = Path(environment.get(name, ""))
    home = environment.get("HOME") or str(Path.home())
    return (configured if configured.is_absolute() else Path(home, *default)) / "factwire"


def read_project_file(path: Path) -> ProjectFile:
    """Read a project's file; raises `OSError`. It is known by its real folder, so that no link to
    the folder makes it another one; the file itself may be a link, for its bytes are what counts.
    """
    data, _ = read_regular_file(path, LARGEST_FILE + 1)
    return ProjectFile(path=path.parent.resolve() / path.name, data=data)


class ProjectTrust:
    """The projects that a person trusts."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        variables = os.environ if environment is None else environment
        self.path = find_xdg_folder(variables, "XDG_DATA_HOME", ".local", "share") / TRUST_FILE

    def list_projects(self) -> list[TrustedProject]:
        """All of them, by path; raises `TrustListUnusable`."""
        try:
            data, about = read_regular_file(self.path, _LARGEST_LIST, follow_links=False)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from error
        exposure = find_exposure(about, writing=True)
        if exposure is not None:
            raise self._unusable(f"it {exposure}")
        try:
            found = msgspec.json.decode(data, type=_TrustDocument)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._unusable(f"it is damaged: {error}") from error
        if found.format != _FORMAT:
            raise self._unusable(f"expected the format {_FORMAT}")
        return sorted(found.projects, key=lambda project: project.path)

    def find(self, path: Path) -> TrustedProject | None:
        """What was trusted at this place; raises `TrustListUnusable`."""
        name = str(path)
        return next((each for each in self.list_projects() if each.path == name), None)

    def check(self, file: ProjectFile) -> UntrustedProject | None:
        """Why a file does not count; None for one that was trusted as it is."""
        try:
            trusted = self.find(file.path)
        except TrustListUnusable as error:
            return UntrustedProject(path=str(file.path), reason="list_unusable", detail=str(error))
        if trusted is not None and trusted.digest == file.digest:
            return None
        return UntrustedProject(path=str(file.path), reason="changed" if trusted else "new")

    def add(self, file: ProjectFile) -> None:
        """Trust a file with exactly these bytes; a list that is damaged is begun anew."""
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        added = TrustedProject(
            path=str(file.path),
            digest=file.digest,
            content=file.shown,
            trusted_at=now,
        )
        self._write([*self._others(file.path), added])

    def remove(self, path: Path) -> bool:
        """Trust a file no longer; whether it was trusted."""
        known = self.find(path) is not None
        if known:
            self._write(self._others(path))
        return known

    def _others(self, path: Path) -> list[TrustedProject]:
        try:
            return [each for each in self.list_projects() if each.path != str(path)]
        except TrustListUnusable:
            return []

    def _write(self, projects: list[TrustedProject]) -> None:
        make_private_folder(self.path.parent)
        document = _TrustDocument(format=_FORMAT, projects=projects)
        replace_file(self.path, msgspec.json.format(msgspec.json.encode(document)) + b"\n")

    def _unusable(self, reason: str) -> TrustListUnusable:
        return TrustListUnusable(f"{self.path}: {reason}")
