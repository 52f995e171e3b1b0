"""Every number that bounds a pack or a comparison, each with its reason."""

from typing import Final

BLOCK_BYTES: Final = 16 * 1024
"""Bytes of an entry under one hash: how exactly a change is located. A hash costs 0.4 % of them."""

MANIFEST_BYTES: Final = 64 * 1024 * 1024
"""The longest manifest: at one hash a block it describes 15 GiB of contents."""

DOCUMENT_BYTES: Final = 64 * 1024 * 1024
"""The longest summary or case; their lists are bounded, so that no honest one comes near."""

SIGNATURE_BYTES: Final = 4 * 1024
"""The longest signature document; a real one has some 400 bytes."""

ENTRIES: Final = 1_000_000
"""Entries of an archive; each costs a reader some 500 bytes of memory before it can look inside."""

DIRECTORY_BYTES: Final = 256 * 1024 * 1024
"""The longest directory of an archive, which is read at once; that many entries with the names of
blobs take some 150 MB."""

ENTRY_BYTES: Final = 64 * 1024 * 1024 * 1024
"""The longest entry; export larger journals by thread."""

RATIO: Final = 1_000
"""Contents against bytes, of an entry and of the archive; repeated text deltas reach 100, and
deflate can do no more than 1,032, so that what claims more is a bomb."""

UNSUSPICIOUS_BYTES: Final = 64 * 1024 * 1024
"""Contents up to this size are not considered a bomb, however small the archive is."""

BLOB_BYTES: Final = 4 * 1024 * 1024 * 1024
"""The longest blob that is put into a pack; a longer one is listed as left out."""

SCANNED_BYTES: Final = 1024 * 1024
"""Bytes of a blob that are searched for secrets at once."""

SCANNED_OVERLAP: Final = 64 * 1024
"""Bytes that two searched pieces share, so that no secret hides on the border between them."""

LISTED: Final = 200
"""Rows of a section that the summary repeats; the section's own entry has them all."""

LISTED_IDS: Final = 50
"""Ids of one name that the summary repeats."""

BUNDLE_PACKS: Final = 1_000
"""Packs that one archive of packs holds; a team run has no more devices than that."""

ANCHORS: Final = 256
"""Points of the journal's chain in a pack. The last one covers all before it; the others show where
two histories diverge."""

RUN_FACTS: Final = 2_000
"""Facts after which the projection behind the timeline is restarted, at the next turn that starts
with nothing open. Memory then depends on the longest turn, not on the thread."""

LONGEST_RUN_FACTS: Final = 50_000
"""Facts after which it is restarted at the next turn, whatever is open."""

LIVE_THREADS: Final = 64
"""Threads that are projected at the same time; beyond that, the one that was idle longest is
closed, and restarted when it continues."""

KNOWN_IDS: Final = 20_000
"""Correlation ids that are known without asking the scratch file."""

PROGRESS_FACTS: Final = 1_000
"""Facts between two calls of a progress callback."""

ASSERTIONS: Final = 10_000
"""Assertions that one check evaluates; each looks at every fact."""

POINTER_CHARACTERS: Final = 4_096
"""The longest JSON Pointer of an assertion."""

NAME_CHARACTERS: Final = 80
"""A name on a trust list is printed on one line with a fingerprint."""


ALIGNED_CELLS: Final = 10_000
"""Pairs that are weighed against each other in one stretch between two things that are surely the
same; a longer stretch is paired in order, so that the work grows with the length of the runs.
"""

ALIGNED_LEVELS: Final = 6
"""How often a stretch is divided by what is unique in it; past that it is paired in order."""

COMPARED_WORDS: Final = 64
"""Words of an item that are compared to determine how similar it is to another."""

SIMILAR: Final = 0.3
"""The share of common words from which two prompts count as reworded versions of one."""

INLINE_CHARACTERS: Final = 160
"""Characters of a value that is shown in full on both sides; a longer text is shown as a diff."""

CONTEXT_LINES: Final = 2
"""Lines that are the same, shown around those that are not."""

DIFF_LINES: Final = 400
"""Lines of one text's diff that a comparison holds; the rest is counted."""

VALUE_CHARACTERS: Final = 2_000
"""Characters of one line or value that a comparison holds."""

FLAT_DEPTH: Final = 6
"""How deep arguments are taken apart into fields; what lies deeper is compared as a whole."""
