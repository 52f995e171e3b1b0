"""What a read model brought along: where it stood, and how the last turn ended."""

from typing import Any

from factwire.projection.views import View


class RestoredFrom(View):
    """The read model that a state was restored from or last repaired with, if any."""

    event_cursor: int | None = None
    history_cursor: str | None = None
    status: str | None = None
    last_outcome: str | None = None
    stale: bool | None = None
    incidents: list[dict[str, Any]] | None = None
