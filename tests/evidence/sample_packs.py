"""Packs to test with: a small run that has some of everything, and ways to tamper with a pack."""

import asyncio
import io
import zipfile
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from factwire.evidence import ExportOptions, WrittenPack, export_facts, export_journal
from factwire.evidence.pack_format import (
    MANIFEST,
    SIGNATURE,
    EntryHasher,
    Manifest,
    decode_manifest,
    encode_document,
)
from factwire.evidence.signatures import sign_manifest
from factwire.facts import Fact
from factwire.journal import Journal
from factwire.journal.blobs import MemoryBlobs
from factwire.journal.memory_journal import MemoryJournal
from tests.projection.fact_maker import FactMaker

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))

OUTPUT = b"line of output\n" * 400
DIFF = b"--- a/report.py\n+++ b/report.py\n@@ -1 +1 @@\n-old\n+new\n"
SECRET = b"the deploy key is AKIA" + b"IOSFODNN7EXAMPLQ, keep it\n"

Contents = dict[str, bytes]


def ref(content: bytes, kind: str = "output") -> str:
    return f"{kind}:sha256:{sha256(content).hexdigest()}"


CASE: list[dict[str, Any]] = [
    {"assert": "turn.outcome", "outcome": "completed"},
    {"assert": "answer.equals", "text": "It works now."},
    {"assert": "tool.called", "toolName": "shell", "args": {"command": "make test"}},
    {"assert": "approval.decision", "decision": "approved", "actionId": "a1"},
    {"assert": "file.changed", "path": "report.py"},
]


_VERIFIED = {"kind": "verification", "verdict": "passed"}
_REPLAY = {"kind": "replay", "assertions": CASE}


def run_facts(thread: str = "thread") -> list[Fact]:
    """A turn with a failed tool, an approval, a changed file, tests, a review and a case."""
    tell = FactMaker(thread=thread)
    turn = {"turnId": "u1", "runId": "r1"}
    return [
        tell("thread.started", title="Mend the report", projectId="p1"),
        tell("turn.submitted", prompt="Mend it", **turn),
        tell("turn.started", **turn),
        tell("context.resolved", message="two files", refIds=["ctx-1"], **turn),
        tell("routing.decided", decision="single", model="large", **turn),
        tell("model.requested", model="large", **turn),
        tell("model.delta", messageId="m1", delta="It works ", **turn),
        tell("tool.started", toolCallId="c1", toolName="read", **turn),
        tell("tool.failed", toolCallId="c1", failureCategory="not_found", **turn),
        tell("tool.started", toolCallId="c2", toolName="shell", **turn),
        tell("tool.args", toolCallId="c2", args={"command": "make test", "cwd": "."}, **turn),
        tell("permission.evaluated", decision="ask", toolCallId="c2", **turn),
        tell("action.required", actionId="a1", actionType="tool_approval", **turn),
        tell("action.resolved", actionId="a1", decision="approved", decidedBy="ann", **turn),
        tell("sandbox.applied", mode="bubblewrap", **turn),
        tell("tool.result", toolCallId="c2", outputRef=ref(OUTPUT), refIds=[ref(OUTPUT)], **turn),
        tell(
            "file.changed",
            path="report.py",
            change="changed",
            artifactId="art1",
            diffRef=ref(DIFF, "artifact"),
            **turn,
        ),
        tell("test.started", testRunId="t1", **turn),
        tell("test.completed", testRunId="t1", result="passed", **turn),
        tell("model.completed", messageId="m1", text="It works now.", **turn),
        tell("cost.recorded", inputTokens=120, outputTokens=30, totalCostUsd=0.5, **turn),
        tell("turn.completed", **turn),
        tell("evidence.changed", evidenceId="e1", payload=_VERIFIED, **turn),
        tell("review.requested", reviewId="v1", evidenceRefs=["e1"], **turn),
        tell("review.verdict", reviewId="v1", evidenceRefs=["e1"], verdict="approved", **turn),
        tell("evidence.changed", evidenceId="case-1", payload=_REPLAY, **turn),
    ]


def blobs(*contents: bytes) -> MemoryBlobs:
    store = MemoryBlobs()

    async def put() -> None:
        for content in contents:
            await store.put(content, kind="output")

    asyncio.run(put())
    return store


def pack_facts(path: Path, facts: Iterable[Fact], **options: Any) -> WrittenPack:
    """A pack of facts that are in no journal."""
    with path.open("wb") as target:
        return asyncio.run(export_facts(facts, target, options=ExportOptions(**options)))


def pack_journal(path: Path, facts: Iterable[Fact] | None = None, **options: Any) -> WrittenPack:
    """A pack of a journal in memory, signed unless `key` says otherwise, with its blobs."""
    values = {
        "key": KEY,
        "blobs": blobs(OUTPUT, DIFF),
        "with_blobs": True,
        **options,
    }

    async def export() -> WrittenPack:
        async with new_journal() as journal:
            await fill(journal, run_facts() if facts is None else facts)
            return await export_to(path, journal, **values)

    return asyncio.run(export())


def new_journal() -> MemoryJournal:
    journal = MemoryJournal()
    # An epoch is random; a pack is compared byte for byte.
    journal._epoch = "0123456789abcdef"
    return journal


async def fill(journal: Journal, facts: Iterable[Fact], batch: int = 4) -> None:
    values = list(facts)
    for first in range(0, len(values), batch):
        await journal.append(values[first : first + batch])


async def export_to(path: Path, journal: Journal, **options: Any) -> WrittenPack:
    threads = options.pop("threads", ["thread"])
    until = options.pop("until", None)
    with path.open("wb") as target:
        return await export_journal(
            journal, target, threads=threads, until=until, options=ExportOptions(**options)
        )


def contents(path: Path) -> Contents:
    """Every entry, by name, in the order of the archive."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def repack(path: Path, entries: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    """The same contents in an archive of another make."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    path.write_bytes(data.getvalue())
    return path


def manifest_of(entries: Contents) -> Manifest:
    return decode_manifest(entries[MANIFEST])


def relist_entries(entries: Contents, **changes: Any) -> Contents:
    """The entries under a manifest that lists them as they are now."""
    listed = [name for name in entries if name not in (MANIFEST, SIGNATURE)]
    made = tuple(_entry(name, entries[name]) for name in listed)
    new = msgspec.structs.replace(manifest_of(entries), entries=made, **changes)
    return {**entries, MANIFEST: encode_document(new)}


def resign_entries(entries: Contents, key: Ed25519PrivateKey = KEY) -> Contents:
    """The entries with a signature of the manifest as it is now."""
    return {**entries, SIGNATURE: encode_document(sign_manifest(entries[MANIFEST], key))}


def _entry(name: str, content: bytes) -> Any:
    sums = EntryHasher()
    sums.update(content)
    return sums.entry(name)


def zip_content(content: bytes) -> bytes:
    """A good archive that is no pack."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("note.txt", content)
    return target.getvalue()
