"""A rule as text: `Tool`, or `Tool(pattern)`.

    Read  Edit  Write  Bash     every tool that reads; edits (both names); runs commands
    search  mcp__github__*      the tool of that name, case aside; `*` is any characters
    *                           every tool
    Bash(git status *)          a command, word by word; a lone `*` is any number of words
    Bash(npm run test:*)        the same as `npm run test *`
    Read(src/**)  Write(./docs/**)  a path in the workspace; `**` is any number of folders
    Edit(docs/)                 the same as `Edit(docs/**)`
    Read(/etc/hosts)            a path that begins with / is absolute
    WebFetch(domain:example.org)    a host; `*.example.org` is every host below it

A star inside a word or segment is any characters of it. In a command, quotes and backslashes make
a star or a space plain, as in a shell. Nothing else is special, and what cannot be read is refused
when the rule is made, not when it should have protected somebody.
"""

import re
from functools import lru_cache
from typing import Final, Literal

import msgspec

from factwire.runtime.policy.requests import TOOL_EFFECTS, Effect, lowered
from factwire.runtime.policy.steps import ANY, Step, Steps, step

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


class Rule(msgspec.Struct, frozen=True):
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
        effect = TOOL_EFFECTS.get(lowered(self.tool))
        if effect == "run":
            return "command"
        domain = self.pattern.startswith(_PREFIX) and effect not in ("read", "edit")
        return "domain" if domain else "path"

    @property
    def domain(self) -> str:
        """The host of a domain pattern, in small letters."""
        return (self.pattern or "").removeprefix(_PREFIX).lower()


def parse_rule(text: str) -> Rule:
    """The rule that a text states; raises `RuleError`."""
    found = _TEXT.fullmatch(text.strip(" "))
    if found is None:
        raise RuleError(f"expected Tool or Tool(pattern), got {text[:200]!r}")
    return Rule(found["tool"], found["pattern"])


def name_matches(rule: Rule, tool: str) -> bool:
    """Whether the rule's name, with its stars, is that of the tool."""
    return _name(rule.tool).fullmatch(lowered(tool)) is not None


@lru_cache(maxsize=1_024)
def _name(tool: str) -> re.Pattern[str]:
    return step(_starred(lowered(tool)))


@lru_cache(maxsize=4_096)
def path_steps(pattern: str, *, folded: bool) -> tuple[bool, Steps]:
    """Whether the pattern is absolute, and its segments."""
    ending = "**" if pattern.endswith("/") else ""
    segments = [part for part in (pattern + ending).split("/") if part not in ("", ".")]
    steps = tuple(ANY if part == "**" else step(_starred(part), folded=folded) for part in segments)
    return pattern.startswith("/"), steps


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
        raise RuleError(f"a quote or backslash is left open in {text[:200]!r}")
    kept = tuple(piece for piece in pieces if piece != "")
    return kept or ("",), at


def _add(pieces: list[str | None], char: str) -> None:
    pieces[-1] = (pieces[-1] or "") + char


def quoted(word: str) -> str:
    """A word as a command pattern states it, whatever is in it."""
    if _PLAIN.fullmatch(word) and not word.endswith(":*"):
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def _starred(text: str) -> list[str | None]:
    pieces: list[str | None] = []
    for index, part in enumerate(re.split(r"\*+", text)):
        if index:
            pieces.append(None)
        if part:
            pieces.append(part)
    return pieces


def _check(rule: Rule) -> None:
    text = str(rule)
    if len(text) > LONGEST or not text.isprintable():
        raise RuleError(f"expected at most {LONGEST} printable characters, got {text[:200]!r}")
    if _TEXT.fullmatch(text) is None or "(" in rule.tool:
        raise RuleError(f"expected Tool or Tool(pattern), got {text[:200]!r}")
    if rule.pattern is not None:
        _check_pattern(rule, rule.pattern)


def _check_pattern(rule: Rule, pattern: str) -> None:
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
        raise RuleError(f"a path pattern may not climb with '..', as {pattern!r} does")
    if pattern.startswith("~"):
        raise RuleError(f"write the home folder out, instead of '~' in {pattern!r}")
    if "\\" in pattern:
        raise RuleError(f"segments of a path are parted by '/', not as in {pattern!r}")
    if any("**" in part and part != "**" for part in segments):
        raise RuleError(f"'**' stands for whole folders, between slashes; not as in {pattern!r}")
