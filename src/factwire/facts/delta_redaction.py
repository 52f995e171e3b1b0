"""Redaction of text that arrives in pieces.

Whatever the pieces, what comes out, joined, is the redacted whole, and no part of a secret comes
out before it is known to be one. A piece waits only while it may still become a secret: a token
that has begun like one, the value of an assignment to a secret's name, the user part of a URL, an
open private key. Everything else passes at once.

A stream keeps a few characters that were already shown (names stand before their values) and what
it holds back. A secret that grows past the bound is already known to be one: it is shown as
replaced, and the rest of it is swallowed without being kept.
"""

import re
from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Final, NamedTuple

import msgspec

from factwire.facts.own_secrets import BEGIN, OWN_SECRETS
from factwire.facts.secret_key_names import REDACTED, may_name_secret
from factwire.facts.secret_rules import (
    SECRET_SHAPES,
    LazyPattern,
    SecretMatch,
    SecretShape,
    SecretTail,
    tail_of,
)
from factwire.facts.secret_shapes import (
    CAPITAL_NAME,
    ends_in_name,
    find_names,
    find_open_assignment,
    find_open_login,
    holds_quote,
    holds_separator,
    may_hold_option,
    may_hold_token,
    scan_secrets,
)

__all__ = ["DeltaRedactor", "SavedText", "compile_openings"]

STREAMS_KEPT: Final = 4_096
"""Streams kept; with the oldest goes what it held back, unseen."""

LOST_STREAMS: Final = 16_384
"""Streams that were dropped inside a secret, remembered by key alone."""

HELD_CHARACTERS: Final = 4_096
"""Characters held back before a secret is shown as replaced and swallowed; heads are shorter."""

CONTEXT_CHARACTERS: Final = 192
"""Characters already shown that are kept, more than any name with its separator is long."""

_CONTEXT_SLACK: Final = 1_024

_LOOK: Final = len(REDACTED)
"""Characters before a place that decide whether a secret may start there."""

_LOOSE_LEAD: Final = 24
"""Characters of the longest lead with a colon of its own: a scheme, or the number of a bot."""

_START: Final = "\n" * _LOOK


def _any_opening(shapes: list[SecretShape]) -> LazyPattern:
    """One pattern; the boundary and the first character are looked at once for all of a kind."""
    kinds = {
        shape.boundary: [s for s in shapes if s.boundary == shape.boundary] for shape in shapes
    }
    return LazyPattern("|".join(_kind_pattern(*kind) for kind in kinds.items()))


def _kind_pattern(boundary: str, shapes: list[SecretShape]) -> str:
    """The first character, which is looked at before anything else, leaves a few shapes to try."""
    by_first: dict[str, list[str]] = {}
    for shape in shapes:
        for first in dict.fromkeys(word[0] for word in shape.triggers):
            by_first.setdefault(first, []).append(shape.opening)
    firsts = "".join(map(re.escape, sorted(by_first)))
    tries = (f"(?={re.escape(first)})(?:{'|'.join(each)})" for first, each in by_first.items())
    return f"(?=[{firsts}]){boundary}(?:{'|'.join(tries)})"


_REGULAR: Final = [shape for shape in SECRET_SHAPES if not shape.loose]
_TOKENS: Final = _any_opening([shape for shape in _REGULAR if not shape.spaced])
_SPACED: Final = _any_opening([shape for shape in _REGULAR if shape.spaced])
_URLS, _NUMBERED = (
    [
        LazyPattern(shape.opening)
        for shape in SECRET_SHAPES
        if shape.loose and (shape.triggers == ("://",)) is is_url
    ]
    for is_url in (True, False)
)
"""Leads of any text: of a URL, which ends in its mark, and of a bot, whose number does."""


def compile_openings() -> None:
    """Compile the patterns for pieces of texts now: a server would hold its event loop with it when
    the first piece comes.
    """
    for opening in (_TOKENS, _SPACED, *_URLS, *_NUMBERED):
        opening.search("")


_LETTERED: Final = tuple(
    trigger for shape in _REGULAR for trigger in shape.triggers if trigger.isalnum()
)
_SMALL_LETTERS: Final = tuple(
    trigger for trigger in _LETTERED if trigger.isalpha() and trigger.islower()
)


def _beginnings_of(shapes: list[SecretShape]) -> frozenset[str]:
    triggers = [trigger for shape in shapes for trigger in shape.triggers]
    return frozenset(word[:end] for word in triggers for end in range(1, len(word) + 1))


