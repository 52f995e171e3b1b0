"""Every number that bounds an MCP server, each with its reason."""

from typing import Final

MESSAGE_BYTES: Final = 32 * 1024 * 1024
"""Bytes of one message of a server; one that sends more is ended before it fills the memory."""

TOOLS: Final = 128
"""Tools of one server that are offered; endpoints refuse longer lists."""

PAGES: Final = 50
"""Pages of a list of tools that are read, so that a list without end comes to one."""

NAME_CHARACTERS: Final = 64
"""Characters of a tool's name, which is what endpoints take."""

DESCRIPTION_CHARACTERS: Final = 4_000
"""Characters of a tool's description that a model is told."""

SCHEMA_CHARACTERS: Final = 32_000
"""Characters of a tool's schema; a tool with a longer one is not offered."""

MESSAGE_CHARACTERS: Final = 500
"""Characters of a server's own words in an error, a warning or a step of progress."""

STDERR_CHARACTERS: Final = 2_000
"""Characters at the end of what a server writes to stderr, to say why it did not start."""

PROGRESS_FACTS: Final = 200
"""Steps of progress that are told of one call; no person follows more."""

WARNINGS: Final = 50
"""Warnings of one server that are told in one turn."""

QUESTION_CHARACTERS: Final = 16_000
"""Characters of a question with its form; nobody fills in a longer one."""

QUESTIONS: Final = 10
"""Questions that a server may ask during one call."""

CONTENTS: Final = 100
"""Parts of one result that are looked at; of the others, only how many there are."""

CONTENT_BYTES: Final = 16 * 1024 * 1024
"""Bytes of one picture, sound or file in a result that are kept."""

DATA_DEPTH: Final = 32
"""Levels of structured content that stand in a fact; what is deeper is behind a ref."""

CONNECT_SECONDS: Final = 10.0
"""How long it may take to reach a server by HTTP."""

GRACE_SECONDS: Final = 2.0
"""How long a server may take to end by itself once its input is closed."""

CLOSE_SECONDS: Final = 20.0
"""How long the end of a connection may take in all, before it is cut."""
