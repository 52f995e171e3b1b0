"""From a fact and its place to its envelope: one fact, one envelope, the same seq.

It is a pure function of epoch, edge, seq, fact and view, so a stream that is resumed anywhere says
the same again. A fact of a class without a word, or without what the word needs, keeps its class as
its type. No class passes for a type that is not its own: a fact that says it is an `error` or a
`checkpoint` is told as `unknown`, and so is one whose class is no plain word.
"""

import re
from functools import lru_cache
from typing import Any, Final

import msgspec

from factwire.edge.events.agent_payloads import UnknownFact
from factwire.edge.events.envelope import VERSION, Envelope, Scope
from factwire.edge.events.ids import event_id_of, run_id_of, sent_at, traced
from factwire.edge.events.types import EVENT_TYPES, FRAME_TYPES, WORDS
from factwire.edge.events.word import View
from factwire.facts import CORRELATION_IDS, Fact
from factwire.facts.ids import ATTRIBUTES
from factwire.facts.refs import REF_LISTS
from factwire.facts.vocabulary import UNKNOWN
from factwire.journal.cursor import MARK

_PLAIN: Final = re.compile(r"[!-~]{1,128}")
"""Classes that may stand in a line of an event stream, and in a URL once quoted."""

_RESERVED: Final = frozenset((*EVENT_TYPES, *FRAME_TYPES))
_SCOPE_FIELDS: Final = frozenset(Scope.__struct_fields__)
_ELSEWHERE: Final = _SCOPE_FIELDS | {"trace_id", "runtime_id"}
_IDS: Final = tuple(
    (name, ATTRIBUTES[name]) for name in CORRELATION_IDS if ATTRIBUTES[name] not in _ELSEWHERE
)
"""The ids that an envelope has no place for outside its payload."""

_PLACES: Final[dict[type, tuple[str, ...]]] = {
    kind.payload: tuple(name for name in kind.payload.__struct_fields__ if name in _SCOPE_FIELDS)
    for kind in EVENT_TYPES.values()
}
"""The ids of a scope that each payload has, too."""

_TELL: Final = {
    "runtime": {name: words.runtime.tell for name, words in WORDS.items()},
    "conversation": {name: words.conversation.tell for name, words in WORDS.items()},
}
_encode = msgspec.json.Encoder().encode


def envelope_of(
    seq: int, fact: Fact, view: View = "runtime", *, epoch: str, edge_id: str
) -> Envelope:
    """The envelope of the fact at `seq` of the journal's `epoch`."""
    tell = _TELL[view].get(fact.event_class or "")
    name, payload = (tell and tell(fact)) or _kept(fact)
    scope = _scope(fact, payload, edge_id)
    return Envelope(
        version=VERSION,
        id=event_id_of(fact.id),
        seq=seq,
        type=name,
        scope=scope,
        trace_id=fact.trace_id or traced(scope.run_id or scope.thread_id or fact.id),
        sent_at=sent_at(fact.created_at),
        payload=payload,
        # What `str(Cursor(epoch, seq))` gives; here it is written for every event.
        cursor=f"{MARK}{epoch}.{seq:016d}",
    )


def encode(seq: int, fact: Fact, view: View = "runtime", *, epoch: str, edge_id: str) -> bytes:
    """The envelope of the fact at `seq`, as it is sent."""
    return _encode(envelope_of(seq, fact, view, epoch=epoch, edge_id=edge_id))


def encode_envelope(envelope: Envelope) -> bytes:
    """An envelope as it is sent."""
    return _encode(envelope)


def _scope(fact: Fact, payload: object, edge_id: str) -> Scope:
    told = _PLACES.get(type(payload))
    if told:
        return _scope_of_both(fact, payload, edge_id, told)
    return Scope(
        project_id=fact.project_id,
        conversation_id=fact.conversation_id,
        thread_id=fact.thread_id,
        run_id=fact.run_id or run_id_of(fact),
        edge_id=fact.edge_id or edge_id,
        item_id=fact.item_id,
    )


def _scope_of_both(fact: Fact, payload: object, edge_id: str, told: tuple[str, ...]) -> Scope:
    """Ids of the fact, and those that its payload in other words adds."""
    ids = {name: getattr(fact, name) or getattr(payload, name) for name in told}
    return Scope(
        project_id=ids.get("project_id", fact.project_id),
        conversation_id=ids.get("conversation_id", fact.conversation_id),
        thread_id=ids.get("thread_id", fact.thread_id),
        run_id=ids.get("run_id") or run_id_of(fact),
        edge_id=fact.edge_id or edge_id,
        item_id=ids.get("item_id", fact.item_id),
    )


def _kept(fact: Fact) -> tuple[str, Any]:
    """A fact under its own class, with the ids that the scope has no place for."""
    name = _own_type(fact.event_class or "")
    said = _identified(fact)
    if name is None:
        return UNKNOWN, UnknownFact(event_class=fact.event_class, payload=said)
    return name, said


@lru_cache(maxsize=1_024)
def _own_type(event_class: str) -> str | None:
    return event_class if _PLAIN.fullmatch(event_class) and event_class not in _RESERVED else None


def _identified(fact: Fact) -> dict[str, Any]:
    ids = {name: value for name, attribute in _IDS if (value := getattr(fact, attribute))}
    refs = {
        name: list(found)
        for attribute, name in REF_LISTS.items()
        if (found := getattr(fact, attribute))
    }
    return {**ids, **refs, **fact.payload}
