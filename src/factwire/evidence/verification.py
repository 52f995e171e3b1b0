"""Verifying a pack: against itself, against its signature, and against the journal it came from.

Three questions are asked separately. Are the contents those of the manifest, and is the manifest
the one that was signed? Does everything that was derived follow from the facts? Is the archive
around them still the one that was written? Against a journal, facts are compared byte by byte
and place by place; for a fact that the journal removed on purpose, with the digest that it
keeps. Where both know the hash of the chain it has to be the same, which vouches for everything
before it.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing
from hashlib import sha256
from itertools import islice, zip_longest
from os import SEEK_END
from pathlib import Path
from typing import BinaryIO, Final, Literal, cast

import msgspec

from factwire import __version__
from factwire.evidence import errors
from factwire.evidence.errors import (
    SIGNER_FINDINGS,
    ChangedPack,
    MalformedPack,
    VerificationFinding,
)
from factwire.evidence.limits import LISTED, PROGRESS_FACTS
from factwire.evidence.pack_archive import ArchiveState, ArchiveWriter
from factwire.evidence.pack_digest import PackDigest
from factwire.evidence.pack_export import Stored, read_selected
from factwire.evidence.pack_format import (
    BLOB_NOTES,
    BLOBS,
    CASES,
    FACTS,
    MANIFEST,
    SECTIONS,
    SEQS,
    SIGNATURE,
    SUMMARY,
    ChainAnchor,
    Entry,
    JournalAnchors,
    PackStruct,
    encode_document,
)
from factwire.evidence.pack_reader import Pack, decode_pack_fact, open_pack_stream, read_blob_notes
from factwire.evidence.signatures import (
    TrustList,
    fingerprint_of,
    is_signed,
    report_invalid_signature,
)
from factwire.journal import Journal, RemovedFact
from factwire.journal.admission import digest_body

SignerState = Literal["trusted", "unknown", "unsigned", "invalid"]
VerifyProgress = Callable[[int], None]

_DERIVED_ENTRIES: Final = (*SECTIONS, SUMMARY)
_KNOWN_ENTRIES: Final = frozenset({FACTS, SEQS, CASES, BLOB_NOTES, *_DERIVED_ENTRIES})


class Signer(PackStruct, frozen=True):
    """Which key signed, by its fingerprint; `name` is what the reader's trust list calls it."""

    state: SignerState
    key_id: str | None = None
    name: str | None = None


class PackReport(PackStruct, frozen=True):
    """What a verification found. `digest` is the SHA-256 of the manifest; `derived_again` is
    whether what was derived could be compared: another version may derive otherwise.
    """

    ok: bool
    findings: tuple[VerificationFinding, ...]
    signer: Signer
    container: ArchiveState
    facts: int
    digest: str
    producer: str
    derived_again: bool
    container_offset: int | None = None
    created_at: str | None = None

    @property
    def contents_ok(self) -> bool:
        """Whether nothing was found but that the signer is not one of those demanded."""
        return _is_unchanged(self.findings)


def verify_pack(
    path: Path,
    *,
    trust: TrustList | None = None,
    demand_trust: bool = False,
    progress: VerifyProgress = lambda _: None,
) -> PackReport:
    """Verify a whole pack; raises `PackError` for what cannot be read as one.

    With `demand_trust` a pack fails unless a key of the trust list signed it.
    """
    with path.open("rb") as stream, open_pack_stream(stream) as pack:
        signer = identify_signer(pack, trust or TrustList())
        found = [
            *check_signature(pack, signer, demand=demand_trust),
            *_check_content(pack, progress),
        ]
        again = _is_unchanged(found) and pack.manifest.producer == __version__
        if again:
            found += _check_derived(pack)
        container = pack.container_state
        return PackReport(
            ok=not found,
            findings=tuple(found),
            signer=signer,
            container=container,
            facts=pack.manifest.facts,
            digest=sha256(pack.manifest_bytes).hexdigest(),
            producer=pack.manifest.producer,
            derived_again=again,
            container_offset=(
                _find_first_change(pack, stream, container) if _is_unchanged(found) else None
            ),
            created_at=pack.manifest.created_at,
        )


def _is_unchanged(found: Iterable[VerificationFinding]) -> bool:
    return all(finding.code in SIGNER_FINDINGS for finding in found)


def identify_signer(pack: Pack, trust: TrustList) -> Signer:
    """Who signed a pack."""
    signature = pack.signature
    if signature is None:
        return Signer(state="unsigned")
    key_id = fingerprint_of(signature)
    if not is_signed(pack.manifest_bytes, signature):
        return Signer(state="invalid", key_id=key_id)
    name = trust.name_of(signature.public_key)
    return Signer(state="unknown" if name is None else "trusted", key_id=key_id, name=name)