_BEGINNINGS: Final = _beginnings_of(_REGULAR)
_AFTER_SPACE: Final = _beginnings_of([s for s in _REGULAR if not s.boundary.startswith("(?<=")])
"""Those that need nothing before them."""

_INSIDE_WORDS: Final = tuple(
    beginning
    for beginning in _beginnings_of(
        [s for s in _REGULAR if s.boundary.startswith("(?<=") and not s.boundary.endswith(".)")]
    )
    if beginning.isalnum()
)
"""Letters that begin a secret behind other letters; few, so that few words wait for the next."""

_NEVER_INSIDE: Final = frozenset(",;!?)\n")

_ALONE: Final = frozenset("\"'`()[]{}<>*#|/+&@^~")
"""Signs that begin no secret; after a word they may belong to one."""

_LONG: Final = 64
"""Characters held back that are not searched again with each letter that follows."""

_WORD_SIGNS: Final = re.compile(r"[A-Za-z0-9_+/=-]*+")
_OPTION_BEGINS: Final = re.compile(r"--|(?:^| )-(?!\s)")

_CLOSING: Final = 128
"""Characters of a closing mark, at most."""

_NAMES: Final = 96
"""Characters already shown in which a name stands that a quote follows."""

_UNTIL_SPACE: Final = tail_of(r"^\s")


class _Opening(NamedTuple):
    """`named`: a name, which was shown, waits for its value."""

    start: int
    value: int
    is_named: bool


class _Stream:
    __slots__ = ("armed", "calm", "context", "due", "held", "own", "swallowing")

    def __init__(self) -> None:
        self.armed = False
        self.calm = True
        self.context = _START
        self.due = 0
        self.held = ""
        self.own = BEGIN
        self.swallowing: SecretTail | None = None

    def copy(self) -> "_Stream":
        twin = _Stream()
        twin.armed, twin.calm, twin.context = self.armed, self.calm, self.context
        twin.due, twin.held, twin.swallowing = self.due, self.held, self.swallowing
        twin.own = self.own
        return twin

    @property
    def pending(self) -> str:
        """All that is held back."""
        return self.held + self.own[1:]


class SavedTail(msgspec.Struct, frozen=True, array_like=True):
    """The patterns of a `SecretTail`."""

    run: str
    full: str
    opening: str

    @classmethod
    def of(cls, tail: SecretTail) -> "SavedTail":
        return cls(tail.run.pattern, tail.full.pattern, tail.opening.pattern)

    def restore(self) -> SecretTail:
        return SecretTail(*map(LazyPattern, (self.run, self.full, self.opening)))


class SavedText(msgspec.Struct, frozen=True, array_like=True):
    """One text in the middle of its pieces; `held` may be a part of a secret, and `own` the start
    of what may become one of the operator's own.
    """

    context: str
    held: str
    armed: bool
    calm: bool
    swallowing: SavedTail | None
    own: str = BEGIN


class TextChanges(NamedTuple):
    """The texts that a fork was fed, and those that ended."""

    streams: dict[Hashable, _Stream]
    removed: Collection[Hashable]
    lost: dict[Hashable, SecretTail]


