"""Intake: the way of every fact into Factwire, up to the bytes that are stored.

Read, hold to the rules of its class, verify the lifecycle, redact, spill, encode: in this order, so
that a refused fact leaves no trace and nothing secret or big is ever encoded. A payload that is too
big or holds a secret is no reason to refuse a fact here; it is mended.
"""

import msgspec

from factwire.facts.delta_fast_path import DeltaPattern, delta_pattern_of
from factwire.facts.fact import Fact
from factwire.facts.fact_rules import class_issues
from factwire.facts.inspection import Item, read_item
from factwire.facts.issues import InvalidFacts, is_valid
from factwire.facts.lifecycle import LifecycleVerifier, VerifierMode, Violation
from factwire.facts.limits import IDENTITY_WINDOW, PAYLOAD_CHARACTERS
from factwire.facts.redaction import Redactor
from factwire.facts.shapes import RepeatNumbers, decode_plain, encode_fact
from factwire.facts.spill import Blob, plan_spill
from factwire.facts.vocabulary import AnyShape, Shape


class IntakeResult(msgspec.Struct, frozen=True, gc=False):
    """A fact that was taken: `data` is to be stored after `blobs`; `notes` say what was mended."""

    fact: Fact
    data: bytes
    notes: tuple[Fact, ...] = ()
    blobs: tuple[Blob, ...] = ()
    violations: tuple[Violation, ...] = ()


class Intake:
    """Feed it the facts of one or many streams, in order."""

    def __init__(
        self,
        mode: VerifierMode = "fail-closed",
        shape: AnyShape = "auto",
        *,
        verifier: LifecycleVerifier | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self._shape: AnyShape = shape
        self._verifier = verifier or LifecycleVerifier(mode)
        self._redactor = redactor or Redactor()
        self._pass_through = self._redactor.pass_through
        self._plain = shape in ("auto", "facts")
        self._pattern: DeltaPattern | None = None
        self._numbers = RepeatNumbers(window=IDENTITY_WINDOW)

    def feed(self, item: Item) -> IntakeResult:
        """Take one fact; raises `UnreadableInput`, `InvalidFacts` or `LifecycleError`."""
        # As `read` does it; every fact comes by here, and a call is a part of what it costs.
        fact = decode_plain(item) if self._plain and isinstance(item, bytes) else None
        return self.take(fact) if fact is not None else self.take(*self._read(item))

    def read(self, item: Item) -> tuple[Fact, Shape]:
        """A fact as it was sent, and its shape; raises `UnreadableInput` or `InvalidFacts`."""
        fact = decode_plain(item) if self._plain and isinstance(item, bytes) else None
        return (fact, "facts") if fact is not None else self._read(item)

    def take(self, fact: Fact, shape: Shape = "facts") -> IntakeResult:
        """Take a fact that was read; raises `InvalidFacts` or `LifecycleError`."""
        pattern = self._pattern
        if pattern is not None:
            text = pattern.next_piece(fact)
            if (
                text is not None
                and self._verifier.expects(fact)
                and self._pass_through(pattern.key, text)
            ):
                self._verifier.take_expected(fact)
                return encode_or_spill(fact)
        result = self._take(fact, shape)
        self._pattern = None if result.notes or result.violations else delta_pattern_of(fact)
        return result

    def _read(self, item: Item) -> tuple[Fact, Shape]:
        reading = read_item(item, self._shape)
        if reading.fact is None:
            raise InvalidFacts(reading.issues)
        return self._numbers.number(reading.fact), reading.shape

    def _take(self, fact: Fact, shape: Shape) -> IntakeResult:
        issues = class_issues(fact, shape)
        if issues and not is_valid(issues):
            raise InvalidFacts(issues)
        violations = self._verifier.feed(fact)
        redacted = self._redactor.feed(fact)
        result = encode_or_spill(redacted.fact)
        if redacted.findings or violations:
            note = redacted.note
            return msgspec.structs.replace(
                result,
                notes=(note, *result.notes) if note else result.notes,
                violations=tuple(violations),
            )
        return result


def encode_or_spill(fact: Fact) -> IntakeResult:
    """A redacted fact as it is stored, with the blobs that take what is too big for it."""
    data = encode_fact(fact)
    if len(data) > PAYLOAD_CHARACTERS:
        spill = plan_spill(fact)
        if spill is not None:
            return IntakeResult(spill.fact, encode_fact(spill.fact), (spill.note,), spill.blobs)
    return IntakeResult(fact, data)
