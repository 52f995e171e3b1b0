"""Bring the rules of the gitleaks project into the table of `factwire.facts.secret_rules`.

`python -m tools.secret_rules gitleaks.toml COMMIT` reads the file `config/gitleaks.toml` of a
commit and rewrites the rows between the two marks. Taken over are the rules of tokens that begin
with literals of their own, as steps that never go back; what a rule needs beyond that, or what the
table finds already, is listed and left out. gitleaks is under the MIT licence (© Zachary Rice).
"""

import re
import sys
import tomllib
from collections.abc import Iterable
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec

from factwire.facts.secret_rules import SECRET_RULES, SecretRule

TABLE: Final = Path("src/factwire/facts/secret_rules.py")
_START: Final = "# gitleaks-rules-begin"
_END: Final = "# gitleaks-rules-end"
_TERMINATOR: Final = re.compile(
    r"\(\?:\[\\x60'\"\\s;\]\|\\\\\[nr\]\|\$(?:\|\\b)?\)$|\(\?:\[\^\\w-\]\|\\z\)$"
)
_FLAG: Final = re.compile(r"\(\?i\)|\(\?-i:(\w+)\)|\(\?i:([^()]*)\)")
_SHORTEST_START: Final = 3
_LONGEST_NOTATION: Final = 88
_WORD_STARTS: Final = ("pat", "cmVmd")
"""Starts that words or encoded texts have, too, and that no rarer sign is part of."""


def main() -> None:
    source, commit = Path(sys.argv[1]), sys.argv[2]
    rows: dict[tuple[str, str], SecretRule] = {}
    for rule in tomllib.loads(source.read_text("utf-8"))["rules"]:
        try:
            for row in _read_rule(rule):
                rows.setdefault((row.value, row.rest or ""), row)
        except PatternError as error:
            print(f"left out: {rule['id']}: {error}")
    # Of two that begin alike the longer one has to come first.
    ordered = sorted(rows.values(), key=lambda row: (row.triggers[0], -len(row.value)))
    _write(commit, [row for row in ordered if not _is_covered(row)])


def _read_rule(rule: dict[str, Any]) -> list[SecretRule]:
    pattern = _TERMINATOR.sub("", rule.get("regex", "").replace("(?:[^a-zA-Z0-9+/]|\\z)", ""))
    if "(?i)" in pattern or "(?i:" in pattern:
        pattern = _spell_out(pattern)
    pattern = pattern.replace("[[:alnum:]]", "[A-Za-z0-9]")
    found = read_pattern(rule["id"], pattern)
    for row in found:
        if len(row.triggers[0]) < _SHORTEST_START or row.triggers[0] in _WORD_STARTS:
            raise PatternError("begins with no literal of its own")
        if len(row.value) > _LONGEST_NOTATION:
            raise PatternError("is longer than a line")
        if row.rest is None and row.value.endswith(row.triggers[0]):
            raise PatternError("is a literal")
    return found


def _spell_out(pattern: str) -> str:
    """The same with capitals in the classes that a flag makes blind to case."""
    head, mark, body = pattern.partition("(?i)")
    if not mark:
        return re.sub(r"\(\?i:([^()]*)\)", lambda found: _both_cases(found[1]), pattern)
    return head + _both_cases(body.replace("(?i)", "").replace("(?-i:", "(?:"))


def _both_cases(body: str) -> str:
    return re.sub(
        r"\[[^\]]*\]",
        lambda found: found[0].replace("a-z", "a-zA-Z").replace("a-f", "a-fA-F"),
        body,
    )


def _is_covered(row: SecretRule) -> bool:
    """Whether a row written by hand begins alike."""
    start = row.triggers[0]
    literals = (word for known in SECRET_RULES if not known.loose_lead for word in _starts(known))
    return any(len(word) >= _SHORTEST_START and start.startswith(word) for word in literals)


def _starts(row: SecretRule) -> list[str]:
    return (row.lead or row.value).split()[0].split("|")


def _write(commit: str, rows: list[SecretRule]) -> None:
    text = TABLE.read_text("utf-8")
    before, _, rest = text.partition(_START)
    after = rest.partition(_END)[2]
    table = "\n".join(("GITLEAKS_RULES: Final = (", *map(_to_line, rows), ")"))
    TABLE.write_text(f"{before}{_START} {commit}\n{table}\n{_END}{after}", "utf-8")
    print(f"{len(rows)} rows")


def _to_line(row: SecretRule) -> str:
    start = row.triggers[0]
    options = [f"rest={row.rest!r}"]
    # A start of letters alone may begin a long word, which has no digit, or stand inside base64.
    options += ["digit=True", "boundary=_OUTSIDE_BASE64"] if start.isalnum() else []
    options += [f"triggers=({start!r},)"] if start != row.value.split()[0] else []
    return f"    SecretRule({row.rule!r}, {row.value!r}, {', '.join(options)}),"


class PatternError(ValueError):
    """A pattern that cannot be used, and why."""


LONGEST_RUN: Final = 1_024
"""Characters of the longest run inside a pattern; a run at its end has no bound."""

_MOST_ALTERNATIVES: Final = 24
_LEAST_FIXED: Final = 3
_PLAIN_LITERAL: Final = re.compile(r"[^\s|~\[\\]")
_GOES_BACK: Final = (
    "a pattern that needs no going back: after a run of varying length, a character that is not "
    "in it"
)


