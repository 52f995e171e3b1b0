"""Every number that bounds the agent `openai`, each with its reason."""

from typing import Final

STEPS: Final = 50
"""Answers of the model in one turn, if nobody says otherwise; a loop ends here."""

MOST_STEPS: Final = 1_000
"""Answers of the model in one turn that can be asked for."""

RETRIES: Final = 2
"""Times that a refused or failed request is sent again, if nobody says otherwise."""

MOST_RETRIES: Final = 10
"""Times that a request can be sent again; an endpoint that refuses more often is down."""

HISTORY_CHARACTERS: Final = 200_000
"""Characters of earlier turns that a model is given again, about 50,000 tokens."""

RESULT_CHARACTERS: Final = 32_000
"""Characters of one tool's result that a model is given; of a longer one, both ends."""

IMAGE_BYTES: Final = 10 * 1024 * 1024
"""Bytes of an attached image; endpoints refuse bigger ones."""

DOCUMENT_BYTES: Final = 256 * 1024
"""Bytes of an attached text document; a longer one belongs into the workspace."""

CONNECT_SECONDS: Final = 10.0
"""How long it may take to reach an endpoint."""

SILENCE_SECONDS: Final = 300.0
"""How long an endpoint may say nothing, if nobody says otherwise; local models think long."""

MESSAGE_CHARACTERS: Final = 500
"""Characters of an endpoint's error message that are repeated."""

BAD_CALLS: Final = 5
"""Times in a row that a model may call a tool wrongly before the turn fails."""

PIECE_CHARACTERS: Final = 8_000
"""Characters of an answer in one fact; an endpoint that does not stream sends all of it at once."""
