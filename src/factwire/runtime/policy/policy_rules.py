"""A rule as text, `Tool` or `Tool(pattern)`, and patterns over a row of words: the segments of
a path, the words of a command.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, Literal

import msgspec

from factwire.runtime.policy.policy_request import TOOL_EFFECTS, Effect, fold_tool_name

ANY: Final = None

Step = re.Pattern[str] | None
Steps = tuple[Step, ...]
Words = Sequence[str | None]


def step(pieces: Iterable[str | None], *, folded: bool = False) -> re.Pattern[str]:
    """One word from pieces: text is literal, None is any characters."""
    parts = (".*" if piece is None else re.escape(_as(piece, folded=folded)) for piece in pieces)
    return re.compile("".join(parts), re.DOTALL)


def fold(word: str) -> str:
    """A word without case and compatibility forms, as some file systems compare names."""
    return word if word.isascii() and word.islower() else _casefold(word)


def _casefold(word: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word).casefold())


def _as(piece: str, *, folded: bool) -> str:
    return fold(piece) if folded else piece


def matches(steps: Steps, words: Words) -> bool:
    """Whether the words match, whatever the unknown ones turn out to be."""
    return len(steps) in _walk(steps, words, possible=False)


def may_match(steps: Steps, words: Words) -> bool:
    """Whether the words could match; an unknown one may become several, or none."""
    return len(steps) in _walk(steps, words, possible=True)


def covers_below(steps: Steps, words: Words) -> bool:
    """Whether everything below a folder matches: the pattern ends there in any number of words."""
    last = len(steps) - 1
    return last >= 0 and steps[last] is ANY and last in _walk(steps, words, possible=False)


def may_match_below(steps: Steps, words: Words) -> bool:
    """Whether something at or below a folder could match."""
    return bool(_walk(steps, words, possible=True))


def _walk(steps: Steps, words: Words, *, possible: bool) -> set[int]:
    """The places in the pattern that can be reached by taking all words."""
    places = _skip_any(steps, {0})
    for word in words:
        if word is None and possible:
            places = set(range(min(places), len(steps) + 1)) if places else places
        else:
            places = _skip_any(steps, _advance(steps, places, word))
    return places


def _advance(steps: Steps, places: set[int], word: str | None) -> set[int]:
    after = set[int]()
    for place in places:
        if place == len(steps):
            continue
        wanted = steps[place]
        if wanted is None:
            after.add(place)
        elif word is not None and wanted.fullmatch(word):
            after.add(place + 1)
    return after


def _skip_any(steps: Steps, places: set[int]) -> set[int]:
    """`ANY` may stand for no word at all."""
    closed = set(places)
    for place in sorted(places):
        end = place
        while end < len(steps) and steps[end] is ANY:
            end += 1
            closed.add(end)
    return closed


PatternKind = Literal["command", "path", "domain"]

FAMILIES: Final[dict[str, Effect]] = {
    "read": "read",
    "edit": "edit",
    "write": "edit",
    "bash": "run",
}
"""Names that stand for every tool with that effect, so that no other name gets round them."""

LONGEST: Final = 2_000
"""Characters of one rule: no rule that a person can check is longer."""

_TEXT: Final = re.compile(r"(?P<tool>[A-Za-z0-9_.:/*-]+)(?:\((?P<pattern>.*)\))?", re.DOTALL)
_DOMAIN: Final = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?", re.IGNORECASE)
_PREFIX: Final = "domain:"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")

Token = tuple[str | None, ...]
"""A word of a command pattern: literal pieces, and None for a star."""


class RuleError(ValueError):
    """A text that is no rule; says what was expected."""

    code = "rule_invalid"


class PolicyRule(msgspec.Struct, frozen=True):
    """One rule; whether it allows, asks or denies is said by the list that it stands in."""

    tool: str
    pattern: str | None = None

    def __post_init__(self) -> None:
        _check(self)

    def __str__(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"

    @property
    def kind(self) -> PatternKind | None:
        """What the pattern is about; None where there is no pattern."""
        if self.pattern is None:
            return None
        effect = TOOL_EFFECTS.get(fold_tool_name(self.tool))
        if effect == "run":
            return "command"
        domain = self.pattern.startswith(_PREFIX) and effect not in ("read", "edit")
        return "domain" if domain else "path"

    @property
    def domain(self) -> str:
        """The host of a domain pattern, in small letters."""
        return (self.pattern or "").removeprefix(_PREFIX).lower()


def parse_rule(text: str) -> PolicyRule:
    """The rule that a text states; raises `RuleError`."""
    found = _TEXT.fullmatch(text.strip(" "))
    if found is None:
        raise RuleError(f"expected Tool or Tool(pattern), got {text[:200]!r}")
    return PolicyRule(found["tool"], found["pattern"])


def name_matches(rule: PolicyRule, tool: str) -> bool:
    """Whether the rule's name, with its stars, is that of the tool."""
    return _name(rule.tool).fullmatch(fold_tool_name(tool)) is not None


