"""What an Edge finds when it checks a pack that it made, typed."""

from typing import Literal

from factwire.client.resources import Resource

SignerState = Literal["trusted", "unknown", "unsigned", "invalid"]
ArchiveState = Literal["as_written", "repacked", "changed"]
MatchState = Literal["matches", "compacted", "copy", "differs", "not_from_journal"]


class PackFinding(Resource, frozen=True, kw_only=True):
    """One thing that is wrong; `first` and `last` are bytes of the entry."""

    code: str
    message: str
    entry: str | None = None
    first: int | None = None
    last: int | None = None


class PackSigner(Resource, frozen=True, kw_only=True):
    """Which key signed, by its fingerprint."""

    state: SignerState
    key_id: str | None = None
    name: str | None = None


class PackReport(Resource, frozen=True, kw_only=True):
    """The pack by itself: its contents, its signer, its archive."""

    ok: bool
    findings: list[PackFinding]
    signer: PackSigner
    container: ArchiveState
    facts: int
    digest: str
    producer: str
    derived_again: bool
    container_offset: int | None = None
    created_at: str | None = None


class PackDifference(Resource, frozen=True, kw_only=True):
    """One place where the journal has something else."""

    code: str
    seq: int
    message: str


class PackMatch(Resource, frozen=True, kw_only=True):
    """The pack beside the journal of the Edge."""

    state: MatchState
    facts: int
    removed: int
    anchors: int
    incomparable: int
    differences: list[PackDifference]
    more: int = 0


class PackCheck(Resource, frozen=True, kw_only=True):
    """All that was found; `journal` is missing where the pack itself is not right."""

    report: PackReport
    journal: PackMatch | None = None
