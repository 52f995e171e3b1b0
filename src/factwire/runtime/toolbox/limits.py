"""Every number that bounds a tool, each with its reason.

Every number that bounds an MCP server, each with its reason.
"""

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


MESSAGE_BYTES: Final = 32 * 1024 * 1024
"""Bytes of one message of a server; a server that sends more is stopped before it fills the memory.
"""

TOOLS: Final = 128
"""Tools of one server that are offered; endpoints refuse longer lists."""

PAGES: Final = 50
"""Pages of a list of tools that are read, so that an endless list ends."""

NAME_CHARACTERS: Final = 64
"""Characters of a tool's name, which is the limit of model endpoints."""

DESCRIPTION_CHARACTERS: Final = 4_000
"""Characters of a tool's description that are sent to a model."""

SCHEMA_CHARACTERS: Final = 32_000
"""Characters of a tool's schema; a tool with a longer one is not offered."""

MESSAGE_CHARACTERS: Final = 500
"""Characters of a server's own text in an error, a warning or a progress report."""

STDERR_CHARACTERS: Final = 2_000
"""Characters at the end of a server's stderr that explain why it did not start."""

PROGRESS_FACTS: Final = 200
"""Progress reports that are recorded for one call; nobody follows more."""

WARNINGS: Final = 50
"""Warnings of one server that are recorded in one turn."""

QUESTION_CHARACTERS: Final = 16_000
"""Characters of a question with its form; nobody fills in a longer one."""

QUESTIONS: Final = 10
"""Questions that a server may ask during one call."""

CONTENTS: Final = 100
"""Parts of one result that are processed; the others are only counted."""

CONTENT_BYTES: Final = 16 * 1024 * 1024
"""Bytes of one image, audio clip or file in a result that are kept."""

DATA_DEPTH: Final = 32
"""Levels of structured content that are kept in a fact; deeper content is stored behind a ref."""

CONNECT_SECONDS: Final = 10.0
"""How long it may take to reach a server by HTTP."""

GRACE_SECONDS: Final = 2.0
"""How long a server may take to end by itself once its input is closed."""

CLOSE_SECONDS: Final = 20.0
"""How long closing a connection may take in total, before it is cut."""
