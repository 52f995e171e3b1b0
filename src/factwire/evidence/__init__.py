"""Evidence packs: a history in one file that anybody can check, offline and without trust in us."""

from factwire.evidence.case_check import AssertionResult, check_cases
from factwire.evidence.errors import (
    FINDINGS,
    BlobNotInPack,
    CaseProblem,
    ChangedPack,
    EvidenceError,
    ExportProblem,
    HostilePack,
    KeyProblem,
    MalformedPack,
    PackError,
    PackTooBig,
    UnreadablePack,
    VerificationFinding,
)
from factwire.evidence.pack_export import (
    ExportOptions,
    export_facts,
    export_journal,
    threads_of_project,
)
from factwire.evidence.pack_format import EvidencePack, KnownGap, Manifest
from factwire.evidence.pack_reader import Pack, open_pack
from factwire.evidence.pack_rows import GAP_CODES
from factwire.evidence.pack_writer import WrittenPack
from factwire.evidence.replay_cases import AnyAssertion, ReplayCase, parse_case, read_cases
from factwire.evidence.signatures import (
    TrustedKey,
    TrustList,
    build_trust_list,
    create_key,
    encode_public_key,
    fingerprint,
    load_key,
    load_known_trust,
    load_trust,
)
from factwire.evidence.verification import (
    JournalMatch,
    MatchDifference,
    PackReport,
    Signer,
    match_journal,
    verify_pack,
)

__all__ = [
    "FINDINGS",
    "GAP_CODES",
    "AnyAssertion",
    "AssertionResult",
    "BlobNotInPack",
    "CaseProblem",
    "ChangedPack",
    "EvidenceError",
    "EvidencePack",
    "ExportOptions",
    "ExportProblem",
    "HostilePack",
    "JournalMatch",
    "KeyProblem",
    "KnownGap",
    "MalformedPack",
    "Manifest",
    "MatchDifference",
    "Pack",
    "PackError",
    "PackReport",
    "PackTooBig",
    "ReplayCase",
    "Signer",
    "TrustList",
    "TrustedKey",
    "UnreadablePack",
    "VerificationFinding",
    "WrittenPack",
    "build_trust_list",
    "check_cases",
    "create_key",
    "encode_public_key",
    "export_facts",
    "export_journal",
    "fingerprint",
    "load_key",
    "load_known_trust",
    "load_trust",
    "match_journal",
    "open_pack",
    "parse_case",
    "read_cases",
    "threads_of_project",
    "verify_pack",
]
