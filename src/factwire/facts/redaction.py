"""Replacing secrets by ``[redacted]``: in text, in nested data, and in facts in stream order.

A value under a key that names a secret is replaced whole; elsewhere only the secret part of a
text is. Data without secrets comes back as the very same object, and redacting twice changes
nothing. Text that arrives in pieces is searched across the pieces: what may be the beginning of a
secret is held back until the next piece or the fact that closes the text. One fact in, one out.
"""

import re
from collections.abc import Callable, Collection, Iterator
from copy import copy
from functools import lru_cache
from typing import Any, Final, cast

import msgspec

from factwire.facts.classes.class_tables import TEXT_ENDS, TEXT_PIECES, TURN_TERMINALS
from factwire.facts.classes.specification import TextEnd, TextPieces
from factwire.facts.delta_fast_path import (
    INCREMENT,
    KEY_FAMILY,
    KEY_NAME,
    KEY_TURN,
    TextKey,
    ends_text,
    piece_names,
    pieces_of,
    text_key,
)
from factwire.facts.delta_redaction import DeltaRedactor, SavedText, TextChanges
from factwire.facts.derived_facts import build_note
from factwire.facts.fact import Fact, id_of
from factwire.facts.issues import path_step
from factwire.facts.limits import NESTING_DEPTH
from factwire.facts.own_secrets import OWN_SECRETS
from factwire.facts.refs import REF_LISTS
from factwire.facts.secret_key_names import (
    REDACTED,
    may_name_secret,
    names_secret,
    secret_kind,
    secret_name,
    weak_name,
)
from factwire.facts.secret_shapes import (
    Secret,
    find_ruled_secrets,
    find_secrets,
    is_assigned_secret,
    may_hold_login,
    may_hold_secret,
)

_DEPTH_RULE: Final = "depth"


class RedactionFinding(msgspec.Struct, frozen=True):
    """Where something was hidden, and by which rule; never what."""

    path: str
    rule: str


class _Replacement(msgspec.Struct, frozen=True):
    """The replacement of a value, and the findings with paths relative to it."""

    value: object
    findings: list[RedactionFinding]


def redact_text(text: str) -> tuple[str, list[str]]:
    """The text with each secret replaced, and the rules that fired: the operator's own come first,
    and what they leave is searched by the others.
    """
    own: list[str] = []
    if OWN_SECRETS.is_active and OWN_SECRETS.holds(text):
        text, own = OWN_SECRETS.replace(text)
    secrets = find_ruled_secrets(text)
    if not secrets:
        return text, own
    pieces: list[str] = []
    end = 0
    for secret in secrets:
        pieces += text[end : secret.start], REDACTED
        end = secret.end
    pieces.append(text[end:])
    return "".join(pieces), [*own, *(secret.rule for secret in secrets)]


_BREAK: Final = re.compile(r"[\s\"'`;&|<>$(){}\\]")
_SAFE_PART: Final = re.compile(r"[A-Za-z0-9+/=]{16,}+")


def find_secret_spans(text: str) -> list[Secret]:
    """The secrets of a text whose other characters must stay readable, such as a command: no span
    reaches past white space, a quote, an operator, a substitution or a backslash.

    A secret that holds such a sign is covered up to the first one; behind it only parts that
    cannot be anything else are, such as the lines of a private key.
    """
    return [span for secret in find_secrets(text) for span in _cut_secret(text, secret)]


def _cut_secret(text: str, secret: Secret) -> Iterator[Secret]:
    start, end = secret.start, secret.end
    while start < end:
        found = _BREAK.search(text, start, end)
        stop = found.start() if found else end
        if stop > start and (start == secret.start or _SAFE_PART.fullmatch(text, start, stop)):
            yield Secret(start, stop, secret.rule)
        start = stop + 1


def redact_value(value: object, path: str = "$") -> tuple[object, list[RedactionFinding]]:
    """The data with each secret replaced; the very same object when there is none."""
    hidden = _redact(value, 0)
    if hidden is None:
        return value, []
    return hidden.value, _prefix_paths(path, hidden.findings)


def find_in_value(value: object, path: str = "$") -> list[RedactionFinding]:
    """What `redact_value` would hide."""
    return redact_value(value, path)[1]


def _redact(value: object, depth: int) -> _Replacement | None:
    """None when there is nothing to hide."""
    kind = type(value)
    if kind is str:
        return _redact_string(cast("str", value))
    if kind is dict:
        return _redact_mapping(cast("dict[object, object]", value), depth)
    if kind is list or kind is tuple:
        return _redact_items(cast("list[object] | tuple[object, ...]", value), depth)
    return None


