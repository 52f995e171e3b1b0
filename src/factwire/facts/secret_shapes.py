r"""What the values of secrets look like: one table.

A shape is a few steps that are matched without ever going back: literals, bounded runs of a
class of characters, and a rest that runs on as long as its class lasts. So each shape costs linear
time, its head is short, and the same steps tell three things: the secret, the text that may still
become one (`opening`), and how far a secret of any length goes on (`Rest`).

Steps are separated by spaces: ``sk-|rk-`` literals, ``[a-f0-9]{32}`` a run, ``![\w-]`` what may
not follow, ``=@`` what must follow. ``~`` in a literal is a space.
"""

import re
from typing import Final

import msgspec

__all__ = ["SHAPES", "Found", "Rest", "Shape"]

WORD: Final = "A-Za-z0-9_-"

# A token starts where no word goes on; an escaped line break or a percent escape before it counts.
BOUNDARY: Final = rf"(?:(?<![{WORD}])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{{2}}))"

# Behind a replaced secret nothing starts that could not start behind the secret itself.
NOT_REDACTED: Final = r"(?<!\[redacted\])"

# Documentation writes xxxx where a secret would stand.
_NO_FILLER: Final = rf"(?![{WORD}]{{0,24}}?[xX]{{4}})"

_RUN: Final = re.compile(r"\[((?:\\.|[^\]])+)\](?:\{(\d+)(?:,(\d+))?\})?")


class Rest(msgspec.Struct, frozen=True):
    """How a confirmed secret goes on: a run of one class, and at most one closing mark."""

    run: re.Pattern[str]
    full: re.Pattern[str]
    opening: re.Pattern[str]


class Found(msgspec.Struct, frozen=True):
    """One match: where its lead starts, where the value to hide starts and ends."""

    start: int
    value: int
    end: int
    rule: str
    rest: Rest | None


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    rule: str
    triggers: tuple[str, ...]
    pattern: re.Pattern[str]
    boundary: str
    opening: str
    rest: Rest | None
    spaced: bool
    loose: bool

    def search(self, text: str, start: int) -> Found | None:
        match = self.pattern.search(text, start)
        if match is None:
            return None
        return Found(match.start(), match.start(1), match.end(1), self.rule, self.rest)


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


def _step(notation: str, *, first: bool) -> _Step:
    if notation[0] == "!" and len(notation) > 1:
        return _Step(f"(?!{notation[1:]})", r"\Z")
    if notation[0] == "=" and len(notation) > 1:
        return _Step(f"(?={notation[1:]})", r"\Z")
    run = _RUN.fullmatch(notation)
    if run is None:
        return _literals(notation.replace("~", " ").split("|"), first=first)
    least = int(run[2] or 1)
    return _run(run[1], least, int(run[3] or least))


def _steps(notation: str, *, first: bool = False) -> list[_Step]:
    return [_step(part, first=first and place == 0) for place, part in enumerate(notation.split())]


def _opening(steps: list[_Step]) -> str:
    """Matches text that ends before these steps do."""
    pattern = ""
    for step in reversed(steps):
        pattern = f"(?:{step.part}|{step.full}{pattern})" if pattern else f"(?:{step.part})"
    return pattern


def _full(steps: list[_Step]) -> str:
    return "".join(step.full for step in steps)


def rest_of(characters: str, closing: str = "") -> Rest:
    run, close = _run(characters, 0, None), _steps(closing)
    end = f"(?:{_full(close)})?+" if close else ""
    return Rest(
        run=re.compile(run.full),
        full=re.compile(run.full + end),
        opening=re.compile(_opening([run, *close])),
    )


def _shape(
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
) -> Shape:
    """`digit`: no digit, no secret. `loose_lead`: pattern of a lead of any text, and of its part
    after the separator; such a lead is shown at once, while a literal lead waits for its value.
    """
    leads = _steps(lead, first=True)
    values = _steps(value, first=not lead and loose_lead is None)
    tail = [_run(rest, 0, None)] if rest else []
    close = _steps(closing)
    last = values.pop()
    need = rf"(?=[{rest}]{{0,200}}?[0-9])" if digit else ""
    body = "".join((_NO_FILLER if "]" in s.full else "") + s.full for s in values)
    body += need + _NO_FILLER + last.full + _full(tail)
    body += f"(?:{_full(close)})?+" if close else ""
    before = loose_lead[0] if loose_lead else boundary + _full(leads)
    opening = _opening([*leads, *values, last, *tail, *close])
    if loose_lead:
        opening = f"(?:{loose_lead[1]}()|{loose_lead[0]}(){opening})"
    literals = (lead or value).split()[0].replace("~", " ").split("|")
    return Shape(
        rule=rule,
        triggers=triggers or tuple(literals),
        pattern=re.compile(f"{before}({body})"),
        boundary="" if loose_lead else boundary,
        opening=opening,
        rest=rest_of(rest, closing) if rest else None,
        spaced="~" in lead + value,
        loose=loose_lead is not None,
    )


