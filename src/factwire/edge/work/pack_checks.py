"""Checking a pack that this Edge made: its bytes, its signature, and whether the journal agrees.

Whoever looks at a page cannot run `factwire evidence verify`, so the Edge does, on the very bytes
that it hands out. A check by the one who made the pack convinces nobody else: for that there is the
file, which anybody verifies offline.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from factwire.edge.machine import Machine
from factwire.edge.problems import Problem
from factwire.edge.work.evidence import KEY_FILE, find
from factwire.evidence import (
    EvidenceError,
    JournalMatch,
    PackReport,
    TrustList,
    load_key,
    match_journal,
    open_pack,
    public_text,
    trusting,
    verify_pack,
)
from factwire.facts import InvalidRef
from factwire.journal.blobs import BlobMissing
from factwire.journal.blobs.disk import on_disk

_OWN_NAME: Final = "this Edge"


class PackCheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What a check of a pack found; `journal` is missing where the pack itself is not right."""

    report: PackReport
    journal: JournalMatch | None = None


async def check(machine: Machine, evidence_id: str) -> PackCheck:
    """Verify a pack, and compare it with the journal; raises `Problem`."""
    row = find(machine, evidence_id)
    if row.export_ref is None:
        raise Problem(404, "content_unavailable", "nothing is kept of this pack")
    with TemporaryDirectory(prefix="factwire-check-") as folder:
        path = Path(folder, "pack.zip")
        await _fetched(machine, row.export_ref, path)
        try:
            return await _checked(machine, path)
        except EvidenceError as error:
            raise Problem(409, error.code, str(error)) from error


async def _checked(machine: Machine, path: Path) -> PackCheck:
    trust = await on_disk(_trust, machine.data / KEY_FILE)
    report = await on_disk(verify_pack, path, trust=trust)
    if not report.ok:
        return PackCheck(report=report)
    with open_pack(path) as pack:
        return PackCheck(report=report, journal=await match_journal(pack, machine.journal))


async def _fetched(machine: Machine, ref: str, path: Path) -> None:
    try:
        with path.open("wb") as file:
            async for piece in machine.blobs.get(ref):
                await on_disk(file.write, piece)
    except (InvalidRef, BlobMissing) as error:
        raise Problem(404, "unknown_blob", "nothing is kept under the ref of this pack") from error


def _trust(path: Path) -> TrustList:
    """This Edge's own key, under a name that says so."""
    return trusting({_OWN_NAME: public_text(load_key(path))} if os.path.lexists(path) else {})
