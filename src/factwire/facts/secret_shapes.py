r"""What the values of secrets look like, and the search for them.

A shape is a few steps that are matched without ever going back: literals, bounded runs of a class
of characters, and a tail that runs on as long as its class lasts. So each shape costs linear time,
and the same steps tell three things: the secret, the text that may still become one (`opening`),
and how far a secret of any length goes on (`SecretTail`). An assignment (``API_KEY=…``) is a secret
when the name names one and the value looks like a credential.

`find_secrets` reads from left to right; the first row that matches wins. Whether a secret starts
at a place depends only on the text around it, so the same search works on a stream that arrives in
pieces. `may_hold_secret` answers the common case without a pattern, and may be wrong only by saying
yes.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from string import ascii_letters, digits
from typing import Final

import msgspec

from factwire.facts.own_secrets import OWN_SECRETS
from factwire.facts.secret_key_names import (
    NAME_PARTS,
    is_random,
    is_talk,
    secret_name,
    weak_name,
)
from factwire.facts.secret_rules import (
    NOT_REDACTED,
    SECRET_SHAPES,
    WORD,
    LazyPattern,
    SecretMatch,
    SecretTail,
    tail_of,
)

ASSIGNMENT_RULE: Final = "assignment"

JUDGED: Final = 256
"""Characters of a value that are looked at; a longer one is decided by its beginning."""

MIXED: Final = 6
"""Letters and digits that make a credential."""

SIGNED: Final = 8
"""Characters without a digit that make one by a sign, by capitals or by the environment's form."""

QUERY_KEY: Final = 20
"""Characters of a key in the query of a URL; shorter ones name something."""

QUOTED_WORD: Final = 20
"""Letters in quotes that are no word of a language any more."""

RANDOM: Final = 16
"""Letters and digits without a repeat that make one under a name that seldom names a secret."""

SETTLED: Final = 64
"""Characters after which a value that could hold further assignments is not turned down."""

_KEY: Final = (
    r"(?:(?<![A-Za-z0-9_.-])|(?<=\\[nrt]))"
    + NOT_REDACTED
    + r"(?P<key>[A-Za-z0-9_.-]{2,64}+(?:\x20(?i:key|by)(?![A-Za-z0-9]))?+)"
)
_QUOTE: Final = r"(?:(?:[bruf]{1,2}+|\$)(?=[\"']))?+\\{0,4}+(?P<quote>[\"'`]{0,3}+)"

_SEPARATOR: Final = (
    r"=>|:=|->|[=:\u21d2\u2192\uff1a\uff1d>|]|,(?=[ ]{0,2}[\"'`])|is\x20(?=[\"'`])"
    r"|(?<=[ \t])(?=[\"'`])"
)

# A name and its value: with a separator, as the entry of a YAML block, beside it in quotes, in the
# next column of a table.
_LEAD: Final = re.compile(
    _KEY + r"\\{0,4}+[\"'`*]{0,3}+(?:(?<=[\"'`])\])?+[ \t\xa0]{0,8}+"
    rf"(?P<sep>{_SEPARATOR})\*{{0,3}}+[ \t\xa0]{{0,8}}+"
    r"(?:(?<=[:\x20])[|>][+-]?+[ \t]{0,4}+\r?+\n[ \t]{1,16}+)?+"
    + _QUOTE
    + r"(?P<scheme>(?i:bearer|basic|token|bot|apikey|digest)\x20{1,4}+|base64:)?+"
)

# --password VALUE, and API_TOKEN VALUE as in a Dockerfile.
_SPACED_LEAD: Final = re.compile(
    r"(?:(?<![A-Za-z0-9_.-])|(?<=\\[nrt]))"
    + NOT_REDACTED
    + r"(?P<key>--[A-Za-z][A-Za-z0-9_-]{1,48}+|[A-Z][A-Z0-9]{0,24}+_[A-Z0-9_]{2,40}+)"
    r"(?P<sep>\x20{1,4}+)(?P<quote>[\"'`]?+)(?P<scheme>(?!))?+"
)

# name: API_TOKEN, value: VALUE, in YAML, JSON or XML.
_PAIR_LEAD: Final = re.compile(
    _KEY + r"\\{0,4}+[\"']?+,?+\s{1,24}+\\{0,4}+[\"']?+[Vv]alue\\{0,4}+[\"']?+\s{0,2}+"
    r"(?P<sep>[:=])\x20{0,4}+" + _QUOTE + r"(?P<scheme>(?!))?+"
)
_LEADS: Final = (_LEAD, _SPACED_LEAD, _PAIR_LEAD)