def check_signature(pack: Pack, signer: Signer, *, demand: bool) -> Iterator[VerificationFinding]:
    """What is wrong with who signed."""
    if signer.state == "invalid" and pack.signature is not None:
        yield report_invalid_signature(pack.signature)
    elif demand and signer.state == "unsigned":
        message = "the pack is not signed, but a trusted signature is required"
        yield VerificationFinding(code="signature_missing", entry=SIGNATURE, message=message)
    elif demand and signer.state == "unknown":
        message = f"the pack is signed by {signer.key_id}, which is not a trusted key"
        yield VerificationFinding(code="signer_untrusted", entry=SIGNATURE, message=message)


def _check_content(pack: Pack, progress: VerifyProgress) -> Iterator[VerificationFinding]:
    """What is wrong with the entries themselves, in the order of the manifest."""
    for entry in pack.manifest.entries:
        try:
            yield from _check_entry(pack, entry, progress)
        except ChangedPack as changed:
            yield changed.finding
        except MalformedPack as malformed:
            yield VerificationFinding(code=malformed.code, entry=entry.name, message=str(malformed))
    existing = {entry.name for entry in pack.manifest.entries} | {MANIFEST, SIGNATURE}
    for name in pack.container.names():
        if name not in existing:
            yield errors.report_added(name, pack.container.size_of(name))


def _check_entry(
    pack: Pack, entry: Entry, progress: VerifyProgress
) -> Iterator[VerificationFinding]:
    if not entry.name.startswith(BLOBS) and entry.name not in _KNOWN_ENTRIES:
        # The manifest lists it, but a pack has no such entry: it came in with a forged manifest.
        yield errors.report_added(entry.name, entry.bytes)
    whole = sha256()
    for block in pack.container.read_blocks(entry):
        whole.update(block)
    if not matches_whole(whole.hexdigest(), entry.sha256):
        yield errors.report_changed(entry.name, 0, max(0, entry.bytes - 1))
    elif entry.name.startswith(BLOBS) and entry.name.removeprefix(BLOBS) != whole.hexdigest():
        message = f"{entry.name}: the content is that of blob {whole.hexdigest()}"
        yield VerificationFinding(code="blob_misnamed", entry=entry.name, message=message)
    elif entry.name == FACTS:
        yield from _check_facts(pack, progress)


def matches_whole(found: str, expected: str) -> bool:
    """Whether the hash of a whole entry is the one that the manifest has."""
    return found == expected


def _check_facts(pack: Pack, progress: VerifyProgress) -> Iterator[VerificationFinding]:
    count = 0
    for count, line in enumerate(pack.fact_lines(), 1):
        decode_pack_fact(line, count)
        if count % PROGRESS_FACTS == 0:
            progress(PROGRESS_FACTS)
    places = pack.count_places() if pack.manifest.source == "journal" else count
    if count != pack.manifest.facts or places != count:
        message = f"the manifest counts {pack.manifest.facts} facts, but the pack contains {count}"
        yield VerificationFinding(
            code="count_differs", entry=FACTS, message=f"{message}, at {places} places"
        )


def _check_derived(pack: Pack) -> Iterator[VerificationFinding]:
    """Derive everything from the facts again, and compare."""
    summary = pack.summary
    removed = {} if summary.journal is None else summary.journal.removed
    with PackDigest(kept=pack.manifest.source == "journal") as digest:
        for fact in pack.facts():
            digest.take(fact)
        digest.close(read_blob_notes(pack), removed)
        lines = dict(digest.sections())
        for name in SECTIONS:
            yield from _compare_lines(pack, name, lines.get(name))
        notes = read_blob_notes(pack)
        listed = list(islice(notes, LISTED))
        count = len(listed) + sum(1 for _ in notes)
        again = digest.summary(listed, count, summary.journal)
        yield from _compare_lines(pack, SUMMARY, iter((encode_document(again),)))


def _compare_lines(
    pack: Pack, name: str, lines: Iterator[bytes] | None
) -> Iterator[VerificationFinding]:
    entry = pack.manifest.entry(name)
    stored = () if entry is None else (row + b"\n" for row in pack.rows(name))
    at = 0
    for there, follows in zip_longest(stored, lines or (), fillvalue=b""):
        if there != follows:
            last = at + max(len(there), 1) - 1
            message = f"{name}: bytes {at}–{last} do not follow from the facts"
            yield VerificationFinding(
                code="derived_differs", entry=name, first=at, last=last, message=message
            )
            return
        at += len(there)