def _redact_string(text: str) -> _Replacement | None:
    if not may_hold_secret(text):
        return None
    redacted, rules = redact_text(text)
    if not rules:
        return None
    return _Replacement(redacted, [RedactionFinding("", f"value:{rule}") for rule in rules])


def _redact_items(items: list[object] | tuple[object, ...], depth: int) -> _Replacement | None:
    if depth >= NESTING_DEPTH:
        return _TOO_DEEP
    changed: list[object] | None = None
    findings: list[RedactionFinding] = []
    before: object = None
    for place, item in enumerate(items):
        hidden = _redact_named_item(before, item) or _redact(item, depth + 1)
        before = item
        if hidden is not None:
            changed = list(items) if changed is None else changed
            changed[place] = hidden.value
            findings += _prefix_paths(f"[{place}]", hidden.findings)
    if changed is None:
        return None
    return _Replacement(tuple(changed) if isinstance(items, tuple) else changed, findings)


_HEADER: Final = re.compile(r"[A-Za-z0-9_.-]{2,64}")
_LABEL: Final = re.compile(r"[\w.-]{1,64}(?:[ ][\w.-]{1,64}){0,2}")
_NO_ARGUMENT: Final = ("-", "$", "<", "{", "[redacted]")


def _redact_named_item(before: object, item: object) -> _Replacement | None:
    """An item of a list that the item before names: the argument of a flag, the value of a header.
    After a flag anything is one, after a plain name only what looks like a credential.
    """
    if type(before) is not str or type(item) is not str or not item:
        return None
    if before[:1] == "-" and ":" in item and may_hold_login(f"{before} {item}"):
        return _redact_login(before, item)
    if not may_name_secret(before) or not _HEADER.fullmatch(before):
        return None
    name = secret_name(before)
    if name is None or not names_secret(before, item):
        return None
    if before[0] == "-":
        found = not item.startswith(_NO_ARGUMENT)
    else:
        found = is_assigned_secret(before, item)
    return _Replacement(REDACTED, [RedactionFinding("", f"key:{name}")]) if found else None


def _redact_login(before: str, item: str) -> _Replacement | None:
    """The argument of a login, which is one only behind its option."""
    lead = f"{before} "
    redacted, rules = redact_text(lead + item)
    if not redacted.startswith(lead) or not rules:
        return None
    findings = [RedactionFinding("", f"value:{rule}") for rule in rules]
    return _Replacement(redacted[len(lead) :], findings)


def _named_values(mapping: dict[object, object]) -> dict[object, _Replacement]:
    """The values of an object that is one entry of a list of names and values, or one operation of
    a patch.
    """
    for name in _names_of_values(mapping):
        found: dict[object, _Replacement] = {
            key: _Replacement(REDACTED, [RedactionFinding("", f"key:{kind}")])
            for key in VALUE_KEYS
            if key in mapping and (kind := secret_kind(name, mapping[key]))
        }
        if found or secret_name(name):
            return found
    return {}


def _names_of_values(mapping: dict[object, object]) -> Iterator[str]:
    for label in _LABEL_KEYS:
        name = mapping.get(label)
        if type(name) is str and _LABEL.fullmatch(name):
            yield name
    path = mapping.get("path")
    steps = path.split("/") if type(path) is str else path
    for step in reversed(cast("list[object]", steps)) if type(steps) is list else ():
        if type(step) is str:
            yield step.replace("~1", "/").replace("~0", "~")


_LABEL_KEYS: Final = ("name", "key", "header", "variable", "env", "field", "k")
VALUE_KEYS: Final = frozenset(("value", "val", "values", "v"))
"""Fields whose meaning another field of the same object names."""


def _redact_mapping(mapping: dict[object, object], depth: int) -> _Replacement | None:
    if depth >= NESTING_DEPTH:
        return _TOO_DEEP
    replaced = _named_values(mapping) if not VALUE_KEYS.isdisjoint(mapping) else {}
    secret_keys: dict[object, _Replacement] = {}
    for key, value in mapping.items():
        if key in replaced:
            continue
        if isinstance(key, str) and not _is_plain_key(key):
            if found := _redact_string(key):
                secret_keys[key] = found
            if (kind := secret_kind(key, value)) is not None:
                replaced[key] = _Replacement(REDACTED, [RedactionFinding("", f"key:{kind}")])
                continue
        # Most values are numbers, and texts without a secret, which cost one call.
        if value.__class__ in _NUMBERS or (
            value.__class__ is str and not may_hold_secret(cast("str", value))
        ):
            continue
        hidden = _redact(value, depth + 1)
        if hidden is not None:
            replaced[key] = hidden
    if not replaced and not secret_keys:
        return None
    return _rebuild_mapping(mapping, replaced, secret_keys)