_KEY_LABELS: Final = "|".join(
    f"{kind}PRIVATE~KEY"
    for kind in ("", "RSA~", "EC~", "DSA~", "OPENSSH~", "ENCRYPTED~", "PGP~", "SSH2~ENCRYPTED~")
)
_PEM: Final = rf"-----BEGIN~ {_KEY_LABELS} -----|~BLOCK----- [\s\\rn]{{0,8}}"
_PEM_REST: Final = r"A-Za-z0-9+/=:,\s\\"
_PEM_END: Final = rf"-----END~ [A-Z0-9\x20]{{0,40}} ----- ![{WORD}]"
_DISCORD: Final = f"[MNO] [DTjz] [{WORD}]{{20,26}} . [{WORD}]{{6}} . [{WORD}]{{27}}"
_GITLAB: Final = "glpat-|gldt-|glrt-|glcbt-|glptt-|glft-|glimt-|glagent-|gloas-|glsoat-"
_URL_LEAD: Final = (
    r"(?<![A-Za-z0-9+.-])(?!docker:|oci:)[A-Za-z][A-Za-z0-9+.-]{1,20}+://",
    r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}+:/?\Z",
)
_TELEGRAM_LEAD: Final = (r"(?<![A-Za-z0-9_-])[0-9]{8,10}+:", r"(?!)")

