"""Evidence packs: signed with this Edge's key, kept as blobs, named by a fact, and checked.

Whoever looks at a page cannot run `factwire evidence verify`, so the Edge does, on the very bytes
that it hands out. A check by the one who made the pack convinces nobody else: for that there is the
file, which anybody verifies offline.
"""

import os
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from factwire.edge.edge_context import EdgeContext
from factwire.evidence import (
    EvidenceError,
    ExportOptions,
    JournalMatch,
    PackReport,
    TrustList,
    build_trust_list,
    create_key,
    encode_public_key,
    export_journal,
    load_key,
    match_journal,
    open_pack,
    verify_pack,
)
from factwire.facts import InvalidRef, Person, Ref
from factwire.facts.resources import EvidenceRow
from factwire.journal import Journal
from factwire.journal.blobs import BlobMissing
from factwire.journal.blobs.blob_store import run_disk_work
from factwire.journal.filter import BESIDE_THREAD
from factwire.serving.asgi import Problem

KEY_FILE: Final = "evidence-key.pem"
_PIECE: Final = 256 * 1024


async def export_pack(
    edge: EdgeContext,
    evidence_id: str,
    thread_id: str,
    *,
    with_blobs: bool,
    by: Person,
    trace_id: str,
) -> EvidenceRow:
    """Make a pack of a thread; one with this id already is the one that was asked for before."""
    known = edge.records.evidence.get(evidence_id)
    if known is not None:
        return known
    row = edge.find_thread(thread_id)
    ref = await _store_pack(edge, thread_id, with_blobs=with_blobs)
    payload = {
        "evidenceId": evidence_id,
        "kind": "audit",
        "status": "exported",
        "title": f"Evidence of {row.title or thread_id}",
        "exportRef": ref.ref,
    }
    if row.runtime_id == edge.mint.runtime_id:
        await edge.write(
            thread_id,
            ("evidence.exported", payload),
            trace_id=trace_id,
            by=by,
            evidence_id=evidence_id,
        )
    else:
        payload["aboutThread"] = thread_id
        if row.private:
            # What names a private thread stays with it, and so does the pack.
            payload[BESIDE_THREAD] = thread_id
        ids = {"evidence_id": evidence_id, "project_id": row.project_id}
        fact = edge.build_fact("evidence.exported", payload, trace_id, by=by, **ids)
        await edge.append(fact)
    return find_pack(edge, evidence_id)


def find_pack(edge: EdgeContext, evidence_id: str) -> EvidenceRow:
    """A pack; raises `Problem`."""
    row = edge.records.evidence.get(evidence_id)
    if row is None:
        raise Problem(404, "unknown_evidence", "no evidence pack has this id")
    return row


async def _store_pack(edge: EdgeContext, thread_id: str, *, with_blobs: bool) -> Ref:
    total = await _count_facts(edge.journal, thread_id)
    with (
        _translate_refusals(),
        TemporaryFile() as file,
        edge.exports.track(thread_id, total) as export,
    ):
        key = await run_disk_work(_load_key, edge.data / KEY_FILE)
        options = ExportOptions(key=key, blobs=edge.blobs, with_blobs=with_blobs)
        await export_journal(
            edge.journal, file, threads=[thread_id], options=options, progress=export.advance
        )
        file.seek(0)
        return await edge.blobs.put(_read_pieces(file), kind="evidence")


@contextmanager
def _translate_refusals() -> Generator[None]:
    """What evidence refuses, as a `Problem`."""
    try:
        yield
    except EvidenceError as error:
        raise Problem(409, error.code, str(error)) from error


async def _count_facts(journal: Journal, thread_id: str) -> int | None:
    """How many facts a thread has, while nothing was removed: the catalogue counts that as well."""
    stats = await journal.stats()
    row = await journal.thread(thread_id)
    return None if row is None or stats.head.seq != stats.facts else row.fact_count


def _load_key(path: Path) -> Ed25519PrivateKey:
    """The signing key of this Edge, made the first time; an empty file holds none to be lost."""
    if path.is_file() and path.stat().st_size == 0:
        path.unlink()
    return load_key(path) if os.path.lexists(path) else create_key(path)


async def _read_pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := await run_disk_work(file.read, _PIECE):
        yield piece


_OWN_NAME: Final = "this Edge"


class PackCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What a check of a pack found; `journal` is missing where the pack itself is not right."""

    report: PackReport
    journal: JournalMatch | None = None


async def check_pack(edge: EdgeContext, evidence_id: str) -> PackCheck:
    """Verify a pack, and compare it with the journal; raises `Problem`."""
    row = find_pack(edge, evidence_id)
    if row.export_ref is None:
        raise Problem(404, "content_unavailable", "the content of this pack was not kept")
    with _translate_refusals(), TemporaryDirectory(prefix="factwire-check-") as folder:
        path = Path(folder, "pack.zip")
        await _fetch_pack(edge, row.export_ref, path)
        return await _verify_pack(edge, path)


async def _verify_pack(edge: EdgeContext, path: Path) -> PackCheck:
    trust = await run_disk_work(_trust_own_key, edge.data / KEY_FILE)
    report = await run_disk_work(verify_pack, path, trust=trust)
    if not report.ok:
        return PackCheck(report=report)
    with open_pack(path) as pack:
        return PackCheck(report=report, journal=await match_journal(pack, edge.journal))


async def _fetch_pack(edge: EdgeContext, ref: str, path: Path) -> None:
    try:
        with path.open("wb") as file:
            async for piece in edge.blobs.get(ref):
                await run_disk_work(file.write, piece)
    except (InvalidRef, BlobMissing) as error:
        raise Problem(404, "unknown_blob", "the content of this pack was not kept") from error


def _trust_own_key(path: Path) -> TrustList:
    """This Edge's own key, under a name that says so."""
    return build_trust_list(
        {_OWN_NAME: encode_public_key(load_key(path))} if os.path.lexists(path) else {}
    )