def _find_first_change(pack: Pack, stream: BinaryIO, container: ArchiveState) -> int | None:
    """Where an archive whose contents are right differs from the one that was written.

    It is written once more, and compared byte by byte.
    """
    if container != "changed":
        return None
    compared = _ComparingStream(stream)
    archive = ArchiveWriter(compared, stored=pack.manifest.stored)  # pyright: ignore[reportArgumentType]
    try:
        for entry in pack.manifest.entries:
            writer = archive.begin(entry.name)
            for block in pack.container.read_blocks(entry):
                writer.write(block)
            writer.close()
        archive.put(MANIFEST, pack.manifest_bytes)
        if pack.signature is not None:
            archive.put(SIGNATURE, encode_document(pack.signature))
        archive.close()
    except BaseException:
        archive.abandon()
        raise
    return compared.result()


class _ComparingStream:
    """Takes the bytes that should be in a file, and remembers the first that is another one."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._at = 0
        self._first: int | None = None

    def write(self, data: bytes) -> int:
        if self._first is None:
            self._stream.seek(self._at)
            there = self._stream.read(len(data))
            if there != data:
                pairs = enumerate(zip_longest(there, data))
                self._first = self._at + next(place for place, (a, b) in pairs if a != b)
        self._at += len(data)
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def result(self) -> int | None:
        """The first byte that is another one, or one too many."""
        if self._first is None and self._stream.seek(0, SEEK_END) > self._at:
            return self._at
        return self._first


MatchState = Literal["matches", "compacted", "copy", "differs", "not_from_journal"]
"""`compacted`: all that is left is equal, and what is gone was removed on purpose. `copy`: facts
are equal in a journal of another epoch, whose chain is its own."""

_LISTED: Final = 20


class MatchDifference(PackStruct, frozen=True):
    """One difference. Codes: `other_journal`, `fact_differs`, `fact_missing`, `fact_extra`,
    `anchor_differs`, `journal_shorter`, `journal_corrupt`.
    """

    code: str
    seq: int
    message: str


class JournalMatch(PackStruct, frozen=True):
    """What a comparison found. `removed` counts facts that the journal no longer holds; `anchors`
    counts points of the chain that were compared, `incomparable` those that a removal took away. Of
    very many differences the first are listed, and `more` counts the others.
    """

    state: MatchState
    facts: int
    removed: int
    anchors: int
    incomparable: int
    differences: tuple[MatchDifference, ...]
    more: int = 0

    @property
    def ok(self) -> bool:
        return not self.differences


class _MatchTally(msgspec.Struct):
    facts: int = 0
    removed: int = 0
    anchors: int = 0
    incomparable: int = 0
    more: int = 0


async def match_journal(pack: Pack, journal: Journal) -> JournalMatch:
    """Compare a pack with a journal, whose own chain is walked as well."""
    origin = pack.summary.journal
    if origin is None:
        return _build_match(_MatchTally(), "not_from_journal", [])
    tally, found = _MatchTally(), list[MatchDifference]()
    epoch = (await journal.head()).epoch
    same_epoch = epoch == origin.epoch
    differences = _find_differences(pack, journal, origin, tally, same_epoch=same_epoch)
    async with aclosing(differences):
        async for difference in differences:
            if len(found) < _LISTED:
                found.append(difference)
            else:
                tally.more += 1
    if found and not same_epoch:
        found.insert(0, _report_other_journal(epoch, origin))
    return _build_match(tally, _match_state(tally, found, same_epoch=same_epoch), found)


def _build_match(
    tally: _MatchTally, state: MatchState, found: list[MatchDifference]
) -> JournalMatch:
    return JournalMatch(
        state=state,
        facts=tally.facts,
        removed=tally.removed,
        anchors=tally.anchors,
        incomparable=tally.incomparable,
        differences=tuple(found),
        more=tally.more,
    )


def _report_other_journal(epoch: str, origin: JournalAnchors) -> MatchDifference:
    """A copy has another epoch and the same facts; with other facts it is no copy."""
    message = (
        f"this is a different journal: its epoch is {epoch}, but the pack is from {origin.epoch}"
    )
    return MatchDifference(code="other_journal", seq=origin.first_seq, message=message)


def _match_state(
    tally: _MatchTally, found: list[MatchDifference], *, same_epoch: bool
) -> MatchState:
    if found:
        return "differs"
    if not same_epoch:
        return "copy"
    return "compacted" if tally.removed else "matches"


async def _find_differences(
    pack: Pack, journal: Journal, origin: JournalAnchors, tally: _MatchTally, *, same_epoch: bool
) -> AsyncGenerator[MatchDifference]:
    report = await journal.verify()
    if report.damage is not None:
        message = f"the journal itself is damaged: {report.damage.reason}"
        yield MatchDifference(code="journal_corrupt", seq=report.damage.first, message=message)
        return
    async with aclosing(_find_fact_differences(pack, journal, origin, tally)) as differences:
        async for difference in differences:
            yield difference
    if same_epoch:
        for anchor in origin.anchors:
            difference = await _compare_anchor(journal, anchor, tally)
            if difference is not None:
                yield difference


async def _find_fact_differences(
    pack: Pack, journal: Journal, origin: JournalAnchors, tally: _MatchTally
) -> AsyncGenerator[MatchDifference]:
    """Both in the order of their seqs, one fact of each held at a time."""
    here = _read_placed(pack)
    gone = _RemovedFacts(cast("AsyncGenerator[RemovedFact]", journal.read_removed()))
    chosen = read_selected(journal, origin.threads, origin.last_seq)
    async with aclosing(gone.rows), aclosing(chosen) as there:
        mine, theirs = next(here, None), await anext(there, None)
        while mine is not None or theirs is not None:
            if mine is not None and (theirs is None or mine.seq < theirs.seq):
                difference = await gone.explain(mine, tally)
                mine = next(here, None)
            elif theirs is not None and (mine is None or theirs.seq < mine.seq):
                difference = _report_extra(theirs)
                theirs = await anext(there, None)
            else:
                difference = _compare_fact(mine, theirs, tally)
                mine, theirs = next(here, None), await anext(there, None)
            if difference is not None:
                yield difference


def _report_extra(theirs: Stored) -> MatchDifference:
    message = f"the journal has fact {theirs.fact.id!r} at this position, but the pack has none"
    return MatchDifference(code="fact_extra", seq=theirs.seq, message=message)


def _read_placed(pack: Pack) -> Iterator[Stored]:
    for number, (seq, line) in enumerate(pack.placed_lines(), 1):
        yield Stored(seq, line, decode_pack_fact(line, number))


def _compare_fact(
    mine: Stored | None, theirs: Stored | None, tally: _MatchTally
) -> MatchDifference | None:
    if mine is None or theirs is None:
        return None
    tally.facts += 1
    if mine.line == theirs.line:
        return None
    message = (
        f"at this position, the pack has fact {mine.fact.id!r} and the journal has fact "
        f"{theirs.fact.id!r}, and they differ"
    )
    return MatchDifference(code="fact_differs", seq=mine.seq, message=message)


class _RemovedFacts:
    """What a journal keeps of removed facts, read along in the order of seqs."""

    def __init__(self, rows: AsyncGenerator[RemovedFact]) -> None:
        self.rows = rows
        self._next: RemovedFact | None = None
        self._began = False

    async def explain(self, mine: Stored, tally: _MatchTally) -> MatchDifference | None:
        """Nothing where the journal had exactly this fact there and removed it."""
        kept = await self._at(mine.seq)
        if kept is None:
            message = (
                "the journal has no fact at this position and no record of removing "
                f"{mine.fact.id!r}"
            )
            return MatchDifference(code="fact_missing", seq=mine.seq, message=message)
        tally.removed += 1
        if (kept.id, kept.digest) == (mine.fact.id, digest_body(mine.line)):
            return None
        message = f"the journal removed a fact other than {mine.fact.id!r} at this position"
        return MatchDifference(code="fact_differs", seq=mine.seq, message=message)

    async def _at(self, seq: int) -> RemovedFact | None:
        while not self._began or (self._next is not None and self._next.seq < seq):
            self._began = True
            self._next = await anext(self.rows, None)
        return self._next if self._next is not None and self._next.seq == seq else None


async def _compare_anchor(
    journal: Journal, anchor: ChainAnchor, tally: _MatchTally
) -> MatchDifference | None:
    stats = await journal.stats()
    if anchor.seq > stats.head.seq:
        message = (
            f"the pack contains the chain up to here, but the journal ends at {stats.head.seq}"
        )
        return MatchDifference(code="journal_shorter", seq=anchor.seq, message=message)
    point = await journal.chain_point(anchor.seq)
    if point.seq != anchor.seq or anchor.seq <= stats.floor.seq:
        tally.incomparable += 1
        return None
    tally.anchors += 1
    if point.hash.hex() == anchor.hash:
        return None
    message = (
        "the chain has a different hash here: a fact of some thread differs at or before this "
        "position"
    )
    return MatchDifference(code="anchor_differs", seq=anchor.seq, message=message)
