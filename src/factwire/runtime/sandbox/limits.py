"""Every number that bounds a sandbox or a look at a workspace, each with its reason."""

from typing import Final

PROCESSES: Final = 512
"""Processes inside at once: enough for a parallel build, too few to hurt the machine."""

MEMORY_BYTES: Final = 4 * 1024**3
"""Bytes of memory; of all processes together where the system can count that, else of each."""

FILE_BYTES: Final = 2 * 1024**3
"""Bytes of one file."""

OPEN_FILES: Final = 4_096
"""Files that one process may have open."""

SCRATCH_BYTES: Final = 512 * 1024**2
"""Bytes of each private scratch folder, which live in memory."""

DENIED_PATHS: Final = 2_000
"""Files and folders that rules hide from one program; bubblewrap takes 9,000 arguments."""

DENIED_ENTRIES: Final = 500_000
"""Entries of folders that are looked through for what rules deny, before a program starts."""

PROBE_SECONDS: Final = 20.0
"""Seconds that a trial of the sandbox may take on a busy machine."""

GIT_SECONDS: Final = 60.0
"""Seconds that one git command may take on a workspace."""

LISTING_BYTES: Final = 32 * 1024**2
"""Bytes of the list of a workspace's files; a longer one is not processed."""

DIFF_BYTES: Final = 1024 * 1024
"""Bytes of diff text, all files together; files beyond it are listed without their text."""

BIG_FILE_BYTES: Final = 4 * 1024**2
"""Bytes from which a file counts as binary, so that no diff of it is built in memory."""

HASHED_BYTES: Final = 1024**3
"""Bytes of big files that a diff reads to see whether they changed; a second or two."""

REF_DEPTH: Final = 5
"""Times that a git ref may point to another one."""
