"""Messages: facts as a stream tells them, one JSON text each.

The stored bytes of a fact are set into its message as they are; nothing is encoded again. An
envelope follows from its fact, and a filter on types looks at the envelope, so that it means what
the reader sees.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from factwire.edge.events import Envelope, View, encode_envelope, envelope_of
from factwire.edge.streams.arrival import Arrival
from factwire.edge.streams.frames import server_sent_event, text_frame
from factwire.edge.streams.selection import Selection, Wire
from factwire.facts import Fact
from factwire.journal import Cursor
from factwire.journal.cursor import MARK


class EnvelopeOf(Protocol):
    """The envelope of a fact in one view; None where the view has no word for it."""

    def __call__(
        self, seq: int, fact: Fact, view: View = "runtime", *, epoch: str, edge_id: str
    ) -> Envelope | None: ...


class Message(msgspec.Struct, frozen=True, gc=False):
    """One fact, told; `name` is its type."""

    seq: int
    name: str
    text: bytes


class Frames(msgspec.Struct, frozen=True, gc=False):
    """Frames of one stretch, joined; `last` is the seq that a reader has then come to."""

    data: bytes
    last: int


class Teller:
    """Tells facts in the words of one selection."""

    def __init__(
        self, selection: Selection, *, edge_id: str, envelope_of: EnvelopeOf = envelope_of
    ) -> None:
        self.selection = selection
        self._edge_id = edge_id
        self._envelope_of = envelope_of

    def messages(self, arrival: Arrival, positions: Sequence[int]) -> Iterator[Message]:
        """What is told of the facts at these positions."""
        if self.selection.face == "facts":
            return _facts(arrival, positions)
        return self._envelopes(arrival, positions)

    def _envelopes(self, arrival: Arrival, positions: Sequence[int]) -> Iterator[Message]:
        stretch, facts, selection = arrival.stretch, arrival.facts, self.selection
        for position in positions:
            seq = stretch.seqs[position]
            envelope = self._envelope_of(
                seq, facts[position], selection.view, epoch=stretch.epoch, edge_id=self._edge_id
            )
            if envelope is not None and selection.wants(envelope.type):
                yield Message(seq, envelope.type, encode_envelope(envelope))

    def frames(self, wire: Wire, arrival: Arrival, positions: Sequence[int]) -> Frames:
        """What is told of the facts at these positions, as it goes over a wire."""
        framed: list[bytes] = []
        last, epoch = 0, arrival.stretch.epoch
        for message in self.messages(arrival, positions):
            last = message.seq
            framed.append(
                text_frame(message.text)
                if wire == "socket"
                else server_sent_event(message.name, message.text, str(Cursor(epoch, last)))
            )
        return Frames(b"".join(framed), last)


def _facts(arrival: Arrival, positions: Sequence[int]) -> Iterator[Message]:
    seqs, lines = arrival.stretch.seqs, arrival.lines
    # What `str(Cursor(epoch, seq))` gives; here it is written for every fact.
    begin = b'{"cursor":"%s%s.' % (MARK.encode(), arrival.stretch.epoch.encode())
    for position in positions:
        seq = seqs[position]
        text = b'%s%016d","seq":%d,"fact":%s}' % (begin, seq, seq, lines[position])
        yield Message(seq, "fact", text)


def checkpoint(wire: Wire, cursor: Cursor) -> bytes:
    """Says how far a reader has come although nothing was there for it."""
    text = b'{"type":"checkpoint","cursor":"%s","seq":%d}' % (str(cursor).encode(), cursor.seq)
    return framed(wire, "checkpoint", text, cursor)


def framed(wire: Wire, name: str, text: bytes, cursor: Cursor | None) -> bytes:
    """One message as it goes over a wire."""
    if wire == "socket":
        return text_frame(text)
    return server_sent_event(name, text, None if cursor is None else str(cursor))
