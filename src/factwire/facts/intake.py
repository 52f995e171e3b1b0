"""Intake: the way of every fact into Factwire, up to the bytes that are stored.

Read, hold to the rules of its class, verify the lifecycle, redact, spill, encode: in this order, so
that a refused fact leaves no trace and nothing secret or big is ever encoded. A payload that is too
big or holds a secret is no reason to refuse a fact here; it is mended.
"""

import msgspec

from factwire.facts.fact import Fact
from factwire.facts.growth import Growth, growth_of
from factwire.facts.inspection import Item, read_item
from factwire.facts.issues import InvalidFacts, is_valid
from factwire.facts.lifecycle import LifecycleVerifier, VerifierMode, Violation
from factwire.facts.limits import PAYLOAD_CHARACTERS
from factwire.facts.redactor import Redactor
from factwire.facts.rules import class_issues
from factwire.facts.shapes import AnyShape, Shape, encode_fact
from factwire.facts.spill import Blob, plan_spill


class Taken(msgspec.Struct, frozen=True, gc=False):
    """A fact that was taken: `data` is to be stored after `blobs`; `notes` say what was mended."""

    fact: Fact
    data: bytes
    notes: tuple[Fact, ...] = ()
    blobs: tuple[Blob, ...] = ()
    violations: tuple[Violation, ...] = ()


class Intake:
    """Feed it the facts of one or many streams, in order."""

    def __init__(self, mode: VerifierMode = "fail-closed", shape: AnyShape = "auto") -> None:
        self._shape: AnyShape = shape
        self._verifier = LifecycleVerifier(mode)
        self._redactor = Redactor()
        self._growth: Growth | None = None

    def feed(self, item: Item) -> Taken:
        """Take one fact; raises `UnreadableInput`, `InvalidFacts` or `LifecycleError`."""
        reading = read_item(item, self._shape)
        fact = reading.fact
        if fact is None:
            raise InvalidFacts(reading.issues)
        if self._growth is not None and self._grows(fact, self._growth):
            return _encoded(fact)
        taken = self._take(fact, reading.shape)
        self._growth = None if taken.notes or taken.violations else growth_of(fact)
        return taken

    def _grows(self, fact: Fact, growth: Growth) -> bool:
        """Whether the fact is the next piece of a text and could be taken as such."""
        text = growth.next_piece(fact)
        if text is None or not self._verifier.expects(fact):
            return False
        if not self._redactor.passes(growth.key, text):
            return False
        self._verifier.take_expected(fact)
        return True

    def _take(self, fact: Fact, shape: Shape) -> Taken:
        issues = class_issues(fact, shape)
        if issues and not is_valid(issues):
            raise InvalidFacts(issues)
        violations = self._verifier.feed(fact)
        redacted = self._redactor.feed(fact)
        taken = _encoded(redacted.fact)
        if redacted.findings or violations:
            note = redacted.note
            return msgspec.structs.replace(
                taken,
                notes=(note, *taken.notes) if note else taken.notes,
                violations=tuple(violations),
            )
        return taken


def _encoded(fact: Fact) -> Taken:
    data = encode_fact(fact)
    if len(data) > PAYLOAD_CHARACTERS:
        spill = plan_spill(fact)
        if spill is not None:
            return Taken(spill.fact, encode_fact(spill.fact), (spill.note,), spill.blobs)
    return Taken(fact, data)
