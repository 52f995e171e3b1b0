"""Bring the rules of the gitleaks project into the table of `factwire.facts.secret_rules`.

`python -m tools.secret_rules gitleaks.toml COMMIT` reads the file `config/gitleaks.toml` of a
commit and rewrites the rows between the two marks. Taken over are the rules of tokens that begin
with literals of their own, as steps that never go back; what a rule needs beyond that, or what the
table finds already, is listed and left out. gitleaks is under the MIT licence (© Zachary Rice).
"""

import re
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from factwire.facts.own_secrets import (
    GOES_BACK,
    PatternError,
    PatternPart,
    read_pattern,
    to_class,
)
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
    found = [_to_rule(rule["id"], list(each.parts)) for each in read_pattern(pattern)]
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


_LONGEST_RUN: Final = 1_024
"""Characters of the longest run inside a pattern; a run at its end has no bound."""

_LEAST_FIXED: Final = 3
_PLAIN_LITERAL: Final = re.compile(r"[^\s|~\[\\]")


def _to_rule(rule: str, parts: list[PatternPart]) -> SecretRule:
    """The steps of one alternative."""
    optional = parts.pop() if len(parts) > 1 and not parts[-1].least else None
    if any(max(part.least, part.most or 0) > _LONGEST_RUN for part in parts):
        raise PatternError(f"runs of at most {_LONGEST_RUN} characters")
    for part, following in pairwise(parts):
        if part.least != part.most and part.characters & following.characters:
            raise PatternError(GOES_BACK)
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
        rest=to_class(tail) if tail else None,
        triggers=(start,) if start else ("",),
    )


def _literal_start(parts: list[PatternPart]) -> str:
    start = ""
    for part in parts:
        if len(part.characters) > 1 or (part.least, part.most) != (1, 1):
            break
        start += next(iter(part.characters))
    return start


def _to_notation(parts: list[PatternPart]) -> list[str]:
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
        steps.append(f"[{to_class(part.characters)}]{{{part.least}{most}}}")
    # A sign that means something at the beginning of a step is a class of one there.
    steps += [literal] if literal else []
    return [_escape_step(step) for step in steps]


def _escape_step(step: str) -> str:
    return f"[{re.escape(step[0])}]{{1}} {step[1:]}".strip() if step[0] in "!=" else step


if __name__ == "__main__":
    main()
