"""What evidence packs refuse, and how they say so.

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

Codes are stable; messages may change.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from factwire.evidence.findings import Finding


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

    def __init__(self, finding: "Finding") -> None:
        self.finding = finding
        super().__init__(str(finding), code=finding.code)


class BlobNotInPack(PackError):
    code = "blob_not_in_pack"


class KeyProblem(EvidenceError):
    """`key_missing`, `key_exists`, `key_malformed`, `key_exposed`, `key_weak`, `name_malformed`
    or `trust_malformed`.
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
