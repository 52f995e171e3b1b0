"""Evidence packs: a history in one file that anybody can check, offline and without trust in us."""

from factwire.evidence.assertions import AnyAssertion, ReplayCase, read_case
from factwire.evidence.cases import cases_in
from factwire.evidence.checking import AssertionResult, check
from factwire.evidence.errors import (
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
)
from factwire.evidence.exporting import Options, export_facts, export_journal
from factwire.evidence.findings import FINDINGS, Finding
from factwire.evidence.gaps import GAP_CODES
from factwire.evidence.keys import (
    TrustedKey,
    TrustList,
    create_key,
    known_trust,
    load_key,
    load_trust,
    public_text,
    trusting,
)
from factwire.evidence.manifest import Manifest
from factwire.evidence.matching import JournalMatch, MatchDifference, match_journal
from factwire.evidence.reading import Pack, open_pack
from factwire.evidence.selection import threads_of_project
from factwire.evidence.signatures import fingerprint
from factwire.evidence.summary import EvidencePack, KnownGap
from factwire.evidence.verification import PackReport, Signer, verify_pack
from factwire.evidence.writing import Written

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
    "ExportProblem",
    "Finding",
    "HostilePack",
    "JournalMatch",
    "KeyProblem",
    "KnownGap",
    "MalformedPack",
    "Manifest",
    "MatchDifference",
    "Options",
    "Pack",
    "PackError",
    "PackReport",
    "PackTooBig",
    "ReplayCase",
    "Signer",
    "TrustList",
    "TrustedKey",
    "UnreadablePack",
    "Written",
    "cases_in",
    "check",
    "create_key",
    "export_facts",
    "export_journal",
    "fingerprint",
    "known_trust",
    "load_key",
    "load_trust",
    "match_journal",
    "open_pack",
    "public_text",
    "read_case",
    "threads_of_project",
    "trusting",
    "verify_pack",
]