class DeltaRedactor:
    """Feed it the pieces of any number of texts, each under a key of its own."""

    def __init__(self, streams: int = STREAMS_KEPT) -> None:
        self._limit = streams
        self._streams: dict[Hashable, _Stream] = {}
        self._lost: dict[Hashable, SecretTail] = {}
        self._last_key: Hashable = None
        self._last: _Stream | None = None
        self._base: dict[Hashable, _Stream] = {}
        self._removed: dict[Hashable, None] = {}

    def fork(self) -> "DeltaRedactor":
        """A redactor that goes on from here by itself, at the cost of the texts it is fed."""
        twin = DeltaRedactor(self._limit)
        twin._base, twin._lost = self._streams, self._lost.copy()
        return twin

    def changes(self) -> "TextChanges":
        """What a fork was fed, for the redactor that it was forked from."""
        return TextChanges(self._streams, self._removed, self._lost)

    def join(self, changes: "TextChanges") -> None:
        """Become what a fork has become; only one of the forks of a state can be joined."""
        for key in changes.removed:
            self._streams.pop(key, None)
        self._streams |= changes.streams
        self._lost, self._last_key = changes.lost, None
        while len(self._streams) > self._limit:
            self._lose(next(iter(self._streams)))

    @property
    def has_changed(self) -> bool:
        """Whether this fork was fed anything."""
        return bool(self._streams or self._removed)

    @property
    def has_waited(self) -> bool:
        """Whether a text that this fork was fed is or was in a state that what is shown of it does
        not tell: something is held back, or the next characters will be judged otherwise.
        """
        before = (self._base.get(key) for key in (*self._streams, *self._removed))
        return any(
            each is not None and not each.calm for each in (*before, *self._streams.values())
        )

    def extend(self, key: Hashable, shown: str) -> None:
        """Take a piece that was shown as it came."""
        stream = self._find(key) or self._begin(key)
        stream.context = (stream.context + shown)[-CONTEXT_CHARACTERS:]

    def drop_calm(self, is_over: Callable[[Hashable], bool]) -> None:
        """Forget texts of which nothing waits and of which nothing more is expected."""
        over = [key for key, each in self._streams.items() if each.calm and is_over(key)]
        for key in over:
            self.drop(key)

    @property
    def is_holding(self) -> bool:
        """Whether any stream holds text back."""
        return any(stream.pending for stream in self._streams.values())

    def pending_text(self, key: Hashable) -> str:
        """What this stream holds back; secret, perhaps."""
        stream = self._find(key)
        return stream.pending if stream else ""

    def pass_through(self, key: Hashable, text: str) -> bool:
        """Whether all of a piece may be shown at once; if not, it has not been taken."""
        if key is self._last_key:  # Most pieces go on with the text before; a key is long to hash.
            stream = self._last
        else:
            self._last_key, self._last = key, self._streams.get(key) or self._find(key)
            stream = self._last
        if stream is None or not stream.calm:
            return False
        if OWN_SECRETS.is_active and OWN_SECRETS.concerns(text):
            return False
        letters = text.replace(" ", "")
        if letters.islower() and letters.isalpha() and letters.isascii():
            # Words in small letters hold nothing; the last one may begin something.
            word = text[text.rfind(" ") + 1 :]
            beginnings = _BEGINNINGS if word is text else _AFTER_SPACE
            if (word in beginnings or word.startswith(_SMALL_LETTERS)) and (
                word is not text or not _ends_inside_word(stream.context)
            ):
                return False
        elif not _is_plain(text) or (
            holds_quote(text) and may_name_secret(stream.context[-_NAMES:] + text)
        ):
            return False
        stream.context += text
        if len(stream.context) > _CONTEXT_SLACK:
            stream.context = stream.context[-CONTEXT_CHARACTERS:]
        if OWN_SECRETS.is_active and text:
            stream.own = text[-1]
        return True

    def feed(self, key: Hashable, text: str) -> tuple[str, list[str]]:
        """What may be shown now, and the rules that fired; `text` itself when all of it passes."""
        stream = self._find(key) or self._begin(key)
        if self.pass_through(key, text):
            return text, []
        if not OWN_SECRETS.is_active and len(stream.own) == 1:
            return _feed(stream, text)
        text, stream.own, own = OWN_SECRETS.take(stream.own, text)
        shown, rules = _feed(stream, text) if text else ("", [])
        stream.calm = stream.calm and not stream.pending and bool(stream.own)
        return shown, own + rules

    def flush(self, key: Hashable) -> tuple[str, list[str]]:
        """The rest, at the end of the text; a secret in it is replaced."""
        stream = self._find(key)
        self.drop(key)
        if stream is None:
            return "", []
        own: list[str] = []
        if len(stream.own) != 1:
            rest, _, own = OWN_SECRETS.take(stream.own, "", at_end=True)
            stream.held += rest
        if stream.swallowing is not None:
            _swallow(stream, stream.swallowing, at_end=True)
        shown, rules = _settle(stream, at_end=True)
        return shown, own + rules

    def drop(self, key: Hashable) -> None:
        """Forgets a stream and what it held back."""
        self._last_key = None
        self._streams.pop(key, None)
        self._lost.pop(key, None)
        if key in self._base:
            self._removed[key] = None

    def abandon(self, key: Hashable) -> str:
        """What to show in place of what a stream holds back, when that cannot wait for the rest: it
        counts as a secret, and the rest of it will be swallowed.
        """
        held = self.pending_text(key)
        if held:
            self._lose(key)
        return REDACTED if held else ""

    def save(self) -> dict[Hashable, SavedText]:
        """Every text that goes on, to be taken up by `restore`. A text that was dropped inside a
        secret is saved as one that swallows the rest of it.
        """
        lost = {
            key: SavedText(_START, "", armed=False, calm=False, swallowing=SavedTail.of(tail))
            for key, tail in self._lost.items()
        }
        before = {key: each for key, each in self._base.items() if key not in self._removed}
        streams = before | self._streams
        return lost | {key: _save_stream(stream) for key, stream in streams.items()}

    def restore(self, saved: dict[Hashable, SavedText]) -> None:
        """Go on with the texts that were saved."""
        for key, text in saved.items():
            stream = self._begin(key)
            stream.context, stream.held = text.context, text.held
            stream.armed, stream.calm = text.armed, text.calm
            stream.swallowing = text.swallowing.restore() if text.swallowing else None
            stream.own = text.own

    def _find(self, key: Hashable) -> _Stream | None:
        """A stream of this redactor's own; a fork copies it before it is changed."""
        stream = self._streams.get(key)
        if stream is None and key in self._base and key not in self._removed:
            stream = self._streams[key] = self._base[key].copy()
        return stream

    def _begin(self, key: Hashable) -> _Stream:
        self._last_key = None
        stream = _Stream()
        lost = self._lost.pop(key, None)
        if lost is not None:
            stream.swallowing, stream.calm = lost, False
        self._streams[key] = stream
        if len(self._streams) > self._limit:
            self._lose(next(iter(self._streams)))
        return stream

    def _lose(self, key: Hashable) -> None:
        stream = self._streams.pop(key)
        self._last_key = None
        if key in self._base:
            self._removed[key] = None
        if not stream.calm:
            self._lost[key] = stream.swallowing or _UNTIL_SPACE
        if len(self._lost) > LOST_STREAMS:
            del self._lost[next(iter(self._lost))]


