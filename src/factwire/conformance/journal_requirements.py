"""What `factwire.journal`, evidence packs and comparisons promise, and their commands."""

from typing import Final

from factwire.conformance.suite_requirements import Requirement, requirements

_JOURNAL: Final = requirements(
    "docs/journal.md",
    {
        "journal.append.places": "Facts get places without gaps, from 1 on.",
        "journal.append.repeat": "A fact that comes again answers with its first place.",
        "journal.append.conflict": "Another body under a known id refuses the whole batch.",
        "journal.append.sequence": "A thread's sequence starts anywhere and rises by one, or is "
        "assigned.",
        "journal.append.expected": "A batch whose writer expected another state is refused.",
        "journal.append.group": "A refusal hurts no other batch of the same commit.",
        "journal.append.answered": "What is durable is answered, whatever becomes of the commit "
        "after it.",
        "journal.read.bytes": "What is read is what was stored, byte for byte.",
        "journal.read.ahead": "A long read is exact however far ahead it looks, which is bounded "
        "for all readers together.",
        "journal.read.resume": "Reading goes on exactly after any cursor or fact.",
        "journal.read.filter": "Every id and every class prefix finds its facts by index.",
        "journal.cursor.malformed": "Text that is no cursor is refused by name.",
        "journal.cursor.epoch": "A cursor of another epoch is refused by name.",
        "journal.cursor.future": "A cursor past the head is refused by name.",
        "journal.follow.exact": "Following misses nothing and repeats nothing, replay to live.",
        "journal.restart": "After a restart everything is there again.",
        "journal.threads.list": "Threads are listed by last activity, in pages.",
        "journal.threads.status": "A thread's status follows from classes alone.",
        "journal.snapshot.newest": "The newest snapshot at or before a place is found.",
        "journal.retain.floor": "Cursors from before what was kept expire.",
        "journal.retain.ids": "The ids of removed facts stay taken.",
        "journal.retain.holds": "What a follower or an open action needs is not removed.",
        "journal.retain.threads": "Facts of single threads are removed with their snapshots.",
        "journal.compact.increments": "Increments that a final fact replaces may go.",
        "journal.stats": "A journal tells its size and how far its followers are behind.",
        "journal.verify": "A walk over the chain names the first bad place.",
        "journal.verify.snapshots": "A snapshot that does not stand on the chain is named.",
        "journal.restore.same": "A restored journal has the seqs, gaps, threads and removed ids of "
        "the one it was made from, and a chain that verifies.",
        "journal.restore.ids": "Ids that were removed before a restore stay taken.",
        "journal.restore.goes_on": "A restored journal is appended to and removed from as any.",
        "journal.restore.refused": "Only an empty journal is restored into, from what can have "
        "been one.",
        "journal.epoch": "A restored copy gets an epoch of its own.",
    },
)

_FAULTS: Final = (
    *requirements("guarantees R1", {"journal.kill": "No acknowledged fact is lost by a kill."}),
    *requirements("guarantees R2", {"journal.power": "Nor by a loss of power."}),
    *requirements(
        "guarantees R3",
        {"journal.disk": "A full or failing disk refuses clearly, and passes without a restart."},
    ),
    *requirements(
        "guarantees R3",
        {
            "journal.files.whole": "A file is written whole or not at all; only regular files are "
            "replaced."
        },
    ),
    *requirements("guarantees R4", {"journal.model": "Any history equals that of the model."}),
    *requirements("guarantees R10", {"journal.clock": "Jumps of the clock change no order."}),
    *requirements(
        "guarantees R15",
        {
            "journal.postgres.crash": "PostgreSQL may die under load and lose nothing.",
            "journal.nats.killed": "So may a NATS server.",
        },
    ),
    *requirements(
        "guarantees R12",
        {"journal.damage": "Changed bytes are found, located and never served as good."},
    ),
)

_SQLITE: Final = requirements(
    "docs/journal.md",
    {
        "journal.sqlite.busy": "A second writer is refused, with the name of the first.",
        "journal.sqlite.private": "A new journal can be read and written by its owner alone.",
        "journal.sqlite.read_only": "A reader in another process follows beside the writer.",
        "journal.sqlite.migrations": "A migration happens whole or not at all.",
        "journal.sqlite.upkeep": "Facts that were packed away read the same as before.",
        "journal.sqlite.cancelled": "A caller that gives up waiting stops neither the writer nor "
        "the upkeep.",
    },
)

