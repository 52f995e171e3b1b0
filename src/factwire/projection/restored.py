"""What a state owes to a read model: where that stood, and what only it knows."""

from factwire.projection.views import View


class RestoredFrom(View):
    """The read model that a state was restored from or last repaired with, if any.

    `stale` is set when the last one offered was older than the state, and was left aside.
    """

    event_cursor: int | None = None
    history_cursor: str | None = None
    status: str | None = None
    stale: bool | None = None
