"""Secrets that are given away by the name before them: ``API_KEY=…``, ``"client_secret": "…"``.

The name must name a secret and the value must look like a credential: letters with digits, or
signs that prose does not have. ``password: required``, ``token: str``, ``$TOKEN`` and
``<your-api-key>`` are talk about secrets. JSON inside a string is covered by allowing backslashes
before quotes. A value that is turned down is short or holds no further assignment, so that looking
again right behind the name keeps the time linear.
"""

import re
from typing import Final

from factwire.facts.secret_names import REDACTED, secret_name
from factwire.facts.secret_shapes import NOT_REDACTED, Found, Rest, rest_of

__all__ = ["RULE", "open_assignment", "search_assignment"]

RULE: Final = "assignment"

JUDGED: Final = 256
"""Characters of a value that are looked at; a longer one is decided by its beginning."""

MIXED: Final = 6
"""Letters and digits that make a credential."""

SIGNED: Final = 8
"""Characters without a digit that make one by a sign, by capitals or by the environment's form."""

QUOTED_WORD: Final = 20
"""Letters in quotes that are no word of a language any more."""

SETTLED: Final = 64
"""Characters after which a value that could hold further assignments is not turned down."""

_LEAD: Final = re.compile(
    r"(?:(?<![A-Za-z0-9_.-])|(?<=\\[nrt]))"
    + NOT_REDACTED
    + r"(?P<key>[A-Za-z0-9_.-]{2,64}+(?:\x20[Kk][Ee][Yy])?+)"
    r"\\{0,4}+[\"'`*]{0,3}+[ \t]{0,8}+"
    r"(?P<sep>=>|:=|[=:])[ \t]{0,8}+"
    r"(?:[bruf]{1,2}+(?=[\"']))?+\\{0,4}+(?P<quote>[\"'`]{0,3}+)"
    r"(?P<scheme>(?i:bearer|basic|token|bot|apikey|digest)\x20{1,4}+)?+"
)

_BARE: Final = r"^\s\"'`\\,;&|<>(){}\[\]"
_QUOTED: Final = r"^\s\"'`\\"
_COOKIE: Final = r"^\r\n\"'`\\"

# Expansions, placeholders, paths and addresses are told by how they begin.
_NO_VALUE: Final = r"(?![$<{\[(*%/.~=>]|https?:)"


def _value(characters: str) -> tuple[re.Pattern[str], Rest]:
    return re.compile(rf"{_NO_VALUE}[{characters}]{{1,{JUDGED}}}+"), rest_of(characters)


_VALUES: Final = {name: _value(name) for name in (_BARE, _QUOTED, _COOKIE)}

_TALK: Final = re.compile(
    r"(?i:u?int\d+|float\d+|str(?:ing)?\d*|utf-?\d+\w*|base\d+(?:url)?|sha-?\d+|md5|v\d[\d.]*"
    r"|oauth-?2(?:\.0)?|http[s/]?[\d.]+|[a-z]{2}-?\d{3}|ed25519|x509|(?:rsa|aes|ecdsa)-?\d+[\w-]*)"
    r"|\d{4}-\d\d-\d\d.*"
    r"|(?:os|process|self|this|config|settings|env|ctx|request|response|options|args|params|data"
    r"|secrets|vars|inputs|steps|github|matrix|local|var|cfg|opts|kwargs)(?:[.?].*)?",
    re.DOTALL,
)

_FILLERS: Final = (REDACTED, "xxxx", "****", "...", "your", "placeholder", "changeme", "example")
_SIGNS: Final = frozenset("!@#$%^*+=?")
_CODE_FOLLOWS: Final = ("(", "[", "{")
_COOKIE_PAIR: Final = re.compile(r"[^\s=;,]{1,64}+=[^\s;,]{6}")


def search_assignment(text: str, start: int) -> Found | None:
    """The first assignment of a credential whose name starts at or after `start`."""
    while lead := _LEAD.search(text, start):
        name = secret_name(lead["key"])
        if name is not None:
            pattern, rest = _VALUES[_kind(lead, name)]
            value = pattern.match(text, lead.end())
            if value is not None and _is_credential(lead, name, value[0], text[value.end() :][:1]):
                end = rest.full.match(text, value.end())
                return Found(
                    lead.start(), lead.end(), end.end() if end else value.end(), RULE, rest
                )
        start = lead.start() + 1
    return None


def open_assignment(text: str, start: int) -> tuple[int, int] | None:
    """Start of the name and of the value of an assignment that the end of the text cuts off."""
    while lead := _LEAD.search(text, start):
        name = secret_name(lead["key"])
        if name is not None and _is_open(lead, name, text):
            return lead.start(), lead.end()
        start = lead.start() + 1
    return None


def _is_open(lead: re.Match[str], name: str, text: str) -> bool:
    kind = _kind(lead, name)
    pattern, rest = _VALUES[kind]
    run = rest.run.match(text, lead.end())
    if run is None or run.end() < len(text):
        return False
    if len(run[0]) < JUDGED:
        return True
    value = pattern.match(text, lead.end())
    return value is not None and _is_credential(lead, name, value[0], "")


def _kind(lead: re.Match[str], name: str) -> str:
    if name == "cookie" and lead["sep"] == ":":
        return _COOKIE
    return _QUOTED if lead["quote"] else _BARE


def _is_credential(lead: re.Match[str], name: str, value: str, following: str) -> bool:
    if _kind(lead, name) == _COOKIE:
        return _COOKIE_PAIR.match(value) is not None
    if len(value) >= SETTLED and ("=" in value or ":" in value):
        return True
    if not lead["quote"] and following in _CODE_FOLLOWS and len(value) < JUDGED:
        return False
    lowered = value.lower()
    if any(filler in lowered for filler in _FILLERS) or _TALK.fullmatch(value):
        return False
    return _is_random(lead, name, value)


def _is_random(lead: re.Match[str], name: str, value: str) -> bool:
    letters = any(character.isalpha() for character in value)
    digits = any(character.isdigit() for character in value)
    if digits and not letters:
        return name == "password" and len(value) >= MIXED
    if digits:
        return len(value) >= MIXED
    if lead["scheme"]:
        return len(value) >= SIGNED and not value.islower() and not value.istitle()
    if len(value) >= SIGNED and any(character in _SIGNS for character in value[:-1]):
        return letters
    return _is_long_word(lead, value)


def _is_long_word(lead: re.Match[str], value: str) -> bool:
    """Letters alone: long and quoted, or set in the environment's own manner."""
    if lead["quote"]:
        return len(value) >= QUOTED_WORD and value.isalpha()
    key = lead["key"]
    is_environment = lead["sep"] == "=" and key.isupper() and lead[0].endswith("=")
    return (
        is_environment and len(value) >= SIGNED and value.isalnum() and value.lower() not in _TYPES
    )


_TYPES: Final = frozenset(("required", "optional", "password", "disabled", "undefined"))