# What follows a part of a name before its value, in any of these manners.
_BEHIND_NAME: Final = re.compile(
    r"[A-Za-z0-9_.-]{2,64}+(?:\x20(?i:key|by)(?![A-Za-z0-9]))?\\{0,4}+"
    rf"(?:[\"'`*]{{0,3}}+\]?+[ \t\xa0]{{0,8}}+(?:{_SEPARATOR})"
    r"|[\"']?+,?+\s{1,24}+\\{0,4}+[\"']?+[Vv]alue|(?P<space>\x20))"
)
_SPACED_NAME: Final = re.compile(r"--|[A-Z0-9]_|_[A-Z0-9]")

CAPITAL_NAME: Final = re.compile(r"_(?<![^A-Z0-9]_)(?:[A-Z0-9]|$)")
"""A part of a name in capitals, such as ``API_TOKEN``."""

_NAME_SIGNS: Final = f"{ascii_letters}{digits}_.-"
_NAME_START: Final = re.compile(r"(?:(?<![A-Za-z0-9_.-])|(?<=\\[nrt]))[A-Za-z0-9_.-]")
_NAME_REACH: Final = 72
"""Characters between the start of a lead and any part of its name, at most."""

_VALUE_WORDS: Final = 3
"""Words behind a separator, at most: the mark of a block, a scheme, the value."""

_ANY_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{1,24}+\x20{1,4}+(?=\S|\Z)")
_ENDS_IN_NAME: Final = re.compile(
    r"(?<![A-Za-z0-9_.-])(?:--?[A-Za-z0-9_-]{0,50}|[A-Z][A-Z0-9]{0,24}_[A-Z0-9_]{0,40})\x20{0,4}[\"'`]?\Z"
)

_QUERY_KEY: Final = "query-key"
_TAG_BEGINS: Final = re.compile(r"[^A-Za-z0-9_.]?<\Z")

_BARE: Final = r"^\s\"'`\\,;&|<>(){}\[\]"
_QUOTED: Final = r"^\s\"'`\\"

# Expansions, placeholders, paths and addresses are told by how they begin.
_NO_VALUE: Final = r"(?![$<{\[(>]|https?:)"


def _value_patterns(characters: str) -> tuple[re.Pattern[str], SecretTail]:
    return re.compile(rf"{_NO_VALUE}[{characters}]{{1,{JUDGED}}}+"), tail_of(characters)


_VALUES: Final = {name: _value_patterns(name) for name in (_BARE, _QUOTED)}

_SIGNS: Final = frozenset("!@#$%^*+=?")
_CODE_FOLLOWS: Final = ("(", "[", "{")
_COOKIE_NAME: Final = re.compile(r"[A-Za-z0-9_.%-]{1,64}+=")
_OPEN_BLOCK: Final = re.compile(r"[|>][+-]?+[ \t]{0,4}+\r?+\n?+[ \t]{0,16}+\Z")
_ODD_STARTS: Final = frozenset("*%/.~=?+-")
"""Signs with which paths, formats and expressions begin, and seldom a password."""

_WORDS_OF_PATH: Final = re.compile(r"[/._-]")

_QUIET: Final = frozenset(("", " ", "  ", "   ", "    ", ",", "|", "is "))
"""Separators that separate anything: behind them a value has to look drawn at random."""

_WEAKLY: Final = "weak:"


def search_assignment(text: str, start: int) -> SecretMatch | None:
    """The first assignment of a credential whose name starts at or after `start`."""
    return _search_lead(_LEAD, find_names(text), text, start)


def find_names(text: str, shown: int = 0) -> list[int]:
    """Where parts of names of secrets stand that a value may belong to, in order; without those
    whose value ended before `shown`.
    """
    if not _may_separate(text):
        return []
    lowered = text.lower()
    if len(lowered) != len(text):  # A few letters become two.
        lowered = "".join(sign.lower() if sign.isascii() else sign for sign in text)
    if len(text) <= _GLANCED and not _ANY_NAME.search(lowered):
        return []
    places: list[int] = []
    for part in NAME_PARTS:
        place = lowered.find(part) if part in lowered else -1
        while place >= 0:
            if (behind := _BEHIND_NAME.match(text, place)) and (
                behind["space"] is None
                or _SPACED_NAME.search(text, max(place - _NAME_REACH, 0), behind.end())
            ):
                between = text[behind.end() : shown]
                if not between or len(between.split(None, _VALUE_WORDS)) <= _VALUE_WORDS:
                    places.append(place)
            place = lowered.find(part, place + 1)
    return sorted(places)