@lru_cache(maxsize=1_024)
def _name(tool: str) -> re.Pattern[str]:
    return step(_split_stars(fold_tool_name(tool)))


@lru_cache(maxsize=4_096)
def path_steps(pattern: str, *, folded: bool) -> tuple[bool, Steps]:
    """Whether the pattern is absolute, and its segments."""
    absolute, segments = path_pattern(pattern)
    steps = tuple(
        ANY if part == "**" else step(_split_stars(part), folded=folded) for part in segments
    )
    return absolute, steps


def path_pattern(pattern: str) -> tuple[bool, list[str]]:
    """Whether a pattern is absolute, and the text of its segments."""
    ending = "**" if pattern.endswith("/") else ""
    segments = [part for part in (pattern + ending).split("/") if part not in ("", ".")]
    return pattern.startswith("/"), segments


@lru_cache(maxsize=4_096)
def command_steps(pattern: str) -> Steps:
    """The words of a command pattern."""
    return tuple(_command_step(token) for token in command_tokens(pattern))


def _command_step(token: Token) -> Step:
    return ANY if token == (None,) else step(token)


def command_tokens(pattern: str) -> list[Token]:
    """The words of a command pattern, quotes and backslashes taken out."""
    text = f"{pattern[:-2]} *" if pattern.endswith(":*") else pattern
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        if text[at] == " ":
            at += 1
        else:
            token, at = _token(text, at)
            tokens.append(token)
    return tokens


def _token(text: str, at: int) -> tuple[Token, int]:
    pieces: list[str | None] = [""]
    quote = ""
    while at < len(text) and (quote or text[at] != " "):
        char = text[at]
        if char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        elif char == "\\" and quote != "'":
            at += 1
            _add(pieces, text[at : at + 1])
        elif char == "*" and not quote:
            pieces += (None, "")
        else:
            _add(pieces, char)
        at += 1
    if quote or at > len(text):
        raise RuleError(f"unclosed quote or trailing backslash in {text[:200]!r}")
    kept = tuple(piece for piece in pieces if piece != "")
    return kept or ("",), at


def _add(pieces: list[str | None], char: str) -> None:
    pieces[-1] = (pieces[-1] or "") + char


def quote_word(word: str) -> str:
    """A word as a command pattern states it, whatever is in it."""
    if _PLAIN.fullmatch(word) and not word.endswith(":*"):
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def _split_stars(text: str) -> list[str | None]:
    pieces: list[str | None] = []
    for index, part in enumerate(re.split(r"\*+", text)):
        if index:
            pieces.append(None)
        if part:
            pieces.append(part)
    return pieces


def _check(rule: PolicyRule) -> None:
    text = str(rule)
    if len(text) > LONGEST or not text.isprintable():
        raise RuleError(f"expected at most {LONGEST} printable characters, got {text[:200]!r}")
    if _TEXT.fullmatch(text) is None or "(" in rule.tool:
        raise RuleError(f"expected Tool or Tool(pattern), got {text[:200]!r}")
    if rule.pattern is not None:
        _check_pattern(rule, rule.pattern)


def _check_pattern(rule: PolicyRule, pattern: str) -> None:
    if not pattern.strip(" "):
        raise RuleError(f"expected a pattern between the brackets of {rule}, or no brackets")
    if "*" in rule.tool:
        raise RuleError(f"a pattern needs one tool, not {rule.tool!r}; write Read(…), Bash(…)")
    if rule.kind == "command":
        command_tokens(pattern)
    elif rule.kind == "domain" and not _DOMAIN.fullmatch(rule.domain):
        raise RuleError(f"expected domain:example.org or domain:*.example.org, got {pattern!r}")
    elif rule.kind == "path":
        _check_path(pattern)


def _check_path(pattern: str) -> None:
    segments = pattern.split("/")
    if ".." in segments:
        raise RuleError(f"a path pattern cannot contain '..', got {pattern!r}")
    if pattern.startswith("~"):
        raise RuleError(f"write out the home folder instead of '~', got {pattern!r}")
    if "\\" in pattern:
        raise RuleError(f"separate the segments of a path with '/', got {pattern!r}")
    if any("**" in part and part != "**" for part in segments):
        raise RuleError(f"'**' must be a path segment of its own, got {pattern!r}")
