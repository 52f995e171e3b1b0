"""What evidence packs refuse, and what a verification finds.

EvidenceError
├── PackError                the file is no pack that can be read; `code` says why
│   ├── UnreadablePack       no zip archive, a cut one, or one whose directory is damaged
│   ├── HostilePack          an archive that no tool makes by accident: it was built to do harm
│   ├── PackTooBig           past one of the limits
│   ├── MalformedPack        an archive, but its manifest or documents are not a pack's
│   ├── ChangedPack          contents and manifest differ; carries the finding
│   └── BlobNotInPack        the pack holds no such blob
├── KeyProblem               a signing key, public key or trust list that cannot be used
├── CaseProblem              a replay case or an assertion that is not one
└── ExportProblem            nothing was exported

Codes are stable; messages may change. A `Finding` is one difference between a pack and what it
says of itself: where it is, and what it means.
"""

from typing import Final

import msgspec

FINDINGS: Final = {
    "entry_changed": "bytes of an entry differ from those that were written",
    "entry_truncated": "bytes of an entry are missing",
    "entry_extended": "bytes were added at the end of an entry",
    "entry_missing": "an entry listed in the manifest is missing",
    "entry_added": "the archive contains an entry that the manifest does not list",
    "signature_invalid": "the manifest is not the one that was signed with this key",
    "signature_missing": "a signature is required, but the pack has none",
    "signer_untrusted": "the pack is signed by a key that is not trusted",
    "facts_malformed": "a line is not a fact",
    "count_differs": "the number of facts differs from the manifest",
    "blob_misnamed": "the content of a blob does not match its name",
    "derived_differs": "derived content does not follow from the facts",
}
"""Code → what it means. These make a pack fail verification; codes are stable."""


SIGNER_FINDINGS: Final = frozenset({"signature_missing", "signer_untrusted"})
"""Codes that say whose pack it is not; about its contents they say nothing."""


class VerificationFinding(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"
):
    """`first` and `last` are bytes of the entry, counted from 0 and both included."""

    code: str
    message: str
    entry: str | None = None
    first: int | None = None
    last: int | None = None

    def __str__(self) -> str:
        return self.message


def report_changed(entry: str, first: int, last: int) -> VerificationFinding:
    """Bytes that differ."""
    message = f"{entry}: bytes {first}–{last} differ from those that were written"
    return VerificationFinding(
        code="entry_changed", entry=entry, first=first, last=last, message=message
    )


def report_cut(entry: str, first: int, last: int, gone: int) -> VerificationFinding:
    """Bytes that are gone, somewhere from the first one on."""
    message = f"{entry}: {gone} of the bytes {first}–{last} are missing"
    return VerificationFinding(
        code="entry_truncated", entry=entry, first=first, last=last, message=message
    )


def report_extended(entry: str, first: int) -> VerificationFinding:
    """Bytes past the end."""
    message = f"{entry}: bytes were added, starting at {first}"
    return VerificationFinding(code="entry_extended", entry=entry, first=first, message=message)


def report_missing(entry: str, size: int) -> VerificationFinding:
    message = f"{entry}: the entry is missing, with all its {size} bytes"
    return VerificationFinding(
        code="entry_missing", entry=entry, first=0, last=max(0, size - 1), message=message
    )


def report_added(entry: str, size: int) -> VerificationFinding:
    message = f"{entry}: the entry was added; the manifest does not list it"
    return VerificationFinding(
        code="entry_added", entry=entry, first=0, last=max(0, size - 1), message=message
    )


class EvidenceError(Exception):
    """The root of every error that `factwire.evidence` raises; `code` is stable."""

    code: str = "evidence_error"


class PackError(EvidenceError):
    code = "pack_error"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        self.code = code or type(self).code
        super().__init__(message)


class UnreadablePack(PackError):
    """`pack_unreadable`, `pack_truncated`, `pack_not_zip` or `pack_compression_unknown`."""

    code = "pack_unreadable"


class HostilePack(PackError):
    """`pack_unsafe_name`, `pack_duplicate_entry`, `pack_symlink`, `pack_encrypted`,
    `pack_overlapping` or `pack_bomb`.
    """

    code = "pack_hostile"


class PackTooBig(PackError):
    code = "pack_too_big"


class MalformedPack(PackError):
    """`manifest_missing`, `manifest_malformed`, `manifest_version`, `signature_malformed`,
    `summary_malformed`, `facts_malformed` or `entry_malformed`.
    """

    code = "pack_malformed"


class ChangedPack(PackError):
    """Bytes that are not those of the manifest, or a manifest that was not signed as it is."""

    code = "pack_changed"

    def __init__(self, finding: "VerificationFinding") -> None:
        self.finding = finding
        super().__init__(str(finding), code=finding.code)


class BlobNotInPack(PackError):
    code = "blob_not_in_pack"


class KeyProblem(EvidenceError):
    """`key_missing`, `key_exists`, `key_malformed`, `key_unreadable`, `key_exposed`, `key_weak`,
    `name_malformed` or `trust_malformed`.
    """

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class CaseProblem(EvidenceError):
    """`case_unreadable`, `case_malformed` or `assertion_malformed`."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class ExportProblem(EvidenceError):
    """`nothing_to_export`, `export_raced`, `journal_corrupt` or `cursor_not_of_journal`."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)