def _may_separate(text: str) -> bool:
    """Whether a name may end before a value, with or without a separator."""
    # As `holds_separator` and `holds_quote`; every text comes by here.
    return (
        ":" in text
        or "=" in text
        or ">" in text
        or "'" in text
        or '"' in text
        or "`" in text
        or "|" in text
        or "--" in text
        or (not text.isascii() and holds_separator(text))
        or ("_" in text and CAPITAL_NAME.search(text) is not None)
    )


def _leads_near(
    leads: re.Pattern[str], names: list[int], text: str, start: int
) -> Iterator[re.Match[str]]:
    """Every lead that has one of the names in it, from `start` on."""
    while (at := bisect_left(names, start)) < len(names):
        name = names[at]
        before = text[max(start, name - _NAME_REACH) : name]
        # The name may be the second of two words.
        others = before.rstrip(_NAME_SIGNS).removesuffix(" ").rstrip(_NAME_SIGNS)
        start = name + 1
        for word in _NAME_START.finditer(text, name - len(before) + len(others), start):
            if lead := leads.match(text, word.start()):
                yield lead
                start = lead.start() + 1
                break


def _search_lead(
    leads: re.Pattern[str], names: list[int], text: str, start: int
) -> SecretMatch | None:
    for lead in _leads_near(leads, names, text, start):
        name = _secret_named_by(lead)
        if name is not None:
            pattern, rest = _VALUES[_value_kind(lead)]
            starts = _value_start(lead, name), lead.end()
            # A pair of a cookie is no value, a scheme without a value may be one.
            for at in starts[:1] if name == "cookie" else dict.fromkeys(starts):
                value = pattern.match(text, at)
                if value and _is_credential(
                    lead, name, value[0], text[value.end() : value.end() + 1]
                ):
                    end = rest.full.match(text, value.end())
                    stop = end.end() if end else value.end()
                    return SecretMatch(lead.start(), at, stop, ASSIGNMENT_RULE, rest)
    return None


def _value_start(lead: re.Match[str], name: str) -> int:
    """Behind any scheme that a header names, and behind the name of a cookie."""
    if name not in ("authorization", "cookie") or lead["sep"] == ">" or lead["scheme"]:
        return lead.end()
    pattern = _ANY_SCHEME if name == "authorization" else _COOKIE_NAME
    found = pattern.match(lead.string, lead.end())
    return found.end() if found else lead.end()


def is_assigned_secret(name: str, value: str) -> bool:
    """Whether a value that stands beside a name would be a secret in an assignment to it."""
    match = search_assignment(f'{name}="{value}"', 0)
    return match is not None and match.start == 0


def find_open_assignment(text: str, start: int, names: list[int]) -> tuple[int, int] | None:
    """Start of the name and of the value of an assignment that the end of the text cuts off."""
    opened = [found for leads in _LEADS if (found := _find_open_lead(leads, names, text, start))]
    if not opened:
        return None
    return min(start for start, _ in opened), min(value for _, value in opened)


def _find_open_lead(
    leads: re.Pattern[str], names: list[int], text: str, start: int
) -> tuple[int, int] | None:
    for lead in _leads_near(leads, names, text, start):
        name = _secret_named_by(lead)
        if name is not None and (value := _open_value(lead, name, text)) is not None:
            return lead.start(), value
    return None


def ends_in_name(text: str) -> bool:
    """Whether a value may follow without a separator that can be seen."""
    near = text[-_NEAR:]
    return ("-" in near or "_" in near) and _ENDS_IN_NAME.search(near) is not None


def _secret_named_by(lead: re.Match[str]) -> str | None:
    """What the name before a separator says. ``>`` is a separator at the end of a tag, which is no
    type of a type; ``|`` between the columns of a table; a plain ``key`` is a name in the query of
    a URL.
    """
    key, sep, before = (
        lead["key"],
        lead["sep"],
        lead.string[max(lead.start() - 2, 0) : lead.start()],
    )
    if sep == ">" and not _TAG_BEGINS.match(before):
        return None
    if sep == "|" and "|" not in before:
        return None
    if key == "key" and sep == "=" and before[-1:] in ("?", "&"):
        return _QUERY_KEY
    name = secret_name(key)
    if name is None and (weak := weak_name(key)):
        return f"{_WEAKLY}{weak}"
    return name


