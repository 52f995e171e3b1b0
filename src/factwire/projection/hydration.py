"""Hydration: whether a state shows all there is, and what is missing if not.

| status | means |
|---|---|
| idle | no fact yet |
| hydrating | restored from a read model; no fact since |
| live | every fact up to the cursor is in the state |
| stale | facts are missing and what came after them waits, or a change could not be applied |
| repairing | the source says that it is mending the stream |
| degraded | so much came after a hole that it was shown without what is missing |
"""

from typing import TYPE_CHECKING, Final, Literal

from factwire.projection.limits import GAPS_KEPT
from factwire.projection.views import View

if TYPE_CHECKING:
    from factwire.projection.canvas import Canvas
    from factwire.projection.lanes import Lane

PATH: Final = "/hydration"

HydrationStatus = Literal["idle", "hydrating", "live", "stale", "repairing", "degraded"]


class Gap(View):
    """Sequences that are missing, both ends included; `thread_id` where it is another thread's."""

    from_sequence: int
    to_sequence: int
    thread_id: str | None = None


class Hydration(View):
    """How whole the state is. `cursor` is the last sequence up to which nothing is missing."""

    status: HydrationStatus
    cursor: int | None
    event_count: int
    held: int
    late: int
    gaps: list[Gap]
    reasons: list[str]
    ignored: list[str]
    doubted_at: int | None = None


def idle() -> Hydration:
    return Hydration(
        status="idle", cursor=None, event_count=0, held=0, late=0, gaps=[], reasons=[], ignored=[]
    )


def doubt(canvas: "Canvas", reason: str, at: int | None = None) -> None:
    """Something keeps the state from being whole until a snapshot or a repair comes that covers
    the place `at` where it showed.
    """
    hydration = canvas.state.hydration
    if reason not in hydration.reasons:
        canvas.put(hydration, PATH, "reasons", [*hydration.reasons, reason])
    if at is not None:
        canvas.put(hydration, PATH, "doubted_at", max(at, hydration.doubted_at or at))


def trust(canvas: "Canvas", covered: int | None = None, *, but: str | None = None) -> None:
    """A snapshot or a repair settled what was in doubt, if it covers the place where it showed;
    all `but` one reason, where it says nothing of that.
    """
    hydration = canvas.state.hydration
    if covered is not None and covered < (hydration.doubted_at or 0):
        return
    reasons = [reason for reason in hydration.reasons if reason == but]
    canvas.put(hydration, PATH, "reasons", reasons)
    canvas.put(hydration, PATH, "doubted_at", hydration.doubted_at if reasons else None)


def trust_again(canvas: "Canvas", reason: str) -> None:
    """One thing that was in doubt is settled."""
    reasons = canvas.state.hydration.reasons
    if reason in reasons:
        others = [other for other in reasons if other != reason]
        canvas.put(canvas.state.hydration, PATH, "reasons", others)


def settle(canvas: "Canvas", lanes: "list[Lane]") -> None:
    """Let the status follow from what is held, lost and in doubt."""
    hydration = canvas.state.hydration
    gaps = [gap for lane in lanes for gap in lane.gaps()]
    canvas.put(hydration, PATH, "held", sum(len(lane.held) for lane in lanes))
    canvas.put(hydration, PATH, "gaps", gaps[:GAPS_KEPT])
    canvas.put(hydration, PATH, "status", _status(hydration, lanes))


def _status(hydration: Hydration, lanes: "list[Lane]") -> HydrationStatus:
    if "repair_started" in hydration.reasons:
        return "repairing"
    if any(lane.lost for lane in lanes):
        return "degraded"
    if hydration.held or hydration.gaps or hydration.reasons:
        return "stale"
    if hydration.event_count:
        return "live"
    return "hydrating" if hydration.cursor is not None else "idle"
