"""`Records`: what an Edge lists, as a pure function of the facts of all its threads.

Facts come in the order of the journal. A thread that was deleted is gone from every list, with all
that belongs to it; its facts stay in the journal until retention takes them.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from factwire.edge.records import approvals, artifacts, places, runs, threads
from factwire.edge.records.rows import (
    Approval,
    Artifact,
    Conversation,
    EvidenceRow,
    Preview,
    Project,
    Run,
    Task,
    Thread,
)
from factwire.edge.records.table import Table
from factwire.facts import Fact

VERSION: Final = 1
"""Of the saved form; another one is not read, but made anew from the facts."""


class Saved(msgspec.Struct, kw_only=True):
    """Everything that records are, to go on from later."""

    version: int
    epoch: str
    seq: int
    projects: dict[str, Project]
    conversations: dict[str, Conversation]
    threads: dict[str, Thread]
    runs: dict[str, Run]
    approvals: dict[str, Approval]
    artifacts: dict[str, Artifact]
    tasks: dict[str, Task]
    previews: dict[str, Preview]
    evidence: dict[str, EvidenceRow]
    deleted: dict[str, None]


class Records:
    """The tables; `note` takes in the next fact."""

    def __init__(self) -> None:
        self.seq = 0
        self.projects: Table[Project] = Table()
        self.conversations: Table[Conversation] = Table()
        self.threads: Table[Thread] = Table()
        self.runs: Table[Run] = Table()
        self.approvals: Table[Approval] = Table()
        self.artifacts: Table[Artifact] = Table()
        self.tasks: Table[Task] = Table()
        self.previews: Table[Preview] = Table()
        self.evidence: Table[EvidenceRow] = Table()
        self.deleted: dict[str, None] = {}

    def note(self, seq: int, fact: Fact) -> None:
        """Take in a fact; whatever is no news for these lists changes nothing."""
        self.seq = seq
        thread_id = threads.thread_of(fact)
        if thread_id is not None and thread_id in self.deleted:
            return
        handle = HANDLERS.get(fact.event_class or "")
        if handle is not None or thread_id not in self.threads.rows:
            threads.met(self, seq, fact, thread_id)
        if handle is not None:
            handle(self, seq, fact)

    def save(self, epoch: str) -> bytes:
        """The tables as bytes."""
        return msgspec.msgpack.encode(
            Saved(
                version=VERSION,
                epoch=epoch,
                seq=self.seq,
                deleted=self.deleted,
                **{name: getattr(self, name).rows for name in _TABLES},
            )
        )

    @classmethod
    def restore(cls, data: bytes, epoch: str) -> "Records | None":
        """What `save` wrote, unless it is of another version or another journal."""
        try:
            saved = msgspec.msgpack.decode(data, type=Saved)
        except msgspec.DecodeError:
            return None
        if (saved.version, saved.epoch) != (VERSION, epoch):
            return None
        records = cls()
        records.seq, records.deleted = saved.seq, saved.deleted
        for name in _TABLES:
            setattr(records, name, Table(getattr(saved, name)))
        return records


_TABLES: Final = (
    "projects",
    "conversations",
    "threads",
    "runs",
    "approvals",
    "artifacts",
    "tasks",
    "previews",
    "evidence",
)

Handle = Callable[[Records, int, Fact], None]

HANDLERS: Final[dict[str, Handle]] = {
    **places.HANDLERS,
    **threads.HANDLERS,
    **runs.HANDLERS,
    **approvals.HANDLERS,
    **artifacts.HANDLERS,
}
"""Class → what it means for the lists."""

CLASSES: Final = tuple(sorted(HANDLERS))
"""The classes that these lists are made of; no other needs to be read."""