def _open_value(lead: re.Match[str], name: str, text: str) -> int | None:
    """Where the value starts, if the end of the text cuts it off."""
    pattern, rest = _VALUES[_value_kind(lead)]
    at = _value_start(lead, name)
    run = rest.run.match(text, at)
    if run is None or run.end() < len(text):
        return len(text) if _OPEN_BLOCK.match(text, at) else None
    if len(run[0]) < JUDGED:
        return lead.end() if name == "authorization" else at
    value = pattern.match(text, at)
    return at if value is not None and _is_credential(lead, name, value[0], "") else None


def _value_kind(lead: re.Match[str]) -> str:
    return _QUOTED if lead["quote"] else _BARE


def _is_credential(  # noqa: PLR0911 - one answer for each way in which a value is written
    lead: re.Match[str], name: str, value: str, following: str
) -> bool:
    if lead["sep"] == ">" and not value[0].isalnum():
        return False
    if name == "cookie" and lead["sep"] == ":":
        return _value_start(lead, name) > lead.end() and len(value) >= MIXED
    if name.startswith(_WEAKLY):
        return _is_weak_credential(lead, name, value, following)
    if len(value) >= SETTLED and ("=" in value or ":" in value):
        return True
    is_call = not lead["quote"] and following in _CODE_FOLLOWS and len(value) < JUDGED
    if is_call or is_talk(value) or (value[0] in _ODD_STARTS and not _is_strong(value)):
        return False
    if lead["sep"] in _QUIET and not lead["key"].startswith("--"):
        return _is_strong(value) if lead["quote"] else is_random(value, SIGNED)
    return _is_random(lead, name, value)


def _is_strong(value: str) -> bool:
    """Whether a value is no path, no format and no expression, although it may begin like one."""
    run = max(_WORDS_OF_PATH.split(value), key=len)
    is_mixed = any(map(str.isdigit, run)) and any(map(str.isalpha, run))
    if value[0] in "/.~":
        return is_mixed and len(run) >= SIGNED and run.lower() != run and run.upper() != run
    return is_mixed and len(run) >= MIXED


def _is_weak_credential(lead: re.Match[str], name: str, value: str, following: str) -> bool:
    """A value under a name that seldom names a secret: no call, and drawn at random."""
    if not lead["quote"] and following in _CODE_FOLLOWS:
        return False
    return is_random(value, SIGNED if name == f"{_WEAKLY}pass" else RANDOM)


def _is_random(lead: re.Match[str], name: str, value: str) -> bool:
    letters = any(character.isalpha() for character in value)
    digits = any(character.isdigit() for character in value)
    if name == _QUERY_KEY:
        return letters and digits and len(value) >= QUERY_KEY
    if digits and not letters:
        return name == "password" and len(value) >= MIXED and value.isdigit()
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


LOGIN_RULE: Final = "login"

# curl -u name:password, and the same of other programs.
_LOGIN: Final = re.compile(
    r"-(?<![^\s\"'`(]-)(?:[A-Za-z]{0,8}?u|-user|-proxy-user)[\s=]{0,2}+(?P<quote>[\"'`]?+)"
    r"(?P<name>[^\s:\"'`$<{/]{0,64}+):"
)

# Programs that take a password by a single letter, and a pair of a name and a password in code.
_ARGUMENTS: Final = r"(?:[^\n|;&]{0,100}?\x20)?"
_OPTION: Final = re.compile(
    r"(?<![A-Za-z0-9_.-])(?:"
    rf"(?:mysql[a-z]{{0,8}}+|mariadb[a-z-]{{0,8}}+)\x20{_ARGUMENTS}-p(?![\s-])"
    rf"|(?:docker|podman|nerdctl|oras|registry)\x20login\x20{_ARGUMENTS}-p\x20?"
    rf"|sshpass\x20-p\x20?|redis-cli\x20{_ARGUMENTS}-a\x20?"
    r"|auth\x20?=\x20?\(\x20?(?P<name>[\"'][^\"'\n]{0,64}+[\"']),\x20?(?=[\"'])"
    r")(?P<quote>[\"'`]?+)"
)
_GROUPS: Final = frozenset((
    "adm", "admin", "app", "daemon", "docker", "group", "nobody", "nogroup", "root", "staff",
    "sudo", "users", "wheel", "www", "www-data",
))  # fmt: skip
_PORT: Final = 5
"""Digits of the longest port; a user and a group are numbers, too."""


