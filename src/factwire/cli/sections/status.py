"""How a thread stands, and whether its state is whole, in one line each."""

from rich.text import Text

from factwire.cli.sections.lines import LINE, NAME, mark_of
from factwire.cli.terminal_text import counted, harmless
from factwire.projection import ProjectionState
from factwire.projection.hydration import Gap, Hydration

_GAPS = 5


def status(state: ProjectionState) -> Text:
    """What the thread is doing."""
    runtime = state.runtime
    line = Text()
    line.append_text(mark_of(runtime.status))
    if line.plain != runtime.status:
        line.append(f" {harmless(runtime.status, NAME)}", style="bold")
    turn = runtime.latest_turn_id and f"turn {runtime.latest_turn_id} {runtime.latest_turn_status}"
    phase = runtime.phase if runtime.phase not in ("unknown", runtime.status) else None
    queued = runtime.queued_turn_count and f"{runtime.queued_turn_count} queued"
    said = (runtime.message, runtime.failure_category, runtime.recovery_hint)
    for word in (phase, turn, runtime.model, *said, runtime.blocked_reason, queued):
        if word:
            line.append(f" · {harmless(str(word), LINE)}")
    return line


def hydration(state: ProjectionState) -> Text:
    """Whether the state is whole, and what is missing if not."""
    whole = state.hydration
    line = Text()
    line.append(whole.status, style="green" if whole.status in ("live", "idle") else "yellow")
    line.append(f" · {counted(whole.event_count, 'fact')}")
    if whole.cursor is not None:
        line.append(f" up to sequence {whole.cursor}")
    for word in _doubts(whole):
        line.append(f" · {word}", style="yellow")
    return line


def _doubts(whole: Hydration) -> list[str]:
    words: list[str] = []
    if whole.gaps:
        more = len(whole.gaps) - _GAPS
        places = ", ".join(map(_gap, whole.gaps[:_GAPS]))
        words.append(f"missing {places}{f' and {more} more' if more > 0 else ''}")
    if whole.held:
        words.append(f"{whole.held:,} held back")
    return words + [harmless(reason, NAME) for reason in whole.reasons]


def _gap(gap: Gap) -> str:
    first, last = gap.from_sequence, gap.to_sequence
    place = f"{first}" if first == last else f"{first}–{last}"
    return place if gap.thread_id is None else f"{place} of {harmless(gap.thread_id, NAME)}"
