"""What streams brought so far, read a page at a time, and facts sent to an Edge."""

from collections.abc import Iterable
from typing import Literal, TypeVar

import msgspec

from factwire.client.address import path_of, query_of
from factwire.client.call import Answer, Call, get, json
from factwire.client.call import post as _post
from factwire.client.frames import Event, PlacedFact
from factwire.client.resources import Accepted, Page
from factwire.client.stream import read_placed_fact
from factwire.facts import Fact, Shape, write_fact

View = Literal["runtime", "conversation"]

T = TypeVar("T")


def past_events(
    *,
    cursor: str | None = None,
    view: View = "runtime",
    types: Iterable[str] | None = None,
    project_id: str | None = None,
    thread_id: str | None = None,
    run_id: str | None = None,
    limit: int | None = None,
) -> Call[Page[Event]]:
    """Events that are there already, oldest first."""
    query = query_of(
        cursor=cursor,
        view=view,
        types=types,
        project_id=project_id,
        thread_id=thread_id,
        run_id=run_id,
        limit=limit,
    )
    return get(path_of("events"), _events, query)


def run_events(
    run_id: str, *, cursor: str | None = None, view: View = "runtime", limit: int | None = None
) -> Call[Page[Event]]:
    """The events of a run that are there already, oldest first."""
    query = query_of(cursor=cursor, view=view, limit=limit)
    return get(path_of("runs", run_id, "events"), _events, query)


def past_facts(
    *,
    cursor: str | None = None,
    classes: Iterable[str] | None = None,
    project_id: str | None = None,
    thread_id: str | None = None,
    run_id: str | None = None,
    limit: int | None = None,
) -> Call[Page[PlacedFact]]:
    """Facts that are there already, oldest first."""
    query = query_of(
        cursor=cursor,
        classes=classes,
        project_id=project_id,
        thread_id=thread_id,
        run_id=run_id,
        limit=limit,
    )
    return get(path_of("facts"), _facts, query)


def post_facts(facts: Iterable[Fact]) -> Call[Accepted]:
    """Send facts of another runtime: all are written or none, and repeats are no news.

    A fact without a sequence goes in the shape that needs none, and gets the next one there.
    """
    body = {"facts": [write_fact(fact, _shape(fact)) for fact in facts]}
    return _post(path_of("facts"), json(Accepted), body)


def _shape(fact: Fact) -> Shape:
    return "ui" if fact.sequence is None else "facts"


class _Piece(msgspec.Struct, kw_only=True):
    """A page of a stream as it comes; `more` says whether there is another one now."""

    items: list[msgspec.Raw]
    cursor: str
    more: bool = False

    def page(self, items: list[T]) -> Page[T]:
        return Page(items=items, as_of=self.cursor, next=self.cursor if self.more else None)


_PIECE = msgspec.json.Decoder(_Piece)
_EVENT = msgspec.json.Decoder(Event)


def _events(answer: Answer) -> Page[Event]:
    piece = _PIECE.decode(answer.body)
    return piece.page([_EVENT.decode(item) for item in piece.items])


def _facts(answer: Answer) -> Page[PlacedFact]:
    piece = _PIECE.decode(answer.body)
    return piece.page([read_placed_fact(bytes(item)) for item in piece.items])