def may_hold_login(text: str) -> bool:
    return "-" in text and _LOGIN.search(text) is not None


def may_hold_option(text: str) -> bool:
    """The same for passwords without a separator before them."""
    if "auth=" not in text and "auth =" not in text and "-" not in text:
        return False
    for program in _PROGRAMS:
        if program in text:
            return _OPTION.search(text) is not None
    return False


_PROGRAMS: Final = ("auth", "mysql", "mariadb", " login ", "sshpass", "redis-cli")


def search_login(text: str, start: int) -> SecretMatch | None:
    """The first password that an option names behind a user, as in ``curl -u name:password``."""
    return _search_password(_LOGIN, text, start)


def search_option(text: str, start: int) -> SecretMatch | None:
    """The first password that an option of its program names, as in ``mysql -pPASSWORD``."""
    return _search_password(_OPTION, text, start)


def _search_password(leads: re.Pattern[str], text: str, start: int) -> SecretMatch | None:
    while lead := leads.search(text, start):
        pattern, rest = _VALUES[_QUOTED if lead["quote"] else _BARE]
        value = pattern.match(text, lead.end())
        if value is not None and _is_password(lead["name"] or "", value[0]):
            end = rest.full.match(text, value.end())
            stop = end.end() if end else value.end()
            return SecretMatch(lead.start(), lead.end(), stop, LOGIN_RULE, rest)
        start = lead.start() + 1
    return None


def find_open_login(text: str, start: int) -> tuple[int, int] | None:
    """Start of the option and of the password that the end of the text cuts off."""
    kinds = (_LOGIN, _OPTION) if may_hold_option(text) else (_LOGIN,)
    opened = [found for leads in kinds if (found := _find_open_password(leads, text, start))]
    if not opened:
        return None
    return min(start for start, _ in opened), min(value for _, value in opened)


def _find_open_password(leads: re.Pattern[str], text: str, start: int) -> tuple[int, int] | None:
    while lead := leads.search(text, start):
        pattern, rest = _VALUES[_QUOTED if lead["quote"] else _BARE]
        run = rest.run.match(text, lead.end())
        if run is not None and run.end() == len(text):
            value = pattern.match(text, lead.end())
            if len(run[0]) < JUDGED or (value and _is_password(lead["name"] or "", value[0])):
                return lead.start(), lead.end()
        start = lead.start() + 1
    return None


def _is_password(name: str, value: str) -> bool:
    """Whether it is no group of a user, no port of a host and no path on it."""
    lowered = value.lower()
    if value == name or lowered in _GROUPS or is_talk(value):
        return False
    if value[0] in _ODD_STARTS and not _is_strong(value):
        return False
    if value.isdigit():
        return len(value) > _PORT and not name.isdigit()
    if "/" in value:
        return any(c.isdigit() for c in value) and any(c.isupper() for c in value)
    return True


_TYPES: Final = frozenset(("required", "optional", "password", "disabled", "undefined"))


SHORTEST: Final = 10
"""Characters of the shortest text that can hold a secret, such as ``pwd=abc123``."""

_NEAR: Final = 96
"""Characters before a separator in which the name that it belongs to stands."""

_ENDING: Final = 3

PREFIXED: Final = 30
"""Characters of a token behind the short word of its maker."""

_WIDE_SEPARATORS: Final = "\u21d2\u2192\uff1a\uff1d"


def holds_separator(text: str) -> bool:
    """Whether a name may be separated from its value in a text."""
    return (
        ":" in text
        or "=" in text
        or ">" in text
        or (not text.isascii() and any(mark in text for mark in _WIDE_SEPARATORS))
    )


def holds_quote(text: str) -> bool:
    """Whether a value may stand in quotes, or in a column, beside its name."""
    return "'" in text or '"' in text or "`" in text or "|" in text


class Secret(msgspec.Struct, frozen=True):
    """A stretch of text that must not be shown, and the rule that found it."""

    start: int
    end: int
    rule: str