def _save_stream(stream: _Stream) -> SavedText:
    tail = None if stream.swallowing is None else SavedTail.of(stream.swallowing)
    context = stream.context[-CONTEXT_CHARACTERS:]
    own = OWN_SECRETS.to_record(stream.own)
    return SavedText(context, stream.held, stream.armed, stream.calm, tail, own)


def _is_plain(text: str) -> bool:
    """Whether a piece, on a stream at rest, neither holds nor begins anything; quick, and wrong
    only by saying no.
    """
    if ":" in text or "=" in text or ">" in text or (not text.isascii() and holds_separator(text)):
        return False
    if "B" in text and ("Bearer" in text or "Bot" in text):
        return False
    word = text[text.rfind(" ") + 1 :]
    if word and not _has_plain_end(word):
        return False
    if "-" in text and _OPTION_BEGINS.search(text):
        return False
    return not ("_" in text and CAPITAL_NAME.search(text)) and not may_hold_token(text)


def _has_plain_end(word: str) -> bool:
    """Whether no secret has begun in the last word of a piece."""
    if word.isascii() and word.isalnum():
        if word.endswith(_INSIDE_WORDS):
            return False
        return word not in _BEGINNINGS and not word.startswith(_LETTERED)
    last = word[-1]
    if last == ".":
        return len(word) == 1 or (word not in _BEGINNINGS and _has_plain_end(word[:-1]))
    return last in _NEVER_INSIDE or not last.isascii() or word in _ALONE


def _feed(stream: _Stream, text: str) -> tuple[str, list[str]]:
    stream.held += text
    if stream.due > len(stream.held) and _WORD_SIGNS.fullmatch(text):
        return "", []  # The same as if this piece and the next had come in one.
    if stream.swallowing is not None and not _swallow(stream, stream.swallowing):
        return "", []
    return _settle(stream)


def _swallow(stream: _Stream, rest: SecretTail, *, at_end: bool = False) -> bool:
    """Drops what belongs to a secret that is already shown as replaced; true when it is over."""
    goes_on = not at_end and rest.opening.match(stream.held) is not None
    match = (rest.run if goes_on else rest.full).match(stream.held)
    end = match.end() if match else 0
    stream.context = (stream.context + stream.held[:end])[-_LOOK:]
    stream.held = stream.held[end:]
    if not goes_on:
        stream.swallowing = None
    return not goes_on