_POSTGRES: Final = requirements(
    "docs/journal.md",
    {
        "journal.postgres.group_commit": "Concurrent appends share commits and keep their order.",
        "journal.postgres.shared": "Several processes append to one journal without gap or loss.",
        "journal.postgres.named": "Journals of one database are separate.",
        "journal.postgres.notified": "A follower in another process is woken by a commit.",
        "journal.postgres.polled": "A notification that got lost loses no fact.",
        "journal.postgres.holds": "Removals spare what readers in other processes need.",
        "journal.postgres.for_ever": "An id stays taken after retention and restart.",
        "journal.postgres.sealed": "Joined chunks keep the hash of every commit.",
        "journal.postgres.lineage": "Another server or timeline gets an epoch of its own.",
        "journal.postgres.taken_back": "So does a server that lost a commit somebody had seen.",
        "journal.postgres.durable": "A server that does not sync is refused.",
        "journal.postgres.migrated": "Migrations run once, also when several processes open.",
        "journal.postgres.damage": "Changed bytes are named and never served.",
        "journal.postgres.url": "Options that make no sense are refused, without the password.",
        "journal.postgres.unavailable": "Without a server an append waits for a bounded time.",
        "journal.postgres.doubt": "A commit whose answer got lost is found, not repeated.",
    },
)

_NATS: Final = requirements(
    "docs/journal.md",
    {
        "journal.nats.writers": "Several processes append to one journal without gaps.",
        "journal.nats.turns": "A slow writer gets its turn beside a busy one.",
        "journal.nats.level": "A call sees what others wrote before it.",
        "journal.nats.follow": "What others write wakes a follower.",
        "journal.nats.lost-ack": "A commit whose ack got lost is written once.",
        "journal.nats.large": "A batch of any size is written whole or refused.",
        "journal.nats.full": "A full server refuses clearly, reads go on, and it passes.",
        "journal.nats.checkpoint": "Opening reads only the tail; a damaged checkpoint is harmless.",
        "journal.nats.epoch": "An older copy gets an epoch of its own.",
        "journal.nats.damage": "Messages that were lost or changed are named and never served.",
        "journal.nats.ack": "The journal says what an ack means on its server.",
        "journal.nats.url": "Options that make no sense are refused, without the password.",
        "journal.nats.unavailable": "Without a server an append waits for a bounded time.",
        "journal.nats.ids": "Ids take a few bytes each, and collisions are distinguished.",
        "journal.nats.removal": "Retention and compaction leave what they leave in memory.",
        "journal.nats.merged": "Compaction merges small chunks, whose messages then go.",
        "journal.nats.holds": "Removals spare what readers in other processes need.",
        "journal.nats.replicas": "With three replicas, one may go.",
    },
)

_BLOBS: Final = requirements(
    "docs/blobs.md",
    {
        "journal.blobs.roundtrip": "What was put into a store is what is read from it.",
        "journal.blobs.range": "A range of a blob is that slice of its content.",
        "journal.blobs.dedupe": "Equal content is stored once, also when two put it at a time.",
        "journal.blobs.missing": "A blob that is not there has an error of its own; refs are never "
        "paths.",
        "journal.blobs.whole": "No part of a blob is visible after a kill, a failure or a cancel.",
        "journal.blobs.durable": "A put returns after file and folders have been synced.",
        "journal.blobs.stream": "Content of any size is put and read in constant memory.",
        "journal.blobs.full": "A full disk refuses a put, leaves nothing behind and passes.",
        "journal.blobs.corrupt": "Changed or cut content is detected and never served.",
        "journal.blobs.heal": "Storing the content again repairs a damaged blob.",
        "journal.blobs.garbage": "Referenced, young and concurrently put blobs are never removed.",
        "journal.blobs.references": "Every ref that a stored fact holds is found.",
    },
)

