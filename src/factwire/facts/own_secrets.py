r"""Secrets that an operator names: patterns of their own, and values that must never be stored.

They are replaced before any other rule looks at a text, wherever they stand in it; a value also in
its base64, URL-encoded and JSON-escaped forms. A pattern is a regular expression that is matched
without ever going back and that has a longest match, so that a search takes linear time and works
on text that arrives in pieces: what may become a secret waits, and the joined pieces come out as
the whole text would.

What is declared holds for the process, and for everything that reads or writes facts in it. Nothing
here reads a file or the environment, and no value is ever written or shown.
"""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import chain, pairwise
from string import ascii_letters, digits
from typing import Any, Final

import msgspec

from factwire.facts.secret_key_names import REDACTED, is_secret_word
from factwire.facts.secret_rules import RuleStep, full_pattern, opening_pattern, run_step

SHORTEST_VALUE: Final = 8
"""Characters of the shortest value that is hidden; shorter ones turn up everywhere."""

MOST_VALUES: Final = 1_000
MOST_PATTERNS: Final = 100

LONGEST_RUN: Final = 256
"""Characters of the longest run in a pattern."""

LONGEST_MATCH: Final = 1_024
"""Characters of the longest match of a pattern: what may become one waits in a stream."""

_LONGEST_PIECE: Final = 256
_SHORTEST_LINE: Final = 12
_SHOWABLE: Final = 3
"""Characters of a value that a record of an unfinished text may hold."""

_MOST_ALTERNATIVES: Final = 24
_LEAST_FIXED: Final = 4
_BEFORE: Final = "\n"


class PatternError(ValueError):
    """A pattern that cannot be used: what it would have to be."""


class OwnPattern(msgspec.Struct, frozen=True):
    """A regular expression under the name that notes show."""

    name: str
    pattern: str


class PatternPart(msgspec.Struct, frozen=True):
    """Characters as a class, and how many; `most` is None without a bound."""

    characters: frozenset[str]
    least: int = 1
    most: int | None = 1


class PatternSequence(msgspec.Struct, frozen=True):
    """One alternative of a pattern, and whether a word has to begin or to end with it."""

    parts: tuple[PatternPart, ...]
    starts_word: bool = False
    ends_word: bool = False


GOES_BACK: Final = (
    "a pattern that needs no going back: after a run of varying length, a character that is not "
    "in it"
)


def read_pattern(pattern: str) -> list[PatternSequence]:
    """The alternatives of a regular expression of literals, classes, groups of alternatives and
    counted runs; raises `PatternError` for any other.
    """
    try:
        parsed = import_module("re._parser").parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(f"a regular expression: {error}") from error
    ways = _read_sequence(parsed)
    if parsed.state.flags & re.IGNORECASE:
        ways = [[_ignore_case(part) for part in way] for way in ways]
    return [_to_sequence(way) for way in ways]


_Way = list[PatternPart | None]
"""Parts in their order; None is a boundary of a word."""


def _read_sequence(parsed: Iterable[Any]) -> list[_Way]:
    found: list[_Way] = [[]]
    for operator, argument in parsed:
        ways = _read_one(str(operator), argument)
        found = [before + way for before in found for way in ways]
        if len(found) > _MOST_ALTERNATIVES:
            raise PatternError(f"at most {_MOST_ALTERNATIVES} alternatives")
    return found


def _read_one(operator: str, argument: Any) -> list[_Way]:
    if operator == "LITERAL":
        return [[PatternPart(frozenset(chr(argument)))]]
    if operator == "IN":
        return [[PatternPart(_read_class(argument))]]
    if operator == "BRANCH":
        return [way for branch in argument[1] for way in _read_sequence(branch)]
    if operator == "SUBPATTERN" and not argument[1]:
        return _read_sequence(argument[3])
    if operator in ("MAX_REPEAT", "POSSESSIVE_REPEAT"):
        return [_read_repeat(*argument)]
    if operator == "AT" and str(argument) == "AT_BOUNDARY":
        return [[None]]
    raise PatternError("literals, classes, alternatives and counted runs only")


