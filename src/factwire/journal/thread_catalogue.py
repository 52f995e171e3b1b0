"""The thread catalogue: what can be said of a thread from the classes of its facts alone.

Two tables decide everything: which classes move a thread's status, and which open or close an
action. An open action makes a thread wait until its turn ends. Facts are taken in order of seq;
the times a fact carries are copied and never compared.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from factwire.facts.classes.class_tables import ACTION_CLOSERS, TURN_OUTCOMES
from factwire.facts.fact import Fact, id_of
from factwire.facts.outcomes import status_shown
from factwire.journal.cursor import Cursor

ThreadStatus = Literal["idle", "running", "waiting", "completed", "failed", "canceled"]

STATUS_OF_CLASS: Final[Mapping[str, ThreadStatus]] = {
    "turn.submitted": "running",
    "turn.started": "running",
    **TURN_OUTCOMES,
}
ACTION_OPENERS: Final = frozenset({"action.required"})
_CLOSERS: Final = frozenset(ACTION_CLOSERS)
_TITLED: Final = frozenset({"thread.started", "thread.updated"})
_OUTCOMES: Final[Mapping[str, ThreadStatus]] = {
    "completed": "completed",
    "failed": "failed",
    "canceled": "canceled",
}
_LIVE: Final = frozenset({"idle", "running"})
_NOTED: Final = frozenset(STATUS_OF_CLASS) | ACTION_OPENERS | _CLOSERS | _TITLED


class CatalogueThread(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One row of the catalogue."""

    thread_id: str
    project_id: str | None
    session_id: str | None
    title: str | None
    status: ThreadStatus
    first_seq: int
    last_seq: int
    last_sequence: int
    fact_count: int
    open_actions: tuple[str, ...]
    created_at: str
    updated_at: str


class ThreadPage(msgspec.Struct, frozen=True, kw_only=True):
    """Threads by last activity, newest first; `after` asks for the next page, None ends."""

    threads: tuple[CatalogueThread, ...]
    after: Cursor | None


class CatalogueRecord(msgspec.Struct, kw_only=True):
    """What a backend keeps of a thread; `note` takes in its facts one after the other.

    `open` maps an open action to the seq that opened it; `floor` is the last seq that retention
    took out of this thread; `fact_count` counts every fact ever appended.
    """

    thread_id: str
    project_id: str | None
    session_id: str | None
    title: str | None = None
    turn_status: ThreadStatus = "idle"
    first_seq: int
    last_seq: int
    last_sequence: int
    fact_count: int = 0
    open: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    created_at: str
    updated_at: str
    floor: int = 0

    @property
    def status(self) -> ThreadStatus:
        return "waiting" if self.open and self.turn_status in _LIVE else self.turn_status

    def note(self, fact: Fact, seq: int, sequence: int) -> None:
        """Take in the thread's next fact."""
        self.last_seq = seq
        self.last_sequence = sequence
        self.fact_count += 1
        self.updated_at = fact.created_at
        if self.project_id is None and (fact.project_id or "projectId" in fact.payload):
            self.project_id = id_of(fact, "projectId")
        if self.session_id is None and (fact.session_id or "sessionId" in fact.payload):
            self.session_id = id_of(fact, "sessionId")
        if fact.event_class in _NOTED:
            self._note_class(fact, fact.event_class, seq)

    def _note_class(self, fact: Fact, event_class: str, seq: int) -> None:
        moved = STATUS_OF_CLASS.get(event_class)
        if moved is not None:
            self.turn_status = _OUTCOMES.get(status_shown(fact) or "") or moved
        action = id_of(fact, "actionId")
        if action and event_class in ACTION_OPENERS:
            self.open.setdefault(action, seq)
        elif action and event_class in _CLOSERS:
            self.open.pop(action, None)
        title = fact.payload.get("title") if event_class in _TITLED else None
        if isinstance(title, str):
            self.title = title

    def to_thread(self) -> CatalogueThread:
        """The record as readers see it."""
        return CatalogueThread(
            thread_id=self.thread_id,
            project_id=self.project_id,
            session_id=self.session_id,
            title=self.title,
            status=self.status,
            first_seq=self.first_seq,
            last_seq=self.last_seq,
            last_sequence=self.last_sequence,
            fact_count=self.fact_count,
            open_actions=tuple(self.open),
            created_at=self.created_at,
            updated_at=self.updated_at,
        )


def build_catalogue_record(thread_id: str, fact: Fact, seq: int, sequence: int) -> CatalogueRecord:
    """The record of a thread whose first fact this is, with that fact taken in."""
    record = CatalogueRecord(
        thread_id=thread_id,
        project_id=id_of(fact, "projectId"),
        session_id=id_of(fact, "sessionId"),
        first_seq=seq,
        last_seq=seq,
        last_sequence=sequence,
        created_at=fact.created_at,
        updated_at=fact.created_at,
    )
    record.note(fact, seq, sequence)
    return record


def build_page(rows: Sequence[CatalogueThread], limit: int, epoch: str) -> ThreadPage:
    """The first `limit` of rows that are in order, and where the next page begins."""
    shown = tuple(rows[:limit])
    more = len(rows) > limit and bool(shown)
    return ThreadPage(threads=shown, after=Cursor(epoch, shown[-1].last_seq) if more else None)