_COMMAND_LINE: Final = requirements(
    "docs/journal.md",
    {
        "cli.journal.info": "A journal tells what it holds.",
        "cli.journal.cat": "Stored facts are printed byte for byte, filtered by index.",
        "cli.journal.tail": "The newest facts come first, then the live ones, until Ctrl-C.",
        "cli.journal.tail.safe": "Text in a fact cannot steer the terminal that shows it.",
        "cli.journal.verify": "The first bad place is named, and what before it is intact.",
        "cli.journal.export.lossless": "An export holds the same facts, byte for byte.",
        "cli.journal.import.refused": "A damaged export is refused by line; nothing is written.",
        "cli.journal.import.existing": "An import takes a file that is there and empty, can be "
        "continued after a kill, and refuses a database of another program.",
        "cli.journal.import.whole": "A new journal appears only when its import is whole; a "
        "killed one can be repeated.",
        "cli.journal.import.append": "Importing again into a journal changes nothing.",
        "cli.journal.import.renumber": "Facts get new places only if the command asks for it.",
        "cli.journal.compact": "Compacting does what its dry run said.",
        "cli.journal.backends": "The verbs do the same on every backend.",
        "cli.journal.errors": "A failure is one line with a stable code and without a password.",
    },
)

JOURNAL_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *_JOURNAL,
    *_FAULTS,
    *_SQLITE,
    *_POSTGRES,
    *_NATS,
    *_BLOBS,
    *_COMMAND_LINE,
)


_PACKS: Final = requirements(
    "facts 4",
    {
        "evidence.pack.facts": "A pack gives back its facts, their stored bytes and their seqs.",
        "evidence.bundle": "Several packs in one file verify as one; what was changed in any is "
        "found and named, and no bomb hides in a pack in it.",
        "evidence.pack.summary": "The summary says what the run came to, from facts alone.",
        "evidence.pack.read-models": "Timeline and read model are those of the projection.",
        "evidence.pack.correlation": "Every correlation id is in a pack, with its first fact.",
        "evidence.pack.anchors": "A journal's pack is anchored in the chain at its own commits.",
        "evidence.gaps": "A gap is named where its signal applies and is missing, and only there.",
        "evidence.blobs": "Blobs are included on request; one that is unavailable is a gap.",
        "evidence.blobs.secrets": "A blob that holds a secret is left out, and the pack notes it.",
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
        "evidence.container.changed": "A change around the contents is recognised and located.",
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

_EVIDENCE_COMMANDS: Final = requirements(
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
    *_EVIDENCE_COMMANDS,
)


_RUNS: Final = requirements(
    "design.md; facts.md §4",
    {
        "comparison.volatile": "Ids and times are no difference, wherever they stand.",
        "comparison.planted": "Every single change is found, and nothing else.",
        "comparison.turns": "A turn that is new, missing or reworded shifts no other.",
        "comparison.texts": "A long text is shown by the lines that differ.",
        "comparison.mirrored": "Exchanging the sides exchanges the differences and nothing else.",
        "comparison.order": "Repeats, order of arrival and other threads change nothing.",
        "comparison.figures": "Time, tokens and cost are shown; time decides nothing.",
        "comparison.narrowed": "A comparison is narrowed to aspects or to a turn.",
        "comparison.bounded": "The work grows with the runs, and a diff holds bounded text.",
        "comparison.contract": "A comparison has a schema, and is read back as it was written.",
    },
)

_TRIALS: Final = requirements(
    "facts.md §2 Runtime classes",
    {
        "comparison.trials.view": "A trial has dataset, task, configuration, rewards, refs, "
        "time and cost as facts say.",
        "comparison.trials.cost": "Cost belongs to the trial that is named or alone open.",
        "comparison.trials.paired": "Trials are paired by task; flips and missing ones are named.",
        "comparison.trials.means": "Means are over recorded rewards, with their number.",
        "runtime.recording.trial": "A trial is recorded as started, rewarded and ended once.",
    },
)

_COMPARISON_COMMANDS: Final = requirements(
    "design.md; facts.md §4",
    {
        "cli.diff.view": "Which turns differ is seen at a glance, then how.",
        "cli.diff.json": "With --json the whole comparison is printed, and nothing else.",
        "cli.diff.exit-codes": "The same is 0, different is 1, what cannot be compared is 2.",
        "cli.diff.sides": "A side is a file, a pack, standard input, a journal or a thread of it.",
        "cli.diff.filters": "Aspects and turns are chosen; what there is not is refused.",
        "cli.diff.harmless": "Nothing in a fact steers the terminal.",
        "cli.benchmark.trials": "Trials of all threads are listed, or of one.",
        "cli.benchmark.compare": "Two benchmarks are compared for people and as JSON.",
        "cli.benchmark.record": "The result is recorded as evidence where that is asked for.",
    },
)

COMPARISON_REQUIREMENTS: Final[tuple[Requirement, ...]] = (*_RUNS, *_TRIALS, *_COMPARISON_COMMANDS)