def find_secrets(text: str) -> list[Secret]:
    """All secrets in a text, in order, never overlapping."""
    found = find_ruled_secrets(text)
    if not OWN_SECRETS.is_active or not (own := OWN_SECRETS.find(text)):
        return found
    merged: list[Secret] = []
    for each in sorted([Secret(*span) for span in own] + found, key=lambda each: each.start):
        last = merged.pop() if merged and each.start < merged[-1].end else each
        merged.append(Secret(last.start, max(last.end, each.end), last.rule))
    return merged


def find_ruled_secrets(text: str) -> list[Secret]:
    """Those that the rules find, and not the operator's own."""
    if len(text) < SHORTEST:
        return []
    return [Secret(found.value, found.end, found.rule) for found in scan_secrets(text, 0)]


def scan_secrets(text: str, start: int, names: list[int] | None = None) -> Iterator[SecretMatch]:
    """Matches from left to right; what stands before `start` is seen, but starts nothing."""
    searches = _searches_for(text, find_names(text) if names is None else names)
    ahead: list[SecretMatch | None] = [search(text, start) for search in searches]
    while True:
        first = min((match for match in ahead if match), key=_start_of, default=None)
        if first is None:
            return
        yield first
        for place, match in enumerate(ahead):
            if match is not None and match.start < first.end:
                ahead[place] = searches[place](text, first.end)


def _start_of(match: SecretMatch) -> int:
    return match.start


def _searches_for(text: str, names: list[int]) -> list[Callable[[str, int], SecretMatch | None]]:
    searches: list[Callable[[str, int], SecretMatch | None]] = [
        SECRET_SHAPES[order].search for order in sorted(_find_tokens(text))
    ]
    if names:
        searches += (partial(_search_lead, leads, names) for leads in _LEADS)
    if ":" in text and may_hold_login(text):
        searches.append(search_login)
    if may_hold_option(text):
        searches.append(search_option)
    return searches


class _Marked(msgspec.Struct, frozen=True):
    """A trigger, where in it the mark stands, whether it begins a word, and its row."""

    trigger: str
    place: int
    begins: bool
    order: int


def _triggers_by_ending(mark: str) -> dict[str, tuple[_Marked, ...]]:
    """The triggers with this mark, by the few characters that end with it."""
    endings: dict[str, tuple[_Marked, ...]] = {}
    for order, shape in enumerate(SECRET_SHAPES):
        for trigger in shape.triggers:
            places = [at for at, sign in enumerate(trigger) if sign == mark and at + 1 >= _ENDING]
            if places and not shape.loose:
                ending = trigger[places[0] + 1 - _ENDING : places[0] + 1]
                found = _Marked(trigger, places[0], begins=shape.begins_word, order=order)
                endings[ending] = (*endings.get(ending, ()), found)
    return endings


_MARKS: Final = tuple((mark, _triggers_by_ending(mark)) for mark in "-_J.")

_RARE_FIRST: Final = "=:$~(/QZXJKVBYUWFPGHDMLCRNSOITAE421vp"


_Triggers = tuple[tuple[str, int], ...]


def _triggers_by_rare_sign() -> dict[str, _Triggers]:
    """The other triggers, with their rows, by the rarest of their signs."""
    marked = {row.trigger for _, table in _MARKS for rows in table.values() for row in rows}
    gates: dict[str, _Triggers] = {}
    for order, shape in enumerate(SECRET_SHAPES):
        for trigger in shape.triggers:
            if trigger not in marked and trigger not in _PREFIXED:
                sign = next((sign for sign in _RARE_FIRST if sign in trigger), "")
                sign = ":" if trigger == "AC" else sign  # An account's id, and its secret behind.
                gates[sign] = (*gates.get(sign, ()), (trigger, order))
    return gates


_PREFIXED: Final = {
    shape.triggers[0]: order
    for order, shape in enumerate(SECRET_SHAPES)
    if shape.triggers in (("_",), ("-",))
}
_GATES: Final = _triggers_by_rare_sign()
_ANY_CASE: Final = tuple(_GATES.items())
_NO_CAPITALS: Final = tuple(gate for gate in _ANY_CASE if not gate[0].isupper())


def _match_capital_triggers() -> re.Pattern[str]:
    by_first: dict[str, list[str]] = {}
    for _, rows in (gate for gate in _ANY_CASE if gate[0].isupper()):
        for trigger, _ in rows:
            by_first.setdefault(trigger[0], []).append(re.escape(trigger[1:]))
    return re.compile("|".join(f"{first}(?:{'|'.join(each)})" for first, each in by_first.items()))