_NUMBERS: Final = frozenset((int, float, bool, type(None)))


def _is_plain_key(key: str) -> bool:
    """Whether a key neither holds a secret nor may name one."""
    return (
        len(key) <= _SHORT
        and _is_clean_key(key)
        and not (OWN_SECRETS.is_active and OWN_SECRETS.holds(key))
    )


@lru_cache(maxsize=4_096)
def _is_clean_key(key: str) -> bool:
    return not may_hold_secret(key) and secret_name(key) is None and weak_name(key) is None


_TOO_DEEP: Final = _Replacement(REDACTED, [RedactionFinding("", _DEPTH_RULE)])


def _rebuild_mapping(
    mapping: dict[object, object],
    replaced: dict[object, _Replacement],
    secret_keys: dict[object, _Replacement],
) -> _Replacement:
    changed: dict[object, object] = {}
    findings: list[RedactionFinding] = []
    for key, value in mapping.items():
        hidden = replaced.get(key)
        name = _free_name(changed, mapping) if key in secret_keys else key
        changed[name] = value if hidden is None else hidden.value
        step = _key_step(name) if name is key else REDACTED
        if key in secret_keys:
            findings += _prefix_paths(step, secret_keys[key].findings)
        if hidden is not None:
            findings += _prefix_paths(step, hidden.findings)
    return _Replacement(changed, findings)


def _free_name(taken: dict[object, object], mapping: dict[object, object]) -> str:
    """Two secret keys of one object must not fall onto one name."""
    name, count = REDACTED, 1
    while name in taken or name in mapping:
        count += 1
        name = f"{REDACTED} {count}"
    return name


def _key_step(key: object) -> str:
    return path_step(key) if isinstance(key, str) else f"[{key}]"


def _prefix_paths(step: str, findings: list[RedactionFinding]) -> list[RedactionFinding]:
    return [RedactionFinding(step + finding.path, finding.rule) for finding in findings]


_NOTE_CLASS: Final = "output.redacted"

_SHORT: Final = 64
_REMEMBERED: Final = 8_192


class RedactedFact(msgspec.Struct, frozen=True):
    """A fact that is safe to store, and what was hidden in it."""

    fact: Fact
    findings: tuple[RedactionFinding, ...] = ()

    @property
    def note(self) -> Fact | None:
        """The `output.redacted` fact that records what was hidden, without the secret."""
        if not self.findings:
            return None
        redacted = [{"path": found.path, "rule": found.rule} for found in self.findings]
        return build_note(self.fact, _NOTE_CLASS, {"redacted": redacted})


class _CleanTexts:
    """Short texts in which nothing was found, such as titles and ids: they come again and again.

    Bounded by starting over, which costs one more search of each.
    """

    def __init__(self) -> None:
        # Unlike sets, dicts of texts are no work for the garbage collector, and there are many.
        self._keys: dict[str, None] = {}
        self._texts: dict[str, None] = {}

    def has(self, text: str) -> bool:
        return text in self._texts

    def covers(self, payload: dict[str, Any], searched: Collection[str]) -> bool:
        """Whether every entry but those `searched` is a text found clean under a clean key."""
        texts, keys = self._texts, self._keys
        for key, value in payload.items():
            if key not in searched and (
                value.__class__ is not str or value not in texts or key not in keys
            ):
                return False
        return True

    def learn(self, payload: dict[str, Any]) -> None:
        """Take the entries of a payload in which nothing was found."""
        for key, value in payload.items():
            if isinstance(value, str) and len(key) <= _SHORT and key not in VALUE_KEYS:
                # Under a name of a secret each value is looked at by itself.
                if secret_name(key) is None and weak_name(key) is None:
                    self._keys[key] = None
                self.learn_text(value)

    def learn_text(self, text: str) -> None:
        if len(text) <= _SHORT:
            self._texts[text] = None
        if len(self._texts) + len(self._keys) > _REMEMBERED:
            self._texts.clear()
            self._keys.clear()


