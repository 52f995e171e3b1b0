"""Every number that bounds the agent `openai`, each with its reason."""

from typing import Final

STEPS: Final = 50
"""Model responses in one turn by default; an endless loop ends here."""

MOST_STEPS: Final = 1_000
"""The largest configurable number of model responses in one turn."""

RETRIES: Final = 2
"""Times that a refused or failed request is retried by default."""

MOST_RETRIES: Final = 10
"""The largest configurable number of retries; an endpoint that refuses more often is down."""

HISTORY_CHARACTERS: Final = 200_000
"""Characters of earlier turns that are sent to a model, about 50,000 tokens."""

RESULT_CHARACTERS: Final = 32_000
"""Characters of one tool's result that are sent to a model; of a longer one, both ends."""

IMAGE_BYTES: Final = 10 * 1024 * 1024
"""Bytes of an attached image; endpoints refuse bigger ones."""

DOCUMENT_BYTES: Final = 256 * 1024
"""Bytes of an attached text document; a longer one belongs in the workspace."""

CONNECT_SECONDS: Final = 10.0
"""How long it may take to reach an endpoint."""

SILENCE_SECONDS: Final = 300.0
"""How long an endpoint may send nothing by default; local models can be slow."""

MESSAGE_CHARACTERS: Final = 500
"""Characters of an endpoint's error message that are repeated."""

BAD_CALLS: Final = 5
"""Times in a row that a model may call a tool wrongly before the turn fails."""

PIECE_CHARACTERS: Final = 8_000
"""Characters of an answer in one fact; an endpoint that does not stream sends all of it at once."""