_CAPITALS: Final = _match_capital_triggers()

_LEAST_RUN: Final = 16
"""Word signs side by side that most rows need, and few words and names of files have."""

_LONG_RUN: Final = re.compile(rf"[{WORD}]{{{_LEAST_RUN}}}")


def _match_runless_triggers() -> re.Pattern[str]:
    """The triggers of the other rows. Each is looked for from its rarest sign, because a search for
    letters would try every other character of a text.
    """
    by_sign: dict[str, list[str]] = {}
    runless = (shape.triggers for shape in SECRET_SHAPES if shape.run < _LEAST_RUN)
    for trigger in dict.fromkeys(chain.from_iterable(runless)):
        sign = next(sign for sign in _RUNLESS_SIGNS if sign in trigger)
        head, _, tail = trigger.partition(sign)
        by_sign.setdefault(sign, []).append(f"(?<={re.escape(head + sign)}){re.escape(tail)}")
    return re.compile(
        "|".join(f"{re.escape(sign)}(?:{'|'.join(each)})" for sign, each in by_sign.items())
    )


_RUNLESS_SIGNS: Final = f"_-J{_RARE_FIRST}"
_RUNLESS: Final = _match_runless_triggers()

_WINDOW: Final = 4
"""Characters of a trigger that are looked at before the text is searched for whole ones."""


def _match_windows() -> str:
    """Matches where a few characters of a trigger stand around its rarest sign: one search of a
    text that has no trigger, as most have none.
    """
    windows: dict[tuple[str, int], list[tuple[str, str]]] = {}
    for trigger in dict.fromkeys(chain.from_iterable(shape.triggers for shape in SECRET_SHAPES)):
        inner = (mark for mark, _ in _MARKS if trigger.find(mark, _ENDING - 1) > 0)
        sign = next(inner, "") or next(sign for sign in _WINDOW_SIGNS if sign in trigger)
        place = max(trigger.find(sign, _ENDING - 1), trigger.find(sign))
        head = trigger[max(place + 1 - _WINDOW, 0) : place]
        tail = re.escape(trigger[place + 1 : place + _WINDOW - len(head)])
        tail = f"[A-Za-z0-9]{{{PREFIXED}}}" if trigger in _PREFIXED else tail
        windows.setdefault((sign, len(head)), []).append((re.escape(head), tail))
    by_sign: dict[str, list[str]] = {}
    for (sign, _), pairs in windows.items():
        heads, tails = (dict.fromkeys(each) for each in zip(*pairs, strict=True))
        before = f"(?<=(?:{'|'.join(heads)}){re.escape(sign)})"
        by_sign.setdefault(sign, []).append(before + ("" if "" in tails else _any_of(tails)))
    return "|".join(re.escape(sign) + _any_of(each) for sign, each in by_sign.items())


def _any_of(patterns: Iterable[str]) -> str:
    return f"(?:{'|'.join(patterns)})"


_WINDOW_SIGNS: Final = f"_-{_RARE_FIRST}"
_WINDOWS: Final = LazyPattern(_match_windows())

# One of these stands in whatever `_may_hold_named` says yes to.
_NAMING_SIGNS: Final = r":|=|>|'|\"|`|\||\u21d2|\u2192|\uff1a|\uff1d|-(?:-|(?<=\x20-)[ap])"
_GLANCE: Final = LazyPattern(f"{_NAMING_SIGNS}|{CAPITAL_NAME.pattern}|{_WINDOWS.pattern}")


def _match_names() -> re.Pattern[str]:
    """Each name is looked for from its rarest sign, as the triggers are."""
    by_sign: dict[str, list[str]] = {}
    for part in NAME_PARTS:
        sign = next(sign for sign in "kwfbcghpmds" if sign in part)
        head, _, tail = part.partition(sign)
        by_sign.setdefault(sign, []).append(f"(?<={head}{sign}){tail}")
    return re.compile("|".join(sign + _any_of(each) for sign, each in by_sign.items()))


_ANY_NAME: Final = _match_names()
_GLANCED: Final = 64
"""Characters of a text in which looking for one of many signs or names is quicker than for each."""