class Redactor:
    """Feed it the facts of one or many streams, in order."""

    def __init__(self) -> None:
        self._deltas = DeltaRedactor()
        self.pass_through = self._deltas.pass_through
        self._held: dict[TextKey, None] = {}
        self._clean = _CleanTexts()

    def feed(self, fact: Fact) -> RedactedFact:
        """The fact as it may be stored."""
        event_class = fact.event_class or ""
        pieces = TEXT_PIECES.get(event_class)
        if pieces is None and INCREMENT in fact.payload:
            pieces = pieces_of(fact)
        if pieces is not None:
            return self._redact_pieces(fact, pieces)
        end = TEXT_ENDS.get(event_class)
        if end is not None:
            return self._redact_closing(fact, end)
        if self._held and event_class in TURN_TERMINALS:
            return self._redact_fields(fact, self._withhold_unfinished(fact))
        return self._redact_fields(fact, [])

    def feed_whole(self, fact: Fact) -> RedactedFact:
        """The fact as it may be stored when it is no piece of a text that goes on."""
        return self._redact_fields(fact, [])

    @property
    def held_texts(self) -> Collection[TextKey]:
        """The texts of which something is held back."""
        return self._held.keys()

    def release(self, key: TextKey) -> tuple[str, list[str]]:
        """The rest of a text that is known to be over; a secret in it is replaced."""
        self._held.pop(key, None)
        return self._deltas.flush(key)

    def abandon(self, key: TextKey) -> str:
        """What to show in place of what is held back of a text that goes on: it counts as a secret,
        whatever the rest of it is.
        """
        self._held.pop(key, None)
        return self._deltas.abandon(key)

    def save_texts(self) -> dict[TextKey, SavedText]:
        """The texts that go on, with what is held back of them."""
        return cast("dict[TextKey, SavedText]", self._deltas.save())

    def restore_texts(self, saved: dict[TextKey, SavedText]) -> None:
        """Go on with the texts that another redactor saved."""
        self._deltas.restore({**saved})
        self._held |= {key: None for key, text in saved.items() if text.held}

    def fork(self) -> "Redactor":
        """A redactor that goes on from here by itself."""
        twin, deltas = copy(self), self._deltas.fork()
        vars(twin).update(_deltas=deltas, pass_through=deltas.pass_through, _held=self._held.copy())
        return twin

    def changes(self) -> tuple[TextChanges, dict[TextKey, None]]:
        """What a fork was fed, for the redactor that it was forked from."""
        return self._deltas.changes(), self._held

    def join(self, twin: "Redactor") -> None:
        """Become what a fork has become."""
        changes, self._held = twin.changes()
        self._deltas.join(changes)

    @property
    def has_waited(self) -> bool:
        """Whether a text that this fork was fed cannot be told from what is stored of it alone."""
        return self._deltas.has_waited

    @property
    def has_changed(self) -> bool:
        """Whether this fork was fed a text or the end of one."""
        return self._deltas.has_changed

    def follow(self, stored: Fact) -> None:
        """Take a fact that is stored as it was sent, so that its text can go on behind it."""
        pieces, end = pieces_of(stored), TEXT_ENDS.get(stored.event_class or "")
        if pieces is not None:
            for name in piece_names(stored, pieces):
                self._deltas.extend(text_key(stored, pieces, name), stored.payload[name])
        elif end is not None:
            ended = TEXT_PIECES[end.pieces]
            for name in ended.keys:
                self._deltas.drop(text_key(stored, ended, name, end.pieces))

    def drop_texts(self, has_ended: Callable[[str | None], bool]) -> None:
        """Forget the texts of turns that have ended, but those of which something waits."""
        self._deltas.drop_calm(lambda key: has_ended(cast("TextKey", key)[KEY_TURN]))

    def _redact_pieces(self, fact: Fact, pieces: TextPieces) -> RedactedFact:
        names = piece_names(fact, pieces)
        if len(names) == 1:
            key = text_key(fact, pieces, names[0])
            if self.pass_through(key, fact.payload[names[0]]):
                return self._redact_fields(fact, [], searched=names)
        findings: list[RedactionFinding] = []
        changes: dict[str, str] = {}
        for name in names:
            text, key = fact.payload[name], text_key(fact, pieces, name)
            safe, rules = self._deltas.feed(key, text)
            if safe is not text:
                self._remember(key)
                changes[name] = safe
                findings += _findings_in(name, rules)
        if changes:
            fact = msgspec.structs.replace(fact, payload={**fact.payload, **changes})
        return self._redact_fields(fact, findings, searched=names)

    def _remember(self, key: TextKey) -> None:
        if self._deltas.pending_text(key):
            self._held[key] = None
        else:
            self._held.pop(key, None)

    def _redact_closing(self, fact: Fact, end: TextEnd) -> RedactedFact:
        """A fact that ends a text; what was held back of it goes along, unless the fact brings the
        whole text itself.
        """
        pieces, payload = TEXT_PIECES[end.pieces], fact.payload
        if not (self._held or pieces.other_keys or pieces.key in payload):
            self._deltas.drop(text_key(fact, pieces, pieces.key, end.pieces))
            return self._redact_fields(fact, [])
        searched: dict[str, str] = {}
        findings: list[RedactionFinding] = []
        has_whole = end.replaces_pieces and payload.get(end.key) is not None
        for key in self._texts_ended_by(fact, end, has_whole=has_whole):
            self._held.pop(key, None)
            own = fact.payload.get(key[KEY_NAME])
            name = key[KEY_NAME] if isinstance(own, str) else INCREMENT
            start, rules = self._deltas.feed(key, own) if isinstance(own, str) else ("", [])
            rest, more = self._deltas.flush(key)
            if not has_whole and (start or rest or isinstance(own, str)):
                searched[name] = searched.get(name, "") + start + rest
                findings += _findings_in(name, [*rules, *more])
        if searched:
            fact = msgspec.structs.replace(fact, payload={**fact.payload, **searched})
        for name in pieces.keys:
            self._deltas.drop(text_key(fact, pieces, name, end.pieces))
        return self._redact_fields(fact, findings, searched=searched)

    def _texts_ended_by(self, fact: Fact, end: TextEnd, *, has_whole: bool) -> list[TextKey]:
        """The texts of which something is held back, and those whose last piece the fact brings."""
        held = [key for key in self._held if ends_text(fact, end, key)]
        if has_whole:
            return held
        pieces, names = TEXT_PIECES[end.pieces], {key[KEY_NAME] for key in held}
        own = [name for name in piece_names(fact, pieces) if name not in end.whole_keys]
        new = [text_key(fact, pieces, name, end.pieces) for name in own if name not in names]
        return held + new

    def _withhold_unfinished(self, fact: Fact) -> list[RedactionFinding]:
        """A turn ended in the middle of a text: what was held back may be half a secret, and no
        fact is left that could carry it.
        """
        turn = id_of(fact, "turnId")
        unfinished = [key for key in self._held if key[KEY_TURN] == turn]
        for key in unfinished:
            del self._held[key]
            self._deltas.drop(key)
        return [
            RedactionFinding(f"$.{key[KEY_FAMILY]}", "withheld:unfinished") for key in unfinished
        ]

    def _redact_fields(
        self, fact: Fact, findings: list[RedactionFinding], *, searched: Collection[str] = ()
    ) -> RedactedFact:
        """All of a fact redacted but the payload's `searched` keys, which have been dealt with."""
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
            return RedactedFact(fact)
        return RedactedFact(msgspec.structs.replace(fact, **changes), tuple(findings))

    def _redact_payload(
        self, payload: dict[str, Any], searched: Collection[str], changes: dict[str, Any]
    ) -> list[RedactionFinding]:
        others = {key: payload[key] for key in payload if key not in searched}
        safe, findings = redact_value(others, "$.payload")
        if findings:
            changes["payload"] = safe | {key: payload[key] for key in searched}  # pyright: ignore[reportOperatorIssue, reportUnknownVariableType]
        else:
            self._clean.learn(others)
        return findings

    def _redact_line(self, text: str, name: str, changes: dict[str, Any]) -> list[RedactionFinding]:
        safe, rules = redact_text(text) if may_hold_secret(text) else (text, [])
        if rules:
            changes[name] = safe
        else:
            self._clean.learn_text(text)
        return [RedactionFinding(f"$.{name}", f"value:{rule}") for rule in rules]


def redact_fact(fact: Fact) -> RedactedFact:
    """One fact by itself, without regard to the pieces before or after it."""
    return Redactor().feed_whole(fact)


def _redact_refs(fact: Fact, changes: dict[str, object]) -> list[RedactionFinding]:
    findings: list[RedactionFinding] = []
    for attribute, name in REF_LISTS.items():
        clean, found = redact_value(list(getattr(fact, attribute)), f"$.{name}")
        if found:
            changes[attribute] = tuple(clean)  # pyright: ignore[reportArgumentType, reportUnknownArgumentType]
            findings += found
    return findings


def _findings_in(key: str, rules: list[str]) -> list[RedactionFinding]:
    return [RedactionFinding(f"$.payload.{key}", f"value:{rule}") for rule in rules]
