"""What streams bring: events, facts with their place, the state of a thread and its changes."""

from typing import Any

from factwire.client.resources import Resource
from factwire.facts import Fact


class Scope(Resource, frozen=True, kw_only=True):
    """What an event is about."""

    project_id: str | None = None
    conversation_id: str | None = None
    thread_id: str | None = None
    run_id: str | None = None
    edge_id: str | None = None
    item_id: str | None = None


class Event(Resource, frozen=True, kw_only=True, omit_defaults=False):
    """One envelope. `type` decides what `payload` is; a stream resumes after `cursor`."""

    version: str
    id: str
    seq: int
    type: str
    scope: Scope
    trace_id: str
    sent_at: str
    payload: Any
    cursor: str


class PlacedFact(Resource, frozen=True, kw_only=True, omit_defaults=False):
    """A fact and its place in the journal; a stream resumes after `cursor`."""

    cursor: str
    seq: int
    fact: Fact


class Snapshot(Resource, frozen=True, kw_only=True, omit_defaults=False):
    """The whole state of a thread."""

    thread_id: str
    cursor: str
    state: dict[str, Any]


class Delta(Resource, frozen=True, kw_only=True, omit_defaults=False):
    """What changed in a state since the frame before, to be carried out in order."""

    thread_id: str
    cursor: str
    operations: list[dict[str, Any]]