def may_hold_secret(text: str) -> bool:
    """Whether a search is worth it: false means that there is no secret in the text."""
    if OWN_SECRETS.is_active and OWN_SECRETS.holds(text):
        return True
    size = len(text)
    if size > _GLANCED:
        return bool(_find_tokens(text)) or _may_hold_named(text)
    if size < SHORTEST or text in _CLEAN_TEXTS:
        return False
    seen = _GLANCE.search(text)
    if seen and (_search_tokens(text, seen.start()) or _may_hold_named(text)):
        return True
    if len(_CLEAN_TEXTS) >= _TEXTS_KEPT:
        _CLEAN_TEXTS.clear()
    _CLEAN_TEXTS.add(text)
    return False


def _may_hold_named(text: str) -> bool:
    return bool(find_names(text)) or (":" in text and may_hold_login(text)) or may_hold_option(text)


_TEXTS_KEPT: Final = 8_192
_CLEAN_TEXTS: Final = set[str]()
"""Short texts in which the rules find nothing, such as ids and paths: they come again and again.
Bounded by starting over, which costs one more search of each.
"""


def may_hold_token(text: str) -> bool:
    """The same for secrets that no name comes before."""
    if len(text) > _GLANCED:
        return bool(_find_tokens(text))
    return len(text) >= SHORTEST and bool(_search_tokens(text))


class _CleanWords:
    """Words between white space without a trigger: most of a text is words that came before.
    Bounded by starting over, which costs one more search of each.
    """

    def __init__(self) -> None:
        self._words: set[str] = set()

    def select_others(self, text: str) -> str:
        """The words of a text that have a trigger, or that have not been seen."""
        words = text.split()
        if self._words.issuperset(words):
            return ""
        return " ".join(set(words).difference(self._words))

    def learn(self, text: str) -> None:
        if len(self._words) > _WORDS_KEPT:
            self._words.clear()
        # An address counts only beside a sign that may stand in another word.
        self._words.update(
            word for word in text.split() if len(word) <= _LONGEST_KEPT and "://" not in word
        )


_WORDS_KEPT: Final = 32_768
_LONGEST_KEPT: Final = 48
_CLEAN_WORDS: Final = _CleanWords()


def _find_tokens(text: str) -> set[int]:
    """The rows of which a trigger stands in a text."""
    if len(text) <= _GLANCED:
        return _search_tokens(text)
    others = _CLEAN_WORDS.select_others(text)
    if "://" in others and "@" in text:
        others += " @"
    found = _search_tokens(others) if others else set[int]()
    if others and not found:
        _CLEAN_WORDS.learn(others)
    if "B" in text:
        found.update(order for trigger, order in _SPACED_TRIGGERS if trigger in text)
    return found


_SPACED_TRIGGERS: Final = tuple(
    (trigger, order)
    for order, shape in enumerate(SECRET_SHAPES)
    for trigger in shape.triggers
    if " " in trigger
)


def _search_tokens(text: str, start: int = 0) -> set[int]:
    """The same for a short text, or a part of one, in which no trigger ends before `start`."""
    if not _WINDOWS.search(text, start):
        return set()
    if not _LONG_RUN.search(text) and not _RUNLESS.search(text):
        return set()
    # Looking for one character is many times cheaper than looking for two, hence the tables.
    found = set[int]()
    for mark, endings in _MARKS:
        if mark in text:
            _add_marked(found, text, mark, endings)
    is_low = text.islower() or _CAPITALS.search(text) is None
    for sign, triggers in _NO_CAPITALS if is_low else _ANY_CASE:
        if sign in text:
            for trigger, order in triggers:
                if trigger in text and (trigger != "://" or "@" in text):
                    found.add(order)
    return found


def _add_marked(
    found: set[int], text: str, mark: str, endings: dict[str, tuple[_Marked, ...]]
) -> None:
    place = text.find(mark)
    while place >= 0:
        for row in endings.get(text[max(place - 2, 0) : place + 1], ()):
            start = place - row.place
            is_here = start >= 0 and text.startswith(row.trigger, start)
            if is_here and (not row.begins or _is_boundary(text, start)):
                found.add(row.order)
        if mark in _PREFIXED:
            word = text[place + 1 : place + 1 + PREFIXED]
            if len(word) == PREFIXED and word.isalnum():
                found.add(_PREFIXED[mark])
        place = text.find(mark, place + 1)


def _is_boundary(text: str, start: int) -> bool:
    if start == 0:
        return True
    before = text[start - 1]
    if not (before.isascii() and before.isalnum()):
        return True
    return "\\" in text[start - 2 : start - 1] or "%" in text[max(start - 3, 0) : start]
