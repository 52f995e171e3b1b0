"""Every number that bounds a tool, each with its reason."""

from typing import Final

FILE_BYTES: Final = 1024 * 1024
"""Bytes of a file that is read, written or patched; more is no text that a model works on."""

INLINE_CHARACTERS: Final = 8_000
"""Characters of a result that stand in its fact; more is behind a ref."""

DIFF_LINES: Final = 4_000
"""Lines of a file up to which its diff is minimal; a longer one is shown as replaced."""

PATCH_EDITS: Final = 100
"""Edits of one patch: nobody checks more at a glance."""

SEARCH_FILES: Final = 10_000
"""Files that one search opens."""

SEARCH_BYTES: Final = 64 * 1024 * 1024
"""Bytes that one search reads."""

SEARCH_MATCHES: Final = 200
"""Lines that one search tells."""

MATCH_CHARACTERS: Final = 300
"""Characters of a line that a search tells."""

WATCHED_FILES: Final = 5_000
"""Files and folders of a workspace that are looked at around a command; in a bigger one, what a
command changed is not told."""

WATCHED_BYTES: Final = 2 * 1024 * 1024
"""Bytes of files that are kept in memory while a command runs, for the diffs of what it changes."""

WATCHED_FILE_BYTES: Final = 64 * 1024
"""Bytes of a file that is kept so; a bigger one is told without its diff."""

CHANGED_FILES: Final = 100
"""Changed files of one command that are told one by one; of the others, only how many there are."""
