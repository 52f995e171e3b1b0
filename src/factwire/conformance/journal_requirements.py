"""What `factwire.journal` and its command line promise."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

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
        "journal.blobs.heal": "Putting the content again mends a damaged blob.",
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
        "cli.journal.import.append": "Importing again into a journal changes nothing.",
        "cli.journal.import.renumber": "Facts get new places only where the command says so.",
        "cli.journal.compact": "Compacting does what its dry run said.",
        "cli.journal.backends": "The verbs do the same on every backend.",
        "cli.journal.errors": "A failure is one line with a stable code and without a password.",
    },
)

JOURNAL_REQUIREMENTS: Final[tuple[Requirement, ...]] = (*_BLOBS, *_COMMAND_LINE)
