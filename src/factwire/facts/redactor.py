"""Redaction of facts in stream order, before the first write.

Whatever a fact holds is searched: payload, title, detail, refs and unknown fields. Text that
arrives in pieces is searched across the pieces: what may be the beginning of a secret is held back
and comes out with the next piece, or with the fact that closes the text, unless that one brings the
whole text itself. One fact in, one fact out, so that sequences stay as they are.
"""

from typing import Any, Final

import msgspec

from factwire.facts.delta_redaction import DeltaRedactor
from factwire.facts.fact import Fact
from factwire.facts.ids import id_of
from factwire.facts.notes import note_about
from factwire.facts.redaction import Finding, redact_text, redact_value
from factwire.facts.refs import REF_LISTS
from factwire.facts.text_pieces import CLOSERS, PIECES, Pieces, TextKey, closes, text_key
from factwire.facts.vocabulary import TURN_TERMINALS

_NOTE_CLASS: Final = "output.redacted"

_SHORT: Final = 64
_REMEMBERED: Final = 8_192


class Redacted(msgspec.Struct, frozen=True):
    """A fact that is safe to store, and what was hidden in it."""

    fact: Fact
    findings: tuple[Finding, ...] = ()

    @property
    def note(self) -> Fact | None:
        """The `output.redacted` fact that records what was hidden, without the secret."""
        if not self.findings:
            return None
        redacted = [{"path": found.path, "rule": found.rule} for found in self.findings]
        return note_about(self.fact, _NOTE_CLASS, {"redacted": redacted})


class _Clean:
    """Short texts in which nothing was found, such as titles and ids: they come again and again.

    Bounded by starting over, which costs one more search of each.
    """

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._texts: set[str] = set()

    def has(self, text: str) -> bool:
        return text in self._texts

    def covers(self, payload: dict[str, Any], searched: str) -> bool:
        """Whether every entry but `searched` is a text that was found clean under a clean key."""
        texts, keys = self._texts, self._keys
        for key, value in payload.items():
            if key != searched and (
                value.__class__ is not str or value not in texts or key not in keys
            ):
                return False
        return True

    def learn(self, payload: dict[str, Any]) -> None:
        """Take the entries of a payload in which nothing was found."""
        for key, value in payload.items():
            if isinstance(value, str) and len(key) <= _SHORT:
                self._keys.add(key)
                self.learn_text(value)

    def learn_text(self, text: str) -> None:
        if len(text) <= _SHORT:
            self._texts.add(text)
        if len(self._texts) + len(self._keys) > _REMEMBERED:
            self._texts.clear()
            self._keys.clear()


