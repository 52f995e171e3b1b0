"""Every number that bounds a tool, each with its reason."""

from typing import Final

FILE_BYTES: Final = 1024 * 1024
"""Bytes of a file that is read, written or patched; a larger one is not text for a model."""

INLINE_CHARACTERS: Final = 8_000
"""Characters of a result that are kept in its fact; a longer one is stored behind a ref."""

DIFF_LINES: Final = 4_000
"""Lines of a file up to which its diff is minimal; a longer one is shown as replaced."""

PATCH_EDITS: Final = 100
"""Edits of one patch: a person cannot review more at a glance."""

SEARCH_FILES: Final = 10_000
"""Files that one search opens."""

SEARCH_BYTES: Final = 64 * 1024 * 1024
"""Bytes that one search reads."""

SEARCH_MATCHES: Final = 200
"""Lines that one search returns."""

MATCH_CHARACTERS: Final = 300
"""Characters of a line that a search returns."""

WATCHED_FILES: Final = 5_000
"""Files and folders of a workspace that are compared before and after a command; in a larger one,
the changes of a command are not recorded."""

WATCHED_BYTES: Final = 2 * 1024 * 1024
"""Bytes of files that are kept in memory while a command runs, for the diffs of its changes."""

WATCHED_FILE_BYTES: Final = 64 * 1024
"""Bytes of a file that is kept for a diff; a larger one is recorded without its diff."""

CHANGED_FILES: Final = 100
"""Changed files of one command that are recorded individually; the others are only counted."""