def _settle(stream: _Stream, *, at_end: bool = False) -> tuple[str, list[str]]:
    """Shows all that no later text can change."""
    # Without a sign that may end a name, names that were shown before have nothing to say.
    held = stream.held
    named = stream.armed or holds_separator(held)
    if not named and ("-" in held or "_" in held or holds_quote(held)):
        near = stream.context[-CONTEXT_CHARACTERS:] + held
        named = may_name_secret(near) or may_hold_option(near)
    context = stream.context[-CONTEXT_CHARACTERS if named else -_LOOK :]
    text = context + stream.held
    names = find_names(text, len(context)) if named else []
    matches = scan_secrets(text, _LOOK, names) if named or may_hold_token(text) else iter(())
    found = next(matches, None)
    pieces: list[str] = []
    rules: list[str] = []
    at, shown = _LOOK, len(context)
    openings_from = at
    opening = _Opening(len(text) if at_end else -1, len(text), is_named=False)
    while True:
        openings_from = max(at, openings_from)
        if opening.start < openings_from and not at_end:
            # The first one from an earlier place on is the first one from here on, too.
            opening = _find_opening(text, openings_from, shown, names if named else None)
        if found is not None and found.start < opening.start:
            pieces += text[shown : found.value], REDACTED
            rules.append(found.rule)
            at = shown = found.end
            found = next(matches, None)
            continue
        hold = min(opening.value, found.value if found else opening.value)
        if len(text) - hold <= HELD_CHARACTERS or at_end:
            break
        if found is not None and found.start == opening.start and found.rest is not None:
            _swallow_from(stream, text, found)
            return "".join((*pieces, text[shown : found.value], REDACTED)), [*rules, found.rule]
        # So long and still no secret: it has failed, and something behind it may be open.
        openings_from = opening.start + 1
    pieces.append(text[shown:hold])
    stream.held = text[hold:]
    before = text[at - _LOOK : shown] if rules else stream.context
    stream.context = (before + text[shown:hold])[-CONTEXT_CHARACTERS:]
    stream.due = _next_look(len(stream.held))
    stream.armed = opening.is_named
    stream.calm = not (stream.armed or stream.held or _ends_in_escape(stream.context))
    return "".join(pieces), rules


def _next_look(held: int) -> int:
    """How much has to be held before letters and digits behind it are worth another look: what is
    held is searched again each time, so that it has to grow by a share of itself.
    """
    return 0 if held < _LONG else min(held + held // 4, HELD_CHARACTERS)


def _swallow_from(stream: _Stream, text: str, match: SecretMatch) -> None:
    """A secret longer than the bound: its head is far behind, the rest is swallowed."""
    inside = match.value + HELD_CHARACTERS - _CLOSING
    stream.context, stream.held = text[inside - _LOOK : inside], text[inside:]
    stream.swallowing, stream.armed, stream.calm, stream.due = match.rest, False, False, 0
    if match.rest is not None:
        _swallow(stream, match.rest)


def _ends_inside_word(context: str) -> bool:
    """Whether what follows goes on with a word, behind which no token starts."""
    return context[-1].isalnum() and context[-2] != "\\" and "%" not in context[-3:]


def _ends_in_escape(context: str) -> bool:
    return context[-1] == "\\" or "%" in context[-2:]


def _find_opening(text: str, at: int, shown: int, names: list[int] | None) -> _Opening:
    """Where the first thing starts that the end of the text cuts off, and the first value.

    Only a name may start in what was shown already.
    """
    start = len(text)
    last_word = max(text.rfind(" "), text.rfind("\n"), text.rfind("\t")) + 1
    if match := _TOKENS.search(text, max(at, shown, last_word)):
        start = match.start()
    first = max(at, shown)
    if text.find("-", first) >= 0 or text.find("B", first) >= 0:
        match = _SPACED.search(text, first)
        start = min(start, match.start()) if match else start
    if names is None:
        return _Opening(start, start, is_named=ends_in_name(text))
    return _named_opening(text, at, start, names)


def _loose_leads(text: str, at: int) -> Iterator[tuple[LazyPattern, int]]:
    """The openings that may stand in a text, with the place of the mark that each one needs."""
    colon, scheme = text.rfind(":"), text.rfind("://")
    if scheme >= at:
        yield from ((pattern, scheme) for pattern in _URLS)
    elif text.endswith((":", ":/")):
        yield from ((pattern, colon) for pattern in _URLS)
    if colon > at and text[colon - 1].isdigit():
        yield from ((pattern, colon) for pattern in _NUMBERED)


def _named_opening(text: str, at: int, start: int, names: list[int]) -> _Opening:
    value, named = start, False
    for pattern, place in _loose_leads(text, at):
        if match := pattern.search(text, max(at, place - _LOOSE_LEAD)):
            start, named = min(start, match.start()), True
            value = min(value, match.start(match.lastindex or 1))
    openings = (
        find_open_assignment(text, at, names) if names else None,
        find_open_login(text, at) if "-" in text or "auth" in text else None,
        (len(text), len(text)) if ends_in_name(text) else None,
    )
    for opened in filter(None, openings):
        start, value, named = min(start, opened[0]), min(value, opened[1]), True
    return _Opening(start, value, is_named=named)
