r"""What the values of secrets look like, and the search for them.

A shape is a few steps that are matched without ever going back: literals, bounded runs of a class
of characters, and a tail that runs on as long as its class lasts. So each shape costs linear time,
and the same steps tell three things: the secret, the text that may still become one (`opening`),
and how far a secret of any length goes on (`SecretTail`). An assignment (``API_KEY=…``) is a secret
when the name names one and the value looks like a credential.

Steps are separated by spaces: ``sk-|rk-`` literals, ``[a-f0-9]{32}`` a run, ``![\w-]`` what may
not follow, ``=@`` what must follow. ``~`` in a literal is a space.

`find_secrets` reads from left to right; the first row that matches wins. Whether a secret starts
at a place depends only on the text around it, so the same search works on a stream that arrives in
pieces. `may_hold_secret` answers the common case without a pattern, and may be wrong only by saying
yes.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from factwire.facts.secret_key_names import REDACTED, secret_name

WORD: Final = "A-Za-z0-9_-"

# A token starts where no word goes on; an escaped line break or a percent escape before it counts.
BOUNDARY: Final = rf"(?:(?<![{WORD}])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{{2}}))"

# Behind a replaced secret nothing starts that could not start behind the secret itself.
NOT_REDACTED: Final = r"(?<!\[redacted\])"

# Documentation writes xxxx where a secret would stand.
_NO_FILLER: Final = rf"(?![{WORD}]{{0,24}}?[xX]{{4}})"

_RUN: Final = re.compile(r"\[((?:\\.|[^\]])+)\](?:\{(\d+)(?:,(\d+))?\})?")


class SecretTail(msgspec.Struct, frozen=True):
    """How a confirmed secret goes on: a run of one class, and at most one closing mark."""

    run: re.Pattern[str]
    full: re.Pattern[str]
    opening: re.Pattern[str]


class SecretMatch(msgspec.Struct, frozen=True):
    """One match: where its lead starts, where the value to hide starts and ends."""

    start: int
    value: int
    end: int
    rule: str
    rest: SecretTail | None


class SecretShape(msgspec.Struct, frozen=True, kw_only=True):
    rule: str
    triggers: tuple[str, ...]
    pattern: re.Pattern[str]
    boundary: str
    opening: str
    rest: SecretTail | None
    spaced: bool
    loose: bool

    def search(self, text: str, start: int) -> SecretMatch | None:
        match = self.pattern.search(text, start)
        if match is None:
            return None
        return SecretMatch(match.start(), match.start(1), match.end(1), self.rule, self.rest)


class _Step(msgspec.Struct, frozen=True):
    """`full` matches the step; `part` matches its beginning, where the text ends within it."""

    full: str
    part: str


def _run(characters: str, least: int, most: int | None) -> _Step:
    bound = "" if most is None else most
    return _Step(f"[{characters}]{{{least},{bound}}}+", rf"[{characters}]{{0,{bound}}}+\Z")


def _literals(alternatives: list[str], *, first: bool) -> _Step:
    parts = {word[:end] for word in alternatives for end in range(1 if first else 0, len(word))}
    return _Step(f"(?>{_any_of(alternatives)})", rf"(?:{_any_of(parts)})\Z")


def _any_of(words: list[str] | set[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))


def _parse_step(notation: str, *, first: bool) -> _Step:
    if notation[0] == "!" and len(notation) > 1:
        return _Step(f"(?!{notation[1:]})", r"\Z")
    if notation[0] == "=" and len(notation) > 1:
        return _Step(f"(?={notation[1:]})", r"\Z")
    run = _RUN.fullmatch(notation)
    if run is None:
        return _literals(notation.replace("~", " ").split("|"), first=first)
    least = int(run[2] or 1)
    return _run(run[1], least, int(run[3] or least))


def _parse_steps(notation: str, *, first: bool = False) -> list[_Step]:
    return [
        _parse_step(part, first=first and place == 0) for place, part in enumerate(notation.split())
    ]


def _opening_pattern(steps: list[_Step]) -> str:
    """Matches text that ends before these steps do."""
    pattern = ""
    for step in reversed(steps):
        pattern = f"(?:{step.part}|{step.full}{pattern})" if pattern else f"(?:{step.part})"
    return pattern


def _full_pattern(steps: list[_Step]) -> str:
    return "".join(step.full for step in steps)


def tail_of(characters: str, closing: str = "") -> SecretTail:
    run, close = _run(characters, 0, None), _parse_steps(closing)
    end = f"(?:{_full_pattern(close)})?+" if close else ""
    return SecretTail(
        run=re.compile(run.full),
        full=re.compile(run.full + end),
        opening=re.compile(_opening_pattern([run, *close])),
    )


def _build_shape(
    rule: str,
    value: str,
    *,
    lead: str = "",
    rest: str | None = WORD,
    closing: str = "",
    digit: bool = False,
    boundary: str = BOUNDARY,
    loose_lead: tuple[str, str] | None = None,
    triggers: tuple[str, ...] = (),
) -> SecretShape:
    """`digit`: no digit, no secret. `loose_lead`: pattern of a lead of any text, and of its part
    after the separator; such a lead is shown at once, while a literal lead waits for its value.
    """
    leads = _parse_steps(lead, first=True)
    values = _parse_steps(value, first=not lead and loose_lead is None)
    tail = [_run(rest, 0, None)] if rest else []
    close = _parse_steps(closing)
    last = values.pop()
    need = rf"(?=[{rest}]{{0,200}}?[0-9])" if digit else ""
    body = "".join((_NO_FILLER if "]" in s.full else "") + s.full for s in values)
    body += need + _NO_FILLER + last.full + _full_pattern(tail)
    body += f"(?:{_full_pattern(close)})?+" if close else ""
    before = loose_lead[0] if loose_lead else boundary + _full_pattern(leads)
    opening = _opening_pattern([*leads, *values, last, *tail, *close])
    if loose_lead:
        opening = f"(?:{loose_lead[1]}()|{loose_lead[0]}(){opening})"
    literals = (lead or value).split()[0].replace("~", " ").split("|")
    return SecretShape(
        rule=rule,
        triggers=triggers or tuple(literals),
        pattern=re.compile(f"{before}({body})"),
        boundary="" if loose_lead else boundary,
        opening=opening,
        rest=tail_of(rest, closing) if rest else None,
        spaced="~" in lead + value,
        loose=loose_lead is not None,
    )


_KEY_LABELS: Final = "|".join(
    f"{kind}PRIVATE~KEY"
    for kind in ("", "RSA~", "EC~", "DSA~", "OPENSSH~", "ENCRYPTED~", "PGP~", "SSH2~ENCRYPTED~")
)
# Lines of a key may stand behind quote marks, comment signs, or the numbers of lines.
_PEM_GAP: Final = r"[\s\\rn>#|*/+:→0-9]{0,24}"
_PEM: Final = rf"-----BEGIN~ {_KEY_LABELS} -----|~BLOCK----- {_PEM_GAP}"
_PEM_REST: Final = r"A-Za-z0-9+/=:,>#|*→\s\\"
# In a diff that removes a key each line begins with one more dash, also that of the mark.
_PEM_REMOVED: Final = rf"------BEGIN~ {_KEY_LABELS} -----|~BLOCK----- [\s\\rn-]{{0,8}}"
_PEM_END: Final = rf"-----END~ [A-Z0-9\x20]{{0,40}} ----- ![{WORD}]"
_DISCORD: Final = f"[MNO] [DTjz] [{WORD}]{{20,26}} . [{WORD}]{{6}} . [{WORD}]{{27}}"
_GITLAB: Final = "glpat-|gldt-|glrt-|glcbt-|glptt-|glft-|glimt-|glagent-|gloas-|glsoat-"
_URL_LEAD: Final = (
    r"(?<![A-Za-z0-9+.-])(?!docker:|oci:)[A-Za-z][A-Za-z0-9+.-]{1,20}+://",
    r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}+:/?\Z",
)
_TELEGRAM_LEAD: Final = (r"(?<![A-Za-z0-9_-])[0-9]{8,10}+:", r"(?!)")

SECRET_SHAPES: Final[tuple[SecretShape, ...]] = (
    _build_shape("openai", "sk- [A-Za-z0-9]{20}"),
    _build_shape("openai", f"sk-proj-|sk-svcacct-|sk-admin-|sk-None- [{WORD}]{{20}}"),
    _build_shape("openrouter", "sk-or-v1- [0-9a-f]{32}"),
    _build_shape("anthropic", f"sk-ant- [{WORD}]{{20}}"),
    _build_shape("langfuse", "sk-lf- [0-9a-f]{8} - [0-9a-f-]{20}"),
    _build_shape("langsmith", "lsv2_pt_|lsv2_sk_ [0-9a-f]{32}"),
    _build_shape("github", "ghp_|gho_|ghu_|ghs_|ghr_ [A-Za-z0-9]{30}"),
    _build_shape("github", "github_pat_ [A-Za-z0-9_]{40}"),
    _build_shape("gitlab", f"{_GITLAB} [{WORD}]{{20}}"),
    _build_shape("aws-access-key", f"AKIA|ASIA [A-Z2-7]{{16}} ![{WORD}]", rest=None),
    _build_shape("google-api-key", f"AIza [{WORD}]{{35}}", digit=True),
    _build_shape("google-oauth", f"ya29. [{WORD}]{{20}}", digit=True),
    _build_shape("google-client-secret", f"GOCSPX- [{WORD}]{{20}}"),
    _build_shape(
        "slack",
        "xoxb-|xoxp-|xoxa-|xoxr-|xoxs-|xoxo-|xoxc-|xoxd-|xoxe-|xoxe.xoxp-|xoxe.xoxb-|xapp- "
        "[0-9A-Za-z-]{20}",
        digit=True,
    ),
    _build_shape(
        "slack-webhook",
        "[A-Za-z0-9]{8,14} / [A-Za-z0-9]{8,14} / [A-Za-z0-9]{16}",
        lead="hooks.slack.com/services/|hooks.slack.com/workflows/|hooks.slack.com/triggers/",
        rest=f"/{WORD}",
    ),
    _build_shape("stripe", "sk_live_|rk_live_|sk_test_|rk_test_ [A-Za-z0-9]{16}"),
    _build_shape("stripe-webhook", "whsec_ [A-Za-z0-9+/=]{24}", rest=f"+/={WORD}"),
    _build_shape("twilio", f"SK [0-9a-f]{{32}} ![{WORD}]", rest=None),
    _build_shape("twilio", f"[0-9a-f]{{32}} ![{WORD}]", lead="AC [0-9a-f]{32} :", rest=None),
    _build_shape("sendgrid", f"SG. [{WORD}]{{16,32}} . [{WORD}]{{32}}", digit=True),
    _build_shape("mailgun", f"key- [0-9a-f]{{32}} ![{WORD}]", rest=None),
    _build_shape("factwire", f"fwt_|tkt_ [{WORD}]{{30}}"),
    _build_shape("npm", "npm_ [A-Za-z0-9]{30}"),
    _build_shape("pypi", f"pypi-AgE [{WORD}]{{40}}"),
    _build_shape("huggingface", "hf_ [A-Za-z0-9]{30}"),
    _build_shape("replicate", "r8_ [A-Za-z0-9]{30}"),
    _build_shape("groq", "gsk_ [A-Za-z0-9]{40}"),
    _build_shape("xai", "xai- [A-Za-z0-9]{40}"),
    _build_shape("perplexity", "pplx- [A-Za-z0-9]{32}"),
    _build_shape("nvidia", f"nvapi- [{WORD}]{{40}}"),
    _build_shape("tavily", "tvly- [A-Za-z0-9]{20}"),
    _build_shape(
        "azure-key",
        "[A-Za-z0-9+/]{40}",
        lead="AccountKey=|SharedAccessKey=|SharedSecret=",
        rest=f"+/={WORD}",
    ),
    _build_shape("azure-sas", "[A-Za-z0-9%+/]{40}", lead="sig=", rest=f"%+/={WORD}"),
    _build_shape("digitalocean", "dop_v1_|doo_v1_|dor_v1_ [0-9a-f]{40}"),
    _build_shape("linear", "lin_api_|lin_oauth_ [A-Za-z0-9]{32}"),
    _build_shape("notion", "ntn_|secret_ [A-Za-z0-9]{40}"),
    _build_shape("databricks", "dapi [0-9a-f]{32}", digit=True),
    _build_shape("doppler", "dp.pt.|dp.ct.|dp.sa.|dp.scim.|dp.audit. [A-Za-z0-9]{40}", digit=True),
    _build_shape("vault", f"hvs.|hvb.|hvr. [{WORD}]{{24}}", digit=True),
    _build_shape("terraform", f"atlasv1. [{WORD}]{{40}}", boundary=r"(?<=[A-Za-z0-9]\.)"),
    _build_shape("telegram", f"AA [{WORD}]{{32}}", loose_lead=_TELEGRAM_LEAD, triggers=(":AA",)),
    _build_shape("discord", _DISCORD, lead="Bot~"),
    _build_shape("discord", _DISCORD, lead="run('|run(\""),
    _build_shape(
        "discord-webhook",
        f"[0-9]{{15,20}} / [{WORD}]{{40}}",
        lead="discord.com/api/webhooks/|discordapp.com/api/webhooks/",
    ),
    _build_shape("shopify", "shpat_|shpca_|shppa_|shpss_ [0-9a-fA-F]{32}"),
    _build_shape("supabase", "sbp_|sb_secret_ [0-9A-Za-z_]{30}"),
    _build_shape("grafana", "glsa_ [A-Za-z0-9]{32}"),
    _build_shape("docker-hub", f"dckr_pat_ [{WORD}]{{20}}"),
    _build_shape("sentry", f"sntrys_|sntryu_ [{WORD}]{{40}}", rest=f"+/={WORD}"),
    _build_shape("figma", f"figd_ [{WORD}]{{30}}"),
    _build_shape("new-relic", "NRAK- [A-Z0-9]{24}"),
    _build_shape("postman", "PMAK- [0-9a-f]{24} - [0-9a-f]{30}"),
    _build_shape("square", f"sq0atp-|sq0csp- [{WORD}]{{22}}"),
    _build_shape("tailscale", f"tskey- [{WORD}]{{20}}", digit=True),
    _build_shape("age", "AGE-SECRET-KEY-1 [A-Z0-9]{40}"),
    _build_shape("jwt", f"eyJ [{WORD}]{{8,1024}} .eyJ [{WORD}]{{8}}", rest=f".{WORD}"),
    _build_shape(
        "jwt", f"eyJ [{WORD}]{{8,1024}} . [{WORD}]{{0,1024}} . [{WORD}]{{8}}", rest=f".{WORD}"
    ),
    _build_shape(
        "private-key",
        f"{_PEM} [A-Za-z0-9+/=]{{16}}",
        rest=_PEM_REST,
        closing=_PEM_END,
        boundary=BOUNDARY + NOT_REDACTED,
    ),
    _build_shape(
        "private-key",
        rf"{_PEM} Proc-Type:|DEK-Info:|Version:|Comment: [A-Za-z0-9+/=:,.()\s\\-]{{40}}",
        rest=_PEM_REST,
        closing=_PEM_END,
        boundary=BOUNDARY + NOT_REDACTED,
    ),
    _build_shape(
        "private-key",
        f"{_PEM_REMOVED} [A-Za-z0-9+/=]{{16}}",
        rest=rf"{_PEM_REST}-",
        boundary=BOUNDARY + NOT_REDACTED,
    ),
    _build_shape(
        "signed-url",
        "[0-9a-fA-F]{32}",
        lead="X-Amz-Signature=|X-Goog-Signature=|x-amz-signature=|x-goog-signature=",
    ),
    _build_shape(
        "bearer", "[A-Za-z0-9._~+/=-]{16}", lead="Bearer~", rest=f"._~+/={WORD}", digit=True
    ),
    _build_shape(
        "url-password",
        "[A-Za-z0-9._~%!$&*+,;=-]{0,128} : ![*$<{] [^\\s/?#@\"'<>{}\\[\\]\\\\`]{1,256} =@",
        rest=None,
        loose_lead=_URL_LEAD,
        triggers=("://",),
    ),
)
"""Literals come first in a row, so that a search for them can be skipped where none occurs."""


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

SETTLED: Final = 64
"""Characters after which a value that could hold further assignments is not turned down."""

_LEAD: Final = re.compile(
    r"(?:(?<![A-Za-z0-9_.-])|(?<=\\[nrt]))"
    + NOT_REDACTED
    + r"(?P<key>[A-Za-z0-9_.-]{2,64}+(?:\x20[Kk][Ee][Yy])?+)"
    r"\\{0,4}+[\"'`*]{0,3}+[ \t\xa0]{0,8}+"
    r"(?P<sep>=>|:=|->|[=:\u21d2\u2192\uff1a\uff1d>])\*{0,3}+[ \t\xa0]{0,8}+"
    r"(?:(?:[bruf]{1,2}+|\$)(?=[\"']))?+\\{0,4}+(?P<quote>[\"'`]{0,3}+)"
    r"(?P<scheme>(?i:bearer|basic|token|bot|apikey|digest)\x20{1,4}+)?+"
)

_QUERY_KEY: Final = "query-key"
_TAG_BEGINS: Final = re.compile(r"[^A-Za-z0-9_.]?<\Z")

_BARE: Final = r"^\s\"'`\\,;&|<>(){}\[\]"
_QUOTED: Final = r"^\s\"'`\\"
_COOKIE: Final = r"^\r\n\"'`\\"

# Expansions, placeholders, paths and addresses are told by how they begin.
_NO_VALUE: Final = r"(?![$<{\[(*%/.~=>]|https?:)"


def _value_patterns(characters: str) -> tuple[re.Pattern[str], SecretTail]:
    return re.compile(rf"{_NO_VALUE}[{characters}]{{1,{JUDGED}}}+"), tail_of(characters)


_VALUES: Final = {name: _value_patterns(name) for name in (_BARE, _QUOTED, _COOKIE)}

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


def search_assignment(text: str, start: int) -> SecretMatch | None:
    """The first assignment of a credential whose name starts at or after `start`."""
    while lead := _LEAD.search(text, start):
        name = _secret_named_by(lead)
        if name is not None:
            pattern, rest = _VALUES[_value_kind(lead, name)]
            value = pattern.match(text, lead.end())
            if value is not None and _is_credential(lead, name, value[0], text[value.end() :][:1]):
                end = rest.full.match(text, value.end())
                return SecretMatch(
                    lead.start(),
                    lead.end(),
                    end.end() if end else value.end(),
                    ASSIGNMENT_RULE,
                    rest,
                )
        start = lead.start() + 1
    return None


def is_assigned_secret(name: str, value: str) -> bool:
    """Whether a value that stands beside a name would be a secret in an assignment to it."""
    match = search_assignment(f'{name}="{value}"', 0)
    return match is not None and match.start == 0


def find_open_assignment(text: str, start: int) -> tuple[int, int] | None:
    """Start of the name and of the value of an assignment that the end of the text cuts off."""
    while lead := _LEAD.search(text, start):
        name = _secret_named_by(lead)
        if name is not None and _is_open(lead, name, text):
            return lead.start(), lead.end()
        start = lead.start() + 1
    return None


def _secret_named_by(lead: re.Match[str]) -> str | None:
    """What the name before a separator says. ``>`` is a separator at the end of a tag, which is no
    type of a type; a plain ``key`` is a name in the query of a URL.
    """
    key, sep = lead["key"], lead["sep"]
    if sep == ">" and not _TAG_BEGINS.match(lead.string[max(lead.start() - 2, 0) : lead.start()]):
        return None
    if key == "key" and sep == "=" and lead.string[max(lead.start() - 1, 0) :][:1] in ("?", "&"):
        return _QUERY_KEY
    return secret_name(key)


def _is_open(lead: re.Match[str], name: str, text: str) -> bool:
    kind = _value_kind(lead, name)
    pattern, rest = _VALUES[kind]
    run = rest.run.match(text, lead.end())
    if run is None or run.end() < len(text):
        return False
    if len(run[0]) < JUDGED:
        return True
    value = pattern.match(text, lead.end())
    return value is not None and _is_credential(lead, name, value[0], "")


def _value_kind(lead: re.Match[str], name: str) -> str:
    if name == "cookie" and lead["sep"] == ":":
        return _COOKIE
    return _QUOTED if lead["quote"] else _BARE


def _is_credential(lead: re.Match[str], name: str, value: str, following: str) -> bool:
    if _value_kind(lead, name) == _COOKIE:
        return _COOKIE_PAIR.match(value) is not None
    if lead["sep"] == ">" and not value[0].isalnum():
        return False
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
    if name == _QUERY_KEY:
        return letters and digits and len(value) >= QUERY_KEY
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


LOGIN_RULE: Final = "login"

# curl -u name:password, and the same of other programs.
_LOGIN: Final = re.compile(
    r"-(?<![^\s\"'`(]-)(?:[A-Za-z]{0,8}?u|-user|-proxy-user)[\s=]{0,2}+(?P<quote>[\"'`]?+)"
    r"(?P<name>[^\s:\"'`$<{/]{0,64}+):"
)
_GROUPS: Final = frozenset((
    "adm", "admin", "app", "daemon", "docker", "group", "nobody", "nogroup", "root", "staff",
    "sudo", "users", "wheel", "www", "www-data",
))  # fmt: skip
_PORT: Final = 5
"""Digits of the longest port; a user and a group are numbers, too."""


def may_hold_login(text: str) -> bool:
    return "-" in text and _LOGIN.search(text) is not None


def search_login(text: str, start: int) -> SecretMatch | None:
    """The first password that an option names behind a user, as in ``curl -u name:password``."""
    while lead := _LOGIN.search(text, start):
        pattern, rest = _VALUES[_QUOTED if lead["quote"] else _BARE]
        value = pattern.match(text, lead.end())
        if value is not None and _is_password(lead["name"], value[0]):
            end = rest.full.match(text, value.end())
            stop = end.end() if end else value.end()
            return SecretMatch(lead.start(), lead.end(), stop, LOGIN_RULE, rest)
        start = lead.start() + 1
    return None


def find_open_login(text: str, start: int) -> tuple[int, int] | None:
    """Start of the option and of the password that the end of the text cuts off."""
    while lead := _LOGIN.search(text, start):
        pattern, rest = _VALUES[_QUOTED if lead["quote"] else _BARE]
        run = rest.run.match(text, lead.end())
        if run is not None and run.end() == len(text):
            value = pattern.match(text, lead.end())
            if len(run[0]) < JUDGED or (value and _is_password(lead["name"], value[0])):
                return lead.start(), lead.end()
        start = lead.start() + 1
    return None


def _is_password(name: str, value: str) -> bool:
    """Whether it is no group of a user, no port of a host and no path on it."""
    lowered = value.lower()
    if value == name or lowered in _GROUPS or any(filler in lowered for filler in _FILLERS):
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

_WORD: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")

_AROUND_SEPARATOR: Final = " \t\xa0\"'`*\\-"

_WIDE_SEPARATORS: Final = "\u21d2\u2192\uff1a\uff1d"


def holds_separator(text: str) -> bool:
    """Whether a name may be separated from its value in a text."""
    return (
        ":" in text
        or "=" in text
        or ">" in text
        or (not text.isascii() and any(mark in text for mark in _WIDE_SEPARATORS))
    )


class Secret(msgspec.Struct, frozen=True):
    """A stretch of text that must not be shown, and the rule that found it."""

    start: int
    end: int
    rule: str


def find_secrets(text: str) -> list[Secret]:
    """All secrets in a text, in order, never overlapping."""
    if not may_hold_secret(text):
        return []
    return [Secret(found.value, found.end, found.rule) for found in scan_secrets(text, 0)]


def scan_secrets(text: str, start: int) -> Iterator[SecretMatch]:
    """Matches from left to right; what stands before `start` is seen, but starts nothing."""
    searches = _searches_for(text)
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


def _searches_for(text: str) -> list[Callable[[str, int], SecretMatch | None]]:
    searches: list[Callable[[str, int], SecretMatch | None]] = [
        shape.search
        for shape in SECRET_SHAPES
        if any(trigger in text for trigger in shape.triggers)
    ]
    if holds_separator(text):
        searches += search_assignment, search_login
    return searches


def _triggers_by_ending(mark: str) -> dict[str, tuple[str, ...]]:
    """The triggers with this mark, by the few characters that end with it."""
    endings: dict[str, tuple[str, ...]] = {}
    for trigger in (trigger for shape in SECRET_SHAPES for trigger in shape.triggers):
        end = trigger.find(mark) + 1
        if end >= _ENDING:
            ending = trigger[end - _ENDING : end]
            endings[ending] = (*endings.get(ending, ()), trigger)
    return endings


_DASHED: Final = _triggers_by_ending("-")
_SCORED: Final = _triggers_by_ending("_")
_DOTTED: Final = _triggers_by_ending(".")
_JSON: Final = _triggers_by_ending("J")


def may_hold_secret(text: str) -> bool:
    """Whether a search is worth it: false means that there is no secret in the text."""
    return len(text) >= SHORTEST and (
        may_hold_token(text)
        or ("=" in text and _has_named(text, "="))
        or (":" in text and (_has_named(text, ":") or may_hold_login(text)))
        or (">" in text and _has_named(text, ">"))
        or (not text.isascii() and any(_has_named(text, mark) for mark in _WIDE_SEPARATORS))
    )


def may_hold_token(text: str) -> bool:
    """The same for secrets that no name and separator come before."""
    # Looking for one character is many times cheaper than looking for two, hence the pairs.
    return len(text) >= SHORTEST and (
        ("-" in text and _has_marked(text, "-", _DASHED))
        or ("_" in text and _has_marked(text, "_", _SCORED))
        or ("J" in text and _has_marked(text, "J", _JSON))
        or ("K" in text and ("AKIA" in text or "SK" in text))
        or ("I" in text and "S" in text and "ASIA" in text)
        or ("B" in text and ("Bot " in text or ("-" in text and "-----BEGIN " in text)))
        or ("/" in text and ("hooks.slack.com/" in text or "/api/webhooks/" in text))
        or ("(" in text and ("run('" in text or 'run("' in text))
        or (_has_digit(text) and _has_digit_shape(text))
    )


def _has_marked(text: str, mark: str, endings: dict[str, tuple[str, ...]]) -> bool:
    place = text.find(mark, 2)
    while place >= 0:
        triggers = endings.get(text[place - 2 : place + 1])
        if triggers is not None and _starts_here(text, place, mark, triggers):
            return True
        place = text.find(mark, place + 1)
    return False


def _starts_here(text: str, place: int, mark: str, triggers: tuple[str, ...]) -> bool:
    for trigger in triggers:
        start = place - trigger.index(mark)
        if start >= 0 and text.startswith(trigger, start) and _is_boundary(text, start):
            return True
    return False


def _is_boundary(text: str, start: int) -> bool:
    if start == 0:
        return True
    before = text[start - 1]
    if before not in _WORD:
        return True
    return "\\" in text[start - 2 : start - 1] or "%" in text[max(start - 3, 0) : start]


def _has_named(text: str, separator: str) -> bool:
    """Whether a separator follows a name that may be a secret's, or belongs to another shape."""
    if "@" in text and "://" in text:
        return True
    place = text.find(separator)
    while place >= 0:
        near = text[place - _NEAR : place] if place > _NEAR else text[:place]
        near = near.rstrip(_AROUND_SEPARATOR)
        if may_name_secret(near[near.rfind(" ") + 1 :]) or text[place + 1 : place + 2] == "A":
            return True
        place = text.find(separator, place + 1)
    return False


def may_name_secret(name: str) -> bool:
    """Parts of names of secrets; `AC` and `sig` belong to shapes with a separator inside."""
    lowered = name.lower()
    return (
        "key" in lowered
        or "token" in lowered
        or "secret" in lowered
        or "pass" in lowered
        or "pwd" in lowered
        or "credential" in lowered
        or "authorization" in lowered
        or "cookie" in lowered
        or "bearer" in lowered
        or "ignature" in lowered
        or "AC" in name
        or name[-3:] == "sig"
    )


def _has_digit(text: str) -> bool:
    return (
        "0" in text
        or "1" in text
        or "2" in text
        or "3" in text
        or "4" in text
        or "5" in text
        or "6" in text
        or "7" in text
        or "8" in text
        or "9" in text
    )


def _has_digit_shape(text: str) -> bool:
    """Shapes that are no secret without a digit."""
    return (
        ("." in text and _has_marked(text, ".", _DOTTED))
        or ("z" in text and "I" in text and "AIza" in text)
        or ("B" in text and "Bearer " in text)
        or "dapi" in text
    )
