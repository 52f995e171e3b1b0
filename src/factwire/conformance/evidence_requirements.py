"""What evidence packs promise."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

_PACKS: Final = requirements(
    "facts 4",
    {
        "evidence.pack.facts": "A pack gives back its facts, their stored bytes and their seqs.",
        "evidence.pack.summary": "The summary says what the run came to, from facts alone.",
        "evidence.pack.read-models": "Timeline and read model are those of the projection.",
        "evidence.pack.correlation": "Every correlation id is in a pack, with its first fact.",
        "evidence.pack.anchors": "A journal's pack is anchored in the chain at its own commits.",
        "evidence.gaps": "A gap is named where its signal applies and is missing, and only there.",
        "evidence.blobs": "Blobs go in on request; one that cannot be had is a gap.",
        "evidence.blobs.secrets": "A blob that holds a secret stays out, and the pack says so.",
        "evidence.runs": "A long history is summed up as a short one is, run by run.",
        "evidence.schemas": "The documents of a pack have JSON Schemas and TypeScript types.",
    },
)

_EXPORT: Final = requirements(
    "guarantees, promises 9 and 10",
    {
        "evidence.reproducible": "The same facts and options give the same bytes, anywhere.",
        "evidence.export.selection": "Threads, a project, a whole journal or a file are exported.",
        "evidence.export.until": "An export can end at a cursor.",
        "evidence.export.progress": "An export tells how many facts it has written.",
        "evidence.export.redaction": "Facts that no journal has redacted are redacted on the way.",
        "evidence.export.refused": "Nothing, damage and removal meanwhile are refused by code.",
        "evidence.constant-memory": "A longer history does not take more memory.",
        "evidence.container.zip64": "Every entry may grow past four gibibytes.",
        "evidence.container.repacked": "A pack that another tool packed anew still verifies.",
        "evidence.container.changed": "A change around the contents is told apart and located.",
    },
)

_PROOF: Final = requirements(
    "guarantees R12, promise 10",
    {
        "evidence.verify.intact": "An untouched pack verifies and names its signer.",
        "evidence.verify.tampering": "Each tampering has its verdict; nothing changed is served.",
        "evidence.verify.range": "The first changed, missing or added range of bytes is named.",
        "evidence.verify.flips": "Every flipped bit and every truncation is found.",
        "evidence.hostile": "Archives built to do harm are refused with stable codes.",
        "evidence.match": "A pack is compared with its journal, in facts and in chain.",
        "evidence.match.compacted": "A journal vouches for facts that it has since removed.",
        "evidence.match.copy": "A copied journal matches in facts, and its chain is not compared.",
        "evidence.match.differs": "The first fact and the place where histories part are named.",
        "evidence.chain-points": "A journal tells the hash of its chain at any commit it keeps.",
        "evidence.keys": "A signing key is its owner's alone and is never written over.",
        "evidence.trust": "Only a reader's own list says whose key it is.",
    },
)

_CASES: Final = requirements(
    "facts 4, seed 001",
    {
        "evidence.check": "Each assertion passes or fails, with the fact that shows it.",
        "evidence.cases": "Cases come from facts, from the export and from files.",
        "evidence.cases.malformed": "What is no assertion is refused with a stable code.",
    },
)

_COMMANDS: Final = requirements(
    "command line",
    {
        "evidence.cli.export": "A history is exported, signed unless that is declined.",
        "evidence.cli.verify": "Verify names the range, the signer and how the journal stands.",
        "evidence.cli.check": "Check fails with the first assertion that does not hold.",
        "evidence.cli.key": "A key is made once and shown ever after.",
        "evidence.cli.errors": "What is no pack is refused in one line, by exit code.",
        "evidence.cli.recordings": "A pack is projected and played like the facts in it.",
    },
)

EVIDENCE_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *_PACKS,
    *_EXPORT,
    *_PROOF,
    *_CASES,
    *_COMMANDS,
)