def _read_repeat(least: int, most: Any, inner: Any) -> _Way:
    ways = _read_sequence(inner)
    part = ways[0][0] if len(ways) == len(ways[0]) == 1 else None
    if part is None or part.most != 1:
        raise PatternError("runs of one class of characters only, none inside another")
    return [PatternPart(part.characters, least, None if str(most) == "MAXREPEAT" else int(most))]


_CATEGORIES: Final = {
    "CATEGORY_DIGIT": "0-9",
    "CATEGORY_WORD": "A-Za-z0-9_",
    "CATEGORY_SPACE": " \t\r\n",
}


def _read_class(items: Iterable[Any]) -> frozenset[str]:
    characters: set[str] = set()
    for operator, argument in items:
        if str(operator) == "LITERAL":
            characters.add(chr(argument))
        elif str(operator) == "RANGE" and argument[1] < 128:  # noqa: PLR2004
            characters.update(map(chr, range(argument[0], argument[1] + 1)))
        elif str(operator) == "CATEGORY" and str(argument) in _CATEGORIES:
            pattern = re.compile(f"[{_CATEGORIES[str(argument)]}]")
            characters.update(c for c in map(chr, range(128)) if pattern.match(c))
        else:
            raise PatternError("classes that list their characters, in ASCII")
    return frozenset(characters)


def _ignore_case(part: PatternPart | None) -> PatternPart | None:
    if part is None:
        return None
    both = {each for sign in part.characters for each in (sign, sign.lower(), sign.upper())}
    signs = frozenset(sign for sign in both if len(sign) == 1)
    return PatternPart(signs, part.least, part.most)


def _to_sequence(way: _Way) -> PatternSequence:
    parts = tuple(part for part in way if part is not None)
    if None in way[1:-1]:
        raise PatternError(r"\b at its beginning and its end only")
    ends = len(way) > 1 and way[-1] is None
    return PatternSequence(parts, starts_word=way[:1] == [None], ends_word=ends)


def compile_pattern(own: OwnPattern) -> list[tuple[str, str]]:
    """The alternatives of a pattern: what matches one, and what matches a text that ends within
    one; raises `PatternError`.
    """
    found = [_compile_sequence(sequence) for sequence in read_pattern(own.pattern)]
    if any(re.search(full, REDACTED) for full, _ in found):
        raise PatternError(f"a pattern that does not match {REDACTED}")
    return found


def _compile_sequence(sequence: PatternSequence) -> tuple[str, str]:
    parts = [part for part in sequence.parts if part.most != 0]
    bounds = [part.most for part in parts if part.most is not None and part.most <= LONGEST_RUN]
    if len(bounds) < len(parts):
        raise PatternError(f"runs with an upper bound of at most {LONGEST_RUN}, such as {{8,64}}")
    if sum(part.least for part in parts) < _LEAST_FIXED:
        raise PatternError(f"a pattern that matches at least {_LEAST_FIXED} characters")
    if sum(bounds) > LONGEST_MATCH:
        raise PatternError(f"a pattern that matches at most {LONGEST_MATCH} characters")
    if any(_goes_back(parts, place) for place in range(len(parts))):
        raise PatternError(GOES_BACK)
    steps = [run_step(to_class(part.characters), part.least, part.most) for part in parts]
    steps += [RuleStep(r"(?![A-Za-z0-9_])", r"\Z")] if sequence.ends_word else []
    before = "(?<![A-Za-z0-9_])" if sequence.starts_word else ""
    return before + full_pattern(steps), before + _nonempty_opening(steps, parts[0])


def _nonempty_opening(steps: list[RuleStep], first: PatternPart) -> str:
    """An opening of at least one character; the first run may be of none."""
    any_first = f"(?=[{to_class(first.characters)}])" if first.least else r"(?!\Z)"
    return any_first + opening_pattern(steps)


def _goes_back(parts: list[PatternPart], place: int) -> bool:
    """Whether a run of varying length may take what the rest of the pattern needs."""
    part = parts[place]
    if part.least == part.most:
        return False
    for following in parts[place + 1 :]:
        if part.characters & following.characters:
            return True
        if following.least:
            return False
    return False