class Redactor:
    """Feed it the facts of one or many streams, in order."""

    def __init__(self) -> None:
        self._deltas = DeltaRedactor()
        self.passes = self._deltas.passes
        self._held: dict[TextKey, None] = {}
        self._clean = _Clean()

    def feed(self, fact: Fact) -> Redacted:
        """The fact as it may be stored."""
        event_class = fact.event_class or ""
        pieces = PIECES.get(event_class)
        if pieces is not None:
            return self._piece(fact, pieces)
        closing = CLOSERS.get(event_class)
        if closing is not None:
            return self._close(fact, *closing)
        if self._held and event_class in TURN_TERMINALS:
            return self._redacted(fact, self._withhold(fact))
        return self._redacted(fact, [])

    def feed_whole(self, fact: Fact) -> Redacted:
        """The fact as it may be stored when it is no piece of a text that goes on."""
        return self._redacted(fact, [])

    def _piece(self, fact: Fact, pieces: Pieces) -> Redacted:
        text = fact.payload.get(pieces.key)
        if not isinstance(text, str):
            return self._redacted(fact, [])
        key = text_key(fact, pieces)
        shown, rules = self._deltas.feed(key, text)
        if shown is text:
            return self._redacted(fact, [], searched=pieces.key)
        self._remember(key)
        path = f"$.payload.{pieces.key}"
        findings = [Finding(path, f"value:{rule}") for rule in rules]
        changed = msgspec.structs.replace(fact, payload={**fact.payload, pieces.key: shown})
        return self._redacted(changed, findings, searched=pieces.key)

    def _remember(self, key: TextKey) -> None:
        if self._deltas.pending(key):
            self._held[key] = None
        else:
            self._held.pop(key, None)

    def _close(self, fact: Fact, piece_class: str, whole: str) -> Redacted:
        """A fact that ends a text; what was held back of it goes along, unless the fact brings the
        whole text itself.
        """
        pieces = PIECES[piece_class]
        findings: list[Finding] = []
        for key in [key for key in self._held if closes(fact, pieces, key)]:
            del self._held[key]
            rest, rules = self._deltas.flush(key)
            if fact.payload.get(whole) is None and rest:
                fact = _with_rest(fact, pieces.key, rest)
                findings += [Finding(f"$.payload.{pieces.key}", f"value:{rule}") for rule in rules]
        self._deltas.drop(text_key(fact, pieces))
        return self._redacted(fact, findings)

    def _withhold(self, fact: Fact) -> list[Finding]:
        """A turn ended in the middle of a text: what was held back may be half a secret, and no
        fact is left that could carry it.
        """
        turn = id_of(fact, "turnId")
        ended = [key for key in self._held if key[0] == turn]
        for key in ended:
            del self._held[key]
            self._deltas.drop(key)
        return [Finding(f"$.{key[1]}", "withheld:unfinished") for key in ended]

    def _redacted(self, fact: Fact, findings: list[Finding], *, searched: str = "") -> Redacted:
        """All of a fact redacted but the payload's `searched` key, which has been dealt with."""
        clean = self._clean
        changes: dict[str, Any] = {}
        if not clean.covers(fact.payload, searched):
            findings = findings + self._redact_payload(fact.payload, searched, changes)
        if not clean.has(fact.title):
            findings = findings + self._redact_line(fact.title, "title", changes)
        if fact.detail:
            findings = findings + self._redact_line(fact.detail, "detail", changes)
        if fact.extra:
            changes["extra"], found = redact_value(fact.extra, "$")
            findings = findings + found
        if fact.ref_ids or fact.artifact_refs or fact.evidence_refs:
            findings = findings + _redact_refs(fact, changes)
        if not changes and not findings:
            return Redacted(fact)
        return Redacted(msgspec.structs.replace(fact, **changes), tuple(findings))

    def _redact_payload(
        self, payload: dict[str, Any], searched: str, changes: dict[str, Any]
    ) -> list[Finding]:
        others = {key: payload[key] for key in payload if key != searched}
        safe, findings = redact_value(others, "$.payload")
        if findings:
            changes["payload"] = safe | {searched: payload[searched]} if searched else safe  # pyright: ignore[reportOperatorIssue, reportUnknownVariableType]
        else:
            self._clean.learn(others)
        return findings

    def _redact_line(self, text: str, name: str, changes: dict[str, Any]) -> list[Finding]:
        safe, rules = redact_text(text)
        if rules:
            changes[name] = safe
        else:
            self._clean.learn_text(text)
        return [Finding(f"$.{name}", f"value:{rule}") for rule in rules]


def redact_fact(fact: Fact) -> Redacted:
    """One fact by itself, without regard to the pieces before or after it."""
    return Redactor().feed_whole(fact)


def _redact_refs(fact: Fact, changes: dict[str, object]) -> list[Finding]:
    findings: list[Finding] = []
    for attribute, name in REF_LISTS.items():
        clean, found = redact_value(list(getattr(fact, attribute)), f"$.{name}")
        if found:
            changes[attribute] = tuple(clean)  # pyright: ignore[reportArgumentType, reportUnknownArgumentType]
            findings += found
    return findings


def _with_rest(fact: Fact, key: str, rest: str) -> Fact:
    before = fact.payload.get(key)
    text = before + rest if isinstance(before, str) else rest
    return msgspec.structs.replace(fact, payload={**fact.payload, key: text})