class _Part(msgspec.Struct, frozen=True):
    """Characters as a class, and how many; `most` is None without a bound."""

    characters: frozenset[str]
    least: int = 1
    most: int | None = 1


def read_pattern(rule: str, pattern: str) -> list[SecretRule]:
    """The rows that find what a regular expression of literals, classes, groups of alternatives and
    counted runs finds, anywhere in a text; raises `PatternError` for any other.

    A run at the end takes all characters of its class, however many it counts.
    """
    try:
        parsed = import_module("re._parser").parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(f"a regular expression: {error}") from error
    if parsed.state.flags & re.IGNORECASE:
        raise PatternError("a pattern that spells out capitals, without (?i)")
    return [_to_rule(rule, parts) for parts in _read_sequence(parsed)]


def _read_sequence(parsed: Iterable[Any]) -> list[list[_Part]]:
    """Every alternative as a sequence of parts."""
    found: list[list[_Part]] = [[]]
    for operator, argument in parsed:
        ways = _read_one(str(operator), argument)
        found = [before + way for before in found for way in ways]
        if len(found) > _MOST_ALTERNATIVES:
            raise PatternError(f"at most {_MOST_ALTERNATIVES} alternatives")
    return found


def _read_one(operator: str, argument: Any) -> list[list[_Part]]:
    if operator == "LITERAL":
        return [[_Part(frozenset(chr(argument)))]]
    if operator == "IN":
        return [[_Part(_read_class(argument))]]
    if operator == "BRANCH":
        return [way for branch in argument[1] for way in _read_sequence(branch)]
    if operator == "SUBPATTERN" and not argument[1]:
        return _read_sequence(argument[3])
    if operator in ("MAX_REPEAT", "POSSESSIVE_REPEAT"):
        return [_read_repeat(*argument)]
    if operator == "AT" and str(argument) == "AT_BOUNDARY":
        return [[]]
    raise PatternError("literals, classes, alternatives and counted runs only")


def _read_repeat(least: int, most: Any, inner: Any) -> list[_Part]:
    ways = _read_sequence(inner)
    if len(ways) != 1 or len(ways[0]) != 1 or ways[0][0].most != 1:
        raise PatternError("runs of one class of characters only, none inside another")
    bound = None if str(most) == "MAXREPEAT" else int(most)
    if max(least, bound or 0) > LONGEST_RUN:
        raise PatternError(f"runs of at most {LONGEST_RUN} characters")
    return [_Part(ways[0][0].characters, least, bound)]


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


def _to_rule(rule: str, parts: list[_Part]) -> SecretRule:
    """The steps of one alternative."""
    optional = parts.pop() if len(parts) > 1 and not parts[-1].least else None
    for part, following in pairwise(parts):
        if part.least != part.most and part.characters & following.characters:
            raise PatternError(_GOES_BACK)
        if part.least != part.most and (not part.least or part.most is None):
            raise PatternError("optional and unbounded runs at the end only")
    if sum(part.least for part in parts) < _LEAST_FIXED:
        raise PatternError(f"at least {_LEAST_FIXED} characters that must be there")
    last = parts[-1]
    tail = optional.characters if optional else frozenset[str]()
    tail |= last.characters if last.least > 1 or last.most is None else frozenset[str]()
    start = _literal_start(parts)
    return SecretRule(
        rule,
        " ".join(_to_notation(parts)),
        rest=_to_class(tail) if tail else None,
        triggers=(start,) if start else ("",),
    )


def _literal_start(parts: list[_Part]) -> str:
    start = ""
    for part in parts:
        if len(part.characters) > 1 or (part.least, part.most) != (1, 1):
            break
        start += next(iter(part.characters))
    return start


def _to_notation(parts: list[_Part]) -> list[str]:
    steps: list[str] = []
    literal = ""
    for part in parts:
        sign = next(iter(part.characters)) if len(part.characters) == 1 else ""
        if part.least == part.most == 1 and _PLAIN_LITERAL.fullmatch(sign):
            literal += sign
            continue
        if literal:
            steps.append(literal)
            literal = ""
        most = "" if part.most in (None, part.least) or part is parts[-1] else f",{part.most}"
        steps.append(f"[{_to_class(part.characters)}]{{{part.least}{most}}}")
    # A sign that means something at the beginning of a step is a class of one there.
    steps += [literal] if literal else []
    return [_escape_step(step) for step in steps]


def _escape_step(step: str) -> str:
    return f"[{re.escape(step[0])}]{{1}} {step[1:]}".strip() if step[0] in "!=" else step


def _to_class(characters: frozenset[str]) -> str:
    """A class as the notation writes it: ranges first, other signs by their numbers."""
    left, text = set(characters), ""
    for span in ("AZ", "az", "09", "AF", "af"):
        between = {chr(code) for code in range(ord(span[0]), ord(span[1]) + 1)}
        if between <= left:
            left -= between
            text += f"{span[0]}-{span[1]}"
    signs = sorted(left, key=lambda sign: (sign == "-", sign))
    return text + "".join(
        sign
        if sign.isalnum() or sign in "_/+=." or (sign == "-" and len(left) >= 1)
        else f"\\x{ord(sign):02x}"
        for sign in signs
    )


if __name__ == "__main__":
    main()