def to_class(characters: frozenset[str]) -> str:
    """A class of characters as patterns write it: ranges first, other signs by their numbers."""
    left, text = set(characters), ""
    for span in ("AZ", "az", "09", "AF", "af"):
        between = {chr(code) for code in range(ord(span[0]), ord(span[1]) + 1)}
        if between <= left:
            left -= between
            text += f"{span[0]}-{span[1]}"
    signs = sorted(left, key=lambda sign: (sign == "-", sign))
    return text + "".join(
        sign
        if (sign.isascii() and sign.isalnum()) or sign in "_/+=." or (sign == "-" and len(left) > 1)
        else f"\\x{ord(sign):02x}"
        if ord(sign) < 256  # noqa: PLR2004
        else f"\\U{ord(sign):08x}"
        for sign in signs
    )


def is_usable_value(value: str) -> bool:
    """Whether a value can be hidden: not a short one, which turns up everywhere, and not a word
    such as ``password``, by which other secrets are found.
    """
    return (
        len(value.strip()) >= SHORTEST_VALUE
        and value not in REDACTED
        and REDACTED not in value
        and not is_secret_word(value)
    )


def _needles_of(value: str) -> set[str]:
    """Every text that gives a value away: the value, its lines, and each of them encoded."""
    lines = value.splitlines() if "\n" in value else []
    whole = [value, *(line.strip() for line in lines if len(line.strip()) >= _SHORTEST_LINE)]
    forms = set(chain.from_iterable(map(_forms_of, whole)))
    return {piece for form in forms for piece in _cut(form)}