SHAPES: Final[tuple[Shape, ...]] = (
    _shape("openai", "sk- [A-Za-z0-9]{20}"),
    _shape("openai", f"sk-proj-|sk-svcacct-|sk-admin-|sk-None- [{WORD}]{{20}}"),
    _shape("openrouter", "sk-or-v1- [0-9a-f]{32}"),
    _shape("anthropic", f"sk-ant- [{WORD}]{{20}}"),
    _shape("langfuse", "sk-lf- [0-9a-f]{8} - [0-9a-f-]{20}"),
    _shape("langsmith", "lsv2_pt_|lsv2_sk_ [0-9a-f]{32}"),
    _shape("github", "ghp_|gho_|ghu_|ghs_|ghr_ [A-Za-z0-9]{30}"),
    _shape("github", "github_pat_ [A-Za-z0-9_]{40}"),
    _shape("gitlab", f"{_GITLAB} [{WORD}]{{20}}"),
    _shape("aws-access-key", f"AKIA|ASIA [A-Z2-7]{{16}} ![{WORD}]", rest=None),
    _shape("google-api-key", f"AIza [{WORD}]{{35}}", digit=True),
    _shape("google-oauth", f"ya29. [{WORD}]{{20}}", digit=True),
    _shape("google-client-secret", f"GOCSPX- [{WORD}]{{20}}"),
    _shape(
        "slack",
        "xoxb-|xoxp-|xoxa-|xoxr-|xoxs-|xoxo-|xoxc-|xoxd-|xoxe-|xoxe.xoxp-|xoxe.xoxb-|xapp- "
        "[0-9A-Za-z-]{20}",
        digit=True,
    ),
    _shape(
        "slack-webhook",
        "[A-Za-z0-9]{8,14} / [A-Za-z0-9]{8,14} / [A-Za-z0-9]{16}",
        lead="hooks.slack.com/services/|hooks.slack.com/workflows/|hooks.slack.com/triggers/",
        rest=f"/{WORD}",
    ),
    _shape("stripe", "sk_live_|rk_live_|sk_test_|rk_test_ [A-Za-z0-9]{16}"),
    _shape("stripe-webhook", "whsec_ [A-Za-z0-9+/=]{24}", rest=f"+/={WORD}"),
    _shape("twilio", f"SK [0-9a-f]{{32}} ![{WORD}]", rest=None),
    _shape("twilio", f"[0-9a-f]{{32}} ![{WORD}]", lead="AC [0-9a-f]{32} :", rest=None),
    _shape("sendgrid", f"SG. [{WORD}]{{16,32}} . [{WORD}]{{32}}", digit=True),
    _shape("mailgun", f"key- [0-9a-f]{{32}} ![{WORD}]", rest=None),
    _shape("factwire", f"fwt_|tkt_ [{WORD}]{{30}}"),
    _shape("npm", "npm_ [A-Za-z0-9]{30}"),
    _shape("pypi", f"pypi-AgE [{WORD}]{{40}}"),
    _shape("huggingface", "hf_ [A-Za-z0-9]{30}"),
    _shape("replicate", "r8_ [A-Za-z0-9]{30}"),
    _shape("groq", "gsk_ [A-Za-z0-9]{40}"),
    _shape("xai", "xai- [A-Za-z0-9]{40}"),
    _shape("perplexity", "pplx- [A-Za-z0-9]{32}"),
    _shape("nvidia", f"nvapi- [{WORD}]{{40}}"),
    _shape("tavily", "tvly- [A-Za-z0-9]{20}"),
    _shape(
        "azure-key",
        "[A-Za-z0-9+/]{40}",
        lead="AccountKey=|SharedAccessKey=|SharedSecret=",
        rest=f"+/={WORD}",
    ),
    _shape("azure-sas", "[A-Za-z0-9%+/]{40}", lead="sig=", rest=f"%+/={WORD}"),
    _shape("digitalocean", "dop_v1_|doo_v1_|dor_v1_ [0-9a-f]{40}"),
    _shape("linear", "lin_api_|lin_oauth_ [A-Za-z0-9]{32}"),
    _shape("notion", "ntn_|secret_ [A-Za-z0-9]{40}"),
    _shape("databricks", "dapi [0-9a-f]{32}", digit=True),
    _shape("doppler", "dp.pt.|dp.ct.|dp.sa.|dp.scim.|dp.audit. [A-Za-z0-9]{40}", digit=True),
    _shape("vault", f"hvs.|hvb.|hvr. [{WORD}]{{24}}", digit=True),
    _shape("terraform", f"atlasv1. [{WORD}]{{40}}", boundary=r"(?<=[A-Za-z0-9]\.)"),
    _shape("telegram", f"AA [{WORD}]{{32}}", loose_lead=_TELEGRAM_LEAD, triggers=(":AA",)),
    _shape("discord", _DISCORD, lead="Bot~"),
    _shape("discord", _DISCORD, lead="run('|run(\""),
    _shape(
        "discord-webhook",
        f"[0-9]{{15,20}} / [{WORD}]{{40}}",
        lead="discord.com/api/webhooks/|discordapp.com/api/webhooks/",
    ),
    _shape("shopify", "shpat_|shpca_|shppa_|shpss_ [0-9a-fA-F]{32}"),
    _shape("supabase", "sbp_|sb_secret_ [0-9A-Za-z_]{30}"),
    _shape("grafana", "glsa_ [A-Za-z0-9]{32}"),
    _shape("docker-hub", f"dckr_pat_ [{WORD}]{{20}}"),
    _shape("sentry", f"sntrys_|sntryu_ [{WORD}]{{40}}", rest=f"+/={WORD}"),
    _shape("figma", f"figd_ [{WORD}]{{30}}"),
    _shape("new-relic", "NRAK- [A-Z0-9]{24}"),
    _shape("postman", "PMAK- [0-9a-f]{24} - [0-9a-f]{30}"),
    _shape("square", f"sq0atp-|sq0csp- [{WORD}]{{22}}"),
    _shape("tailscale", f"tskey- [{WORD}]{{20}}", digit=True),
    _shape("age", "AGE-SECRET-KEY-1 [A-Z0-9]{40}"),
    _shape("jwt", f"eyJ [{WORD}]{{8,1024}} .eyJ [{WORD}]{{8}}", rest=f".{WORD}"),
    _shape("jwt", f"eyJ [{WORD}]{{8,1024}} . [{WORD}]{{0,1024}} . [{WORD}]{{8}}", rest=f".{WORD}"),
    _shape(
        "private-key",
        f"{_PEM} [A-Za-z0-9+/=]{{16}}",
        rest=_PEM_REST,
        closing=_PEM_END,
        boundary=BOUNDARY + NOT_REDACTED,
    ),
    _shape(
        "private-key",
        rf"{_PEM} Proc-Type:|DEK-Info:|Version:|Comment: [A-Za-z0-9+/=:,.()\s\\-]{{40}}",
        rest=_PEM_REST,
        closing=_PEM_END,
        boundary=BOUNDARY + NOT_REDACTED,
    ),
    _shape("bearer", "[A-Za-z0-9._~+/=-]{16}", lead="Bearer~", rest=f"._~+/={WORD}", digit=True),
    _shape(
        "url-password",
        "[A-Za-z0-9._~%!$&*+,;=-]{0,128} : ![*$<{] [^\\s/?#@\"'<>{}\\[\\]\\\\`]{1,256} =@",
        rest=None,
        loose_lead=_URL_LEAD,
        triggers=("://",),
    ),
)
"""Literals come first in a row, so that a search for them can be skipped where none occurs."""
