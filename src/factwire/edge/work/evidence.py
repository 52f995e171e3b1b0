"""Evidence: packs of a thread, signed with this Edge's key, kept as blobs and named by a fact."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from factwire.edge.machine import Machine
from factwire.edge.problems import Problem
from factwire.edge.records.rows import EvidenceRow
from factwire.evidence import EvidenceError, Options, create_key, export_journal, load_key
from factwire.facts import Ref
from factwire.journal import Journal
from factwire.journal.blobs.disk import on_disk

KEY_FILE: Final = "evidence-key.pem"
_PIECE: Final = 256 * 1024


async def export(
    machine: Machine, evidence_id: str, thread_id: str, *, with_blobs: bool, trace_id: str
) -> EvidenceRow:
    """Make a pack of a thread; one with this id already is the one that was asked for before."""
    known = machine.records.evidence.get(evidence_id)
    if known is not None:
        return known
    row = machine.thread(thread_id)
    ref = await _packed(machine, thread_id, with_blobs=with_blobs)
    said = {
        "evidenceId": evidence_id,
        "kind": "audit",
        "status": "exported",
        "title": f"Evidence of {row.title or thread_id}",
        "exportRef": ref.ref,
    }
    if row.runtime_id == machine.mint.runtime_id:
        await machine.write(
            thread_id, ("evidence.exported", said), trace_id=trace_id, evidence_id=evidence_id
        )
    else:
        said["aboutThread"] = thread_id
        fact = machine.fact("evidence.exported", said, trace_id, evidence_id=evidence_id)
        await machine.append(fact)
    return find(machine, evidence_id)


def find(machine: Machine, evidence_id: str) -> EvidenceRow:
    """A pack; raises `Problem`."""
    row = machine.records.evidence.get(evidence_id)
    if row is None:
        raise Problem(404, "unknown_evidence", "no evidence pack has this id")
    return row


async def _packed(machine: Machine, thread_id: str, *, with_blobs: bool) -> Ref:
    key = await on_disk(_key, machine.data / KEY_FILE)
    options = Options(key=key, blobs=machine.blobs, with_blobs=with_blobs)
    total = await _total(machine.journal, thread_id)
    with TemporaryFile() as file, machine.exports.following(thread_id, total) as export:
        try:
            await export_journal(
                machine.journal, file, threads=[thread_id], options=options, progress=export.advance
            )
        except EvidenceError as error:
            raise Problem(409, error.code, str(error)) from error
        file.seek(0)
        return await machine.blobs.put(_pieces(file), kind="evidence")


async def _total(journal: Journal, thread_id: str) -> int | None:
    """How many facts a thread has, while nothing was removed: the catalogue counts that as well."""
    stats = await journal.stats()
    row = await journal.thread(thread_id)
    return None if row is None or stats.head.seq != stats.facts else row.fact_count


def _key(path: Path) -> Ed25519PrivateKey:
    return load_key(path) if os.path.lexists(path) else create_key(path)


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := await on_disk(file.read, _PIECE):
        yield piece