def _forms_of(text: str) -> Iterator[str]:
    yield text
    for escaped in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
        yield from (escaped, escaped.replace("/", "\\/"), json.dumps(escaped)[1:-1])
    data = text.encode("utf-8", "surrogatepass")
    for safe in ("", "/", "!'()*"):
        for code in ("%{:02X}", "%{:02x}"):
            encoded = _encode_url(data, safe, code)
            yield from (encoded, encoded.replace(code.format(ord(" ")), "+"))
    for before in range(3):
        # Characters that the bytes around the value have a part in are left out.
        first, last = -(-8 * before // 6), 8 * (before + len(data)) // 6
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(bytes(before) + data).decode()[first:last]


def _encode_url(data: bytes, safe: str, code: str) -> str:
    plain = f"{ascii_letters}{digits}_.-~{safe}".encode()
    return "".join(chr(byte) if byte in plain else code.format(byte) for byte in data)


def _cut(text: str) -> Iterator[str]:
    """The text in pieces of about the same length."""
    count = -(-len(text) // _LONGEST_PIECE)
    edges = [len(text) * place // count for place in range(count + 1)]
    return (text[start:end] for start, end in pairwise(edges))


class OwnSecrets:
    """What has been declared, and the search for it."""

    def __init__(self) -> None:
        self.is_active = False
        self._patterns: dict[OwnPattern, list[tuple[str, str]]] = {}
        self._values: dict[str, str] = {}
        self._rules: list[str] = []
        self._names: dict[str, str] = {}
        self._by_start: dict[str, list[str]] = {}
        self._longest = 0
        self._full = self._openings = self._firsts = re.compile("(?!)")

    def declare(
        self, patterns: Iterable[OwnPattern] = (), values: Mapping[str, str] | None = None
    ) -> None:
        """Add patterns, and values with the names that notes show for them; raises `PatternError`.
        Values that cannot be hidden (`is_usable_value`) are left out.
        """
        new = {own: compile_pattern(own) for own in patterns if own not in self._patterns}
        named = values or {}
        usable = {v: named[v] for v in named if is_usable_value(v) and v not in self._values}
        if new or usable:
            self._patterns |= new
            self._values |= usable
            self._build()

    def clear(self) -> None:
        """Forget everything."""
        vars(self).update(vars(OwnSecrets()))

    @property
    def pattern_count(self) -> int:
        return len(self._patterns)

    @property
    def value_count(self) -> int:
        return len(self._values)

    def _build(self) -> None:
        needles = {needle: name for v, name in self._values.items() for needle in _needles_of(v)}
        self._names = {needle: f"never-store:{name}" for needle, name in needles.items()}
        self._by_start = {}
        by_first: dict[str, list[str]] = {}
        for needle in sorted(needles, key=lambda text: (-len(text), text)):
            by_first.setdefault(needle[0], []).append(re.escape(needle))
            self._by_start.setdefault(needle[:2], []).append(needle)
        self._longest = max(map(len, needles), default=0)
        values = "|".join("|".join(same) for same in by_first.values()) or "(?!)"
        compiled = [(own, each) for own, found in self._patterns.items() for each in found]
        self._rules = [f"own:{own.name}" for own, _ in compiled]
        self._full = re.compile("|".join(f"({p})" for p in (values, *(c[0] for _, c in compiled))))
        openings = "|".join(opening for _, (_, opening) in compiled)
        self._openings = re.compile(openings or "(?!)")
        self._firsts = re.compile(f"[{to_class(frozenset(by_first))}]" if by_first else "(?!)")
        self.is_active = True

    def find(self, text: str) -> list[tuple[int, int, str]]:
        """Start, end and rule of each, in order, never overlapping."""
        return [(*match.span(), self._rule_of(match)) for match in self._full.finditer(text)]

    def concerns(self, text: str) -> bool:
        """Whether one is, or begins, in a text."""
        return self._full.search(text) is not None or self._find_opening(text, 0) < len(text)

    def holds(self, text: str) -> bool:
        """Whether one is in a text."""
        return self._full.search(text) is not None

    def replace(self, text: str) -> tuple[str, list[str]]:
        """The text with each of them replaced, and the rules that fired."""
        shown, _, rules = self.take(_BEFORE, text, at_end=True)
        return shown, rules

    def clean_bytes(self, data: bytes) -> bytes:
        """The same for bytes of any kind; the very same ones where there is nothing to replace."""
        for encoding in ("utf-8", "latin-1"):
            try:
                text = data.decode(encoding)
            except UnicodeDecodeError:
                continue
            return self.replace(text)[0].encode(encoding) if self.holds(text) else data
        return data

    def take(self, state: str, text: str, *, at_end: bool = False) -> tuple[str, str, list[str]]:
        """What may be shown after a further piece of a text, the state that goes with the next one,
        and the rules that fired. A text begins in the state of `BEGIN`.
        """
        if not state:
            return self._go_on_after_cut(text, at_end=at_end)
        # The character before what waits decides whether a word begins there.
        text = state + text
        pieces: list[str] = []
        rules: list[str] = []
        at = 1
        while True:
            opening = len(text) if at_end else self._find_opening(text, at)
            match = self._full.search(text, at)
            if match is None or match.start() >= opening:
                break
            pieces += text[at : match.start()], REDACTED
            rules.append(self._rule_of(match))
            at = match.end()
        pieces.append(text[at:opening])
        return "".join(pieces), text[opening - 1 :], rules

    def _go_on_after_cut(self, text: str, *, at_end: bool) -> tuple[str, str, list[str]]:
        space = re.search(r"\s", text)
        if space is None and not at_end:
            return "", "", []
        start = space.start() if space else len(text)
        shown, state, rules = self.take(_BEFORE, text[start:], at_end=at_end)
        return REDACTED + shown, state, ["never-store:cut", *rules]

    def to_record(self, state: str) -> str:
        """The state as it may be written to a disk: the start of a value is left out, so that what
        follows it up to the next white space will count as the rest of it.
        """
        held = state[1:]
        is_value = len(held) > _SHOWABLE and any(
            needle.startswith(held) for needle in self._by_start.get(held[:2], ())
        )
        return "" if is_value else state

    def _find_opening(self, text: str, start: int) -> int:
        """Where the first one starts that the end of the text cuts off; its length if none does."""
        found = self._openings.search(text, start)
        opening = found.start() if found else len(text)
        for first in self._firsts.finditer(text, max(start, len(text) - self._longest + 1)):
            place = first.start()
            if place >= opening:
                break
            rest = text[place:]
            if len(rest) == 1 or any(
                len(needle) > len(rest) and needle.startswith(rest)
                for needle in self._by_start.get(rest[:2], ())
            ):
                return place
        return opening

    def _rule_of(self, match: re.Match[str]) -> str:
        group = match.lastindex or 1
        return self._names[match[0]] if group == 1 else self._rules[group - 2]


BEGIN: Final = _BEFORE
"""The state of a text of which nothing has come."""

OWN_SECRETS: Final = OwnSecrets()
"""Those of this process."""
