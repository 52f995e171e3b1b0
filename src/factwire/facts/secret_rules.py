r"""The table of secrets that are known by how they look, and what a row of it means.

A row is a few steps that are matched without ever going back, so that a search takes linear time
and works on text that arrives in pieces. Steps are separated by spaces: ``sk-|rk-`` literals,
``[a-f0-9]{32}`` a run, ``![\w-]`` what may not follow, ``=@`` what must follow. ``~`` in a literal
is a space. The rows of `GITLEAKS_RULES` come from the rules that the gitleaks project maintains;
`python -m tools.secret_rules FILE COMMIT` brings them up to date.
"""

import re
from functools import cached_property
from itertools import product
from typing import Final

import msgspec

WORD: Final = "A-Za-z0-9_-"

# A token starts where no letter or digit stands before it; an escaped line break or a percent
# escape before it counts. Starts of letters alone have to begin a word.
BOUNDARY: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"

# Starts of letters alone turn up inside base64, behind its signs.
_OUTSIDE_BASE64: Final = rf"(?<![+/])(?:(?<![{WORD}])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{{2}}))"

# A short word of small letters before its separator, as many makers of tokens begin them.
_SHORT_WORD: Final = "|".join(
    rf"(?<=[a-z][a-z0-9]{{{size}}})(?<![{WORD}][a-z][a-z0-9]{{{size}}})" for size in range(1, 8)
)

_SHORT_CAPITALS: Final = "|".join(
    rf"(?<=[A-Z][A-Z0-9]{{{size}}})(?<![{WORD}][A-Z][A-Z0-9]{{{size}}})" for size in range(3, 8)
)

# Words with which ids and digests begin.
_NO_ID: Final = "".join(
    f"(?<!{word})"
    for word in (
        *("sha1", "sha256", "sha384", "sha512", "md5", "resp", "msg", "call", "toolu", "run"),
        *("thread", "evt", "req", "item", "rs", "fc", "file", "batch", "asst", "step", "conv"),
        *("session", "fact", "turn", "task", "blob", "hash", "id", "cursor", "part", "ws", "gen"),
        *("art", "chunk", "commit", "trace", "span", "etag", "index", "integrity", "cache", "SHA"),
    )
)

# Behind a replaced secret nothing starts that could not start behind the secret itself.
NOT_REDACTED: Final = r"(?<!\[redacted\])"


class SecretRule(msgspec.Struct, frozen=True):
    """One row. `lead` stands before the secret and is shown, `rest` is what the secret goes on
    with, `closing` a mark that may end it. `digit`: no digit, no secret; `mixed`: capitals and
    small letters, too. `loose_lead`: pattern of a lead of any text, and of its part after the
    separator; such a lead is shown at once, while a literal lead waits for its value.
    """

    rule: str
    value: str
    lead: str = ""
    rest: str | None = WORD
    closing: str = ""
    digit: bool = False
    mixed: bool = False
    boundary: str = BOUNDARY
    loose_lead: tuple[str, str] | None = None
    triggers: tuple[str, ...] = ()


_KEY_LABELS: Final = "|".join(
    f"{kind}PRIVATE~KEY"
    for kind in ("", "RSA~", "EC~", "DSA~", "OPENSSH~", "ENCRYPTED~", "PGP~", "SSH2~ENCRYPTED~")
)
# Lines of a key may stand behind quote marks, comment signs, or the numbers of lines.
_PEM_GAP: Final = r"[\s\\rn>#|*/+:→0-9\"',]{0,40}"
_PEM: Final = rf"-----BEGIN~ {_KEY_LABELS} -----|~BLOCK----- {_PEM_GAP}"
_PEM_REST: Final = r"A-Za-z0-9+/=:,>#|*→\s\\\"'"
# In a diff that removes a key each line begins with one more dash, also that of the mark.
_PEM_REMOVED: Final = rf"------BEGIN~ {_KEY_LABELS} -----|~BLOCK----- [\s\\rn-]{{0,8}}"
# Lines that grep shows begin with the name of their file.
_PEM_NAMED: Final = (
    rf"-----BEGIN~ {_KEY_LABELS} -----|~BLOCK----- [\r\n]{{1,2}} [\w./-]{{1,80}} : [0-9]{{1,6}} :"
)
_PEM_END: Final = rf"-----END~ [A-Z0-9\x20]{{0,40}} ----- ![{WORD}]"
_DISCORD: Final = f"[MNO] [DTjz] [{WORD}]{{20,26}} . [{WORD}]{{6}} . [{WORD}]{{27}}"
_GITLAB: Final = "glpat-|gldt-|glrt-|glcbt-|glptt-|glft-|glimt-|glagent-|gloas-|glsoat-"
_URL_LEAD: Final = (
    r"(?<![A-Za-z0-9+.-])(?!docker:|oci:)[A-Za-z][A-Za-z0-9+.-]{1,20}+://",
    r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}+:/?\Z",
)
_DATABASES: Final = (
    "postgres|postgresql|mysql|mariadb|mongodb|redis|rediss|amqp|amqps|mssql|clickhouse|sqlserver"
)
_DATABASE_LEAD: Final = (
    rf"(?<![A-Za-z0-9+.-])(?:{_DATABASES})(?:\+[a-z0-9]{{1,12}}+)?+://",
    _URL_LEAD[1],
)
_TELEGRAM_LEAD: Final = (r"(?<![A-Za-z0-9_-])[0-9]{8,10}+:", r"(?!)")

SECRET_RULES: Final[tuple[SecretRule, ...]] = (
    SecretRule("openai", "sk- [A-Za-z0-9]{20}"),
    SecretRule("openai", f"sk-proj-|sk-svcacct-|sk-admin-|sk-None- [{WORD}]{{20}}"),
    SecretRule("openrouter", "sk-or-v1- [0-9a-f]{32}"),
    SecretRule("anthropic", f"sk-ant- [{WORD}]{{20}}"),
    SecretRule("langfuse", "sk-lf- [0-9a-f]{8} - [0-9a-f-]{20}"),
    SecretRule("langsmith", "lsv2_pt_|lsv2_sk_ [0-9a-f]{32}"),
    SecretRule("github", "ghp_|gho_|ghu_|ghs_|ghr_ [A-Za-z0-9]{30}"),
    SecretRule("github", "github_pat_ [A-Za-z0-9_]{40}"),
    SecretRule(
        "gitlab",
        f"glpat-|glrt- [{WORD}]{{27,300}} . [0-9a-z]{{2}} . [0-9a-z]{{9}}",
        rest="0-9a-z",
    ),
    SecretRule("gitlab", f"{_GITLAB} [{WORD}]{{20}}"),
    SecretRule("aws-access-key", f"AKIA|ASIA [A-Z2-7]{{16}} ![{WORD}]", rest=None),
    SecretRule("google-api-key", f"AIza [{WORD}]{{35}}", digit=True),
    SecretRule("google-oauth", f"ya29. [{WORD}]{{20}}", digit=True),
    SecretRule("google-client-secret", f"GOCSPX- [{WORD}]{{20}}"),
    SecretRule(
        "slack",
        "xoxb-|xoxp-|xoxa-|xoxr-|xoxs-|xoxo-|xoxc-|xoxd-|xoxe-|xoxe.xoxp-|xoxe.xoxb-|xapp- "
        "[0-9A-Za-z-]{20}",
        digit=True,
    ),
    SecretRule(
        "slack-webhook",
        "[A-Za-z0-9]{8,14} / [A-Za-z0-9]{8,14} / [A-Za-z0-9]{16}",
        lead="hooks.slack.com/services/|hooks.slack.com/workflows/|hooks.slack.com/triggers/",
        rest=f"/{WORD}",
    ),
    SecretRule("stripe", "sk_live_|rk_live_|sk_test_|rk_test_ [A-Za-z0-9]{16}"),
    SecretRule("stripe-webhook", "whsec_ [A-Za-z0-9+/=]{24}", rest=f"+/={WORD}"),
    SecretRule("twilio", f"SK [0-9a-f]{{32}} ![{WORD}]", rest=None),
    SecretRule("twilio", f"[0-9a-f]{{32}} ![{WORD}]", lead="AC [0-9a-f]{32} :", rest=None),
    SecretRule("sendgrid", f"SG. [{WORD}]{{16,32}} . [{WORD}]{{32}}", digit=True),
    SecretRule("mailgun", f"key- [0-9a-f]{{32}} ![{WORD}]", rest=None),
    SecretRule("factwire", f"fwt_|tkt_ [{WORD}]{{30}}"),
    SecretRule("npm", "npm_ [A-Za-z0-9]{30}"),
    SecretRule("pypi", f"pypi-AgE [{WORD}]{{40}}"),
    SecretRule("huggingface", "hf_ [A-Za-z0-9]{30}"),
    SecretRule("replicate", "r8_ [A-Za-z0-9]{30}"),
    SecretRule("groq", "gsk_ [A-Za-z0-9]{40}"),
    SecretRule("xai", "xai- [A-Za-z0-9]{40}"),
    SecretRule("perplexity", "pplx- [A-Za-z0-9]{32}"),
    SecretRule("nvidia", f"nvapi- [{WORD}]{{40}}"),
    SecretRule("tavily", "tvly- [A-Za-z0-9]{20}"),
    SecretRule(
        "azure-key",
        "[A-Za-z0-9+/]{40}",
        lead="AccountKey=|SharedAccessKey=|SharedSecret=",
        rest=f"+/={WORD}",
    ),
    SecretRule("azure-sas", "[A-Za-z0-9%+/]{40}", lead="sig=", rest=f"%+/={WORD}"),
    SecretRule("digitalocean", "dop_v1_|doo_v1_|dor_v1_ [0-9a-f]{40}"),
    SecretRule("linear", "lin_api_|lin_oauth_ [A-Za-z0-9]{32}"),
    SecretRule("notion", "ntn_|secret_ [A-Za-z0-9]{40}"),
    SecretRule("databricks", "dapi [0-9a-f]{32}", digit=True),
    SecretRule("doppler", "dp.pt.|dp.ct.|dp.sa.|dp.scim.|dp.audit. [A-Za-z0-9]{40}", digit=True),
    SecretRule("vault", f"hvs.|hvb.|hvr. [{WORD}]{{24}}", digit=True),
    SecretRule("terraform", f"atlasv1. [{WORD}]{{40}}", boundary=r"(?<=[A-Za-z0-9]\.)"),
    SecretRule("telegram", f"AA [{WORD}]{{32}}", loose_lead=_TELEGRAM_LEAD, triggers=(":AA",)),
    SecretRule("discord", _DISCORD, lead="Bot~"),
    SecretRule("discord", _DISCORD, lead="run('|run(\""),
    SecretRule(
        "discord-webhook",
        f"[0-9]{{15,20}} / [{WORD}]{{40}}",
        lead="discord.com/api/webhooks/|discordapp.com/api/webhooks/",
    ),
    SecretRule("shopify", "shpat_|shpca_|shppa_|shpss_ [0-9a-fA-F]{32}"),
    SecretRule("supabase", "sbp_|sb_secret_ [0-9A-Za-z_]{30}"),
    SecretRule("grafana", "glsa_ [A-Za-z0-9]{32}"),
    SecretRule("docker-hub", f"dckr_pat_ [{WORD}]{{20}}"),
    SecretRule("sentry", f"sntrys_|sntryu_ [{WORD}]{{40}}", rest=f"+/={WORD}"),
    SecretRule("figma", f"figd_ [{WORD}]{{30}}"),
    SecretRule("new-relic", "NRAK- [A-Z0-9]{24}"),
    SecretRule("postman", "PMAK- [0-9a-f]{24} - [0-9a-f]{30}"),
    SecretRule("square", f"sq0atp-|sq0csp- [{WORD}]{{22}}"),
    SecretRule("tailscale", f"tskey- [{WORD}]{{20}}", digit=True),
    SecretRule("age", "AGE-SECRET-KEY-1 [A-Z0-9]{40}"),
    SecretRule("jwt", f"eyJ [{WORD}]{{8,1024}} .eyJ [{WORD}]{{8}}", rest=f".{WORD}"),
    SecretRule(
        "jwt", f"eyJ [{WORD}]{{8,1024}} . [{WORD}]{{0,1024}} . [{WORD}]{{8}}", rest=f".{WORD}"
    ),
    SecretRule(
        "private-key",
        f"{_PEM} [A-Za-z0-9+/=]{{16}}",
        rest=_PEM_REST,
        closing=_PEM_END,
        boundary=BOUNDARY + NOT_REDACTED,
    ),
    SecretRule(
        "private-key",
        rf"{_PEM} Proc-Type:|DEK-Info:|Version:|Comment: [A-Za-z0-9+/=:,.()\s\\-]{{40}}",
        rest=_PEM_REST,
        closing=_PEM_END,
        boundary=BOUNDARY + NOT_REDACTED,
    ),
    SecretRule(
        "private-key",
        f"{_PEM_NAMED} [A-Za-z0-9+/=]{{16}}",
        rest=rf"{_PEM_REST}_.-",
        boundary=BOUNDARY + NOT_REDACTED,
    ),
    SecretRule(
        "private-key",
        f"{_PEM_REMOVED} [A-Za-z0-9+/=]{{16}}",
        rest=rf"{_PEM_REST}-",
        boundary=BOUNDARY + NOT_REDACTED,
    ),
    SecretRule("circleci", "CCIPAT_|CCIPRJ_ [A-Za-z0-9]{20,24} _ [0-9a-f]{40}"),
    SecretRule("buildkite", "bkua_ [0-9a-f]{40}"),
    SecretRule("render", "rnd_ [A-Za-z0-9]{24}"),
    SecretRule("neon", "napi_ [a-z0-9]{48}"),
    SecretRule(
        "braintree",
        "_token$production$|_token$sandbox$ [0-9a-z]{16} $ [0-9a-f]{32}",
        boundary="(?<=access)",
    ),
    SecretRule("atlassian", f"ATATT3xFfGF0 [{WORD}]{{40}}", rest=f"={WORD}"),
    SecretRule("hubspot", "pat-na1-|pat-eu1- [0-9a-f]{8} - [0-9a-f-]{27}"),
    SecretRule("dropbox", f"sl. [{WORD}]{{100}}", digit=True),
    SecretRule("typeform", f"tfp_ [{WORD}]{{40}}"),
    SecretRule("sourcegraph", "sgp_ [0-9a-f_]{40}"),
    SecretRule("launchdarkly", "sdk-|mob- [0-9a-f]{8} - [0-9a-f]{4} - [0-9a-f-]{22}"),
    SecretRule("onepassword", "ops_eyJ [A-Za-z0-9+/]{100}", rest=f"+/={WORD}"),
    SecretRule("wallet", "xprv|yprv|zprv|tprv [1-9A-HJ-NP-Za-km-z]{90}", digit=True),
    SecretRule("pinecone", "pcsk_ [A-Za-z0-9]{4,8} _ [A-Za-z0-9]{50}"),
    SecretRule("google-refresh", f"1//0 [{WORD}]{{40}}", digit=True),
    SecretRule(
        "azure-client-secret",
        f"Q [\\x7e] [.\\x7e{WORD}]{{31}}",
        rest=f".\\x7e{WORD}",
        boundary=r"(?<=[A-Za-z0-9_~.]{3}[0-9])",
        triggers=("Q~",),
    ),
    SecretRule(
        "password-hash",
        "$apr1$|$1$|$5$|$6$ [./A-Za-z0-9=]{2,32} $ [./A-Za-z0-9]{20}",
        rest="./A-Za-z0-9$",
    ),
    SecretRule("password-hash", "$2a$|$2b$|$2y$ [0-9]{2} $ [./A-Za-z0-9]{50}", rest="./A-Za-z0-9"),
    SecretRule("password-hash", "$argon2id$|$argon2i$ [A-Za-z0-9=$+/]{40}", rest="A-Za-z0-9=$+/"),
    SecretRule(
        "encoded-private-key",
        "LS0tLS1CRUdJTiBSU0EgUFJJVkFUR|LS0tLS1CRUdJTiBQUklWQVRF|LS0tLS1CRUdJTiBFQyBQUklWQVRF"
        "|LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUg|LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFUR "
        "[A-Za-z0-9+/]{40}",
        rest="A-Za-z0-9+/=",
    ),
    SecretRule("mailersend", "mlsn. [0-9a-f]{40}"),
    # A digest may begin like this, too, but has no other letters.
    SecretRule(
        "clickhouse",
        "4b1d ![0-9a-f]{38} [A-Za-z0-9]{38}",
        rest="A-Za-z0-9",
        digit=True,
        boundary=_OUTSIDE_BASE64,
    ),
    SecretRule("bitbucket", "ATBB [A-Za-z0-9]{32}", digit=True, boundary=_OUTSIDE_BASE64),
    SecretRule("tencent", "AKID [A-Za-z0-9]{32}", digit=True, boundary=_OUTSIDE_BASE64),
    SecretRule("yandex", f"AQVN [{WORD}]{{35}}", digit=True, boundary=_OUTSIDE_BASE64),
    SecretRule(
        "intercom",
        "dG9rO [A-Za-z0-9+/]{50}",
        rest="A-Za-z0-9+/=",
        digit=True,
        boundary=_OUTSIDE_BASE64,
    ),
    SecretRule("firebase", f"APA91b [{WORD}]{{100}}"),
    SecretRule("nuget", "oy2 [a-z0-9]{43}", boundary=_OUTSIDE_BASE64),
    # A rule that begins like a common word would hold that word back: the word is looked back at.
    SecretRule(
        "plaid",
        "-production-|-sandbox- [0-9a-f]{8} - [0-9a-f-]{27}",
        boundary="(?<=access)",
    ),
    SecretRule("contentful", f"CFPAT- [{WORD}]{{40}}"),
    SecretRule("mapbox", f"sk.eyJ [{WORD}]{{20,300}} . [{WORD}]{{16}}", rest=f".{WORD}"),
    SecretRule(
        "huggingface-organization", "_org_ [A-Za-z]{34}", rest="A-Za-z", boundary="(?<=api)"
    ),
    SecretRule("teams-webhook", "[0-9a-f]{32}", lead="Webhook/", boundary="(?<=Incoming)"),
    SecretRule(
        "marked-token",
        "_live_|_prod_ [A-Za-z0-9]{14}",
        digit=True,
        boundary="(?<=[A-Za-z0-9])",
    ),
    SecretRule(
        "marked-token",
        "_test_|_pat_|_tkn_|_token_|_secret_|_key_|_api_ [A-Za-z0-9]{20}",
        digit=True,
        boundary="(?<=[A-Za-z0-9])",
    ),
    SecretRule(
        "prefixed-token",
        "_ [A-Za-z0-9]{30}",
        rest="A-Za-z0-9",
        digit=True,
        boundary=f"{_NO_ID}(?:{_SHORT_WORD})",
    ),
    SecretRule(
        "prefixed-token",
        "- [A-Za-z0-9]{32}",
        rest="A-Za-z0-9",
        mixed=True,
        boundary=f"{_NO_ID}(?:{_SHORT_WORD}|{_SHORT_CAPITALS})",
    ),
    SecretRule(
        "signed-url",
        "[0-9a-fA-F]{32}",
        lead="X-Amz-Signature=|X-Goog-Signature=|x-amz-signature=|x-goog-signature=",
    ),
    SecretRule(
        "bearer", "[A-Za-z0-9._~+/=-]{16}", lead="Bearer~", rest=f"._~+/={WORD}", digit=True
    ),
    # The password may hold the sign that ends it, or what begins a path.
    SecretRule(
        "url-password",
        "[A-Za-z0-9._~%!$&*+,;=-]{0,128} : ![*$<{] [^\\s/?#@\"'<>{}\\[\\]\\\\`]{1,256} @ "
        "[^\\s/?#@\"'<>{}\\[\\]\\\\`]{1,128} =@",
        rest=None,
        loose_lead=_URL_LEAD,
        triggers=("://",),
    ),
    SecretRule(
        "url-password",
        "[A-Za-z0-9._~%!$&*+,;=-]{0,128} : ![*$<{0-9] [^\\s@\"'<>{}\\\\`]{1,256} =@",
        rest=None,
        loose_lead=_DATABASE_LEAD,
        triggers=("://",),
    ),
    SecretRule(
        "url-password",
        "[A-Za-z0-9._~%!$&*+,;=-]{0,128} : ![*$<{] [^\\s/?#@\"'<>{}\\[\\]\\\\`]{1,256} =@",
        rest=None,
        loose_lead=_URL_LEAD,
        triggers=("://",),
    ),
)

# gitleaks-rules-begin b58d3f102cf3a2c84cb7f923d05c25c9b1aed84b
GITLEAKS_RULES: Final = (
    SecretRule(
        "1password-secret-key",
        "A3- [A-Z0-9]{6} - [A-Z0-9]{6} - [A-Z0-9]{5} - [A-Z0-9]{5} - [A-Z0-9]{5} - [A-Z0-9]{5}",
        rest="A-Z0-9",
    ),
    SecretRule(
        "1password-secret-key",
        "A3- [A-Z0-9]{6} - [A-Z0-9]{11} - [A-Z0-9]{5} - [A-Z0-9]{5} - [A-Z0-9]{5}",
        rest="A-Z0-9",
    ),
    SecretRule(
        "aws-access-token",
        "A3T [A-Z0-9]{1} [A-Z234567]{16}",
        rest="A-Z234567",
        digit=True,
        boundary=_OUTSIDE_BASE64,
    ),
    SecretRule(
        "aws-access-token",
        "ABIA [A-Z234567]{16}",
        rest="A-Z234567",
        digit=True,
        boundary=_OUTSIDE_BASE64,
    ),
    SecretRule(
        "aws-amazon-bedrock-api-key-long-lived",
        "ABSK [A-Za-z0-9+/]{109}",
        rest="A-Za-z0-9+/=",
        digit=True,
        boundary=_OUTSIDE_BASE64,
    ),
    SecretRule(
        "aws-access-token",
        "ACCA [A-Z234567]{16}",
        rest="A-Z234567",
        digit=True,
        boundary=_OUTSIDE_BASE64,
    ),
    SecretRule(
        "artifactory-api-key",
        "AKCp [A-Za-z0-9]{69}",
        rest="A-Za-z0-9",
        digit=True,
        boundary=_OUTSIDE_BASE64,
    ),
    SecretRule("octopus-deploy-api-key", "API- [A-Z0-9]{26}", rest="A-Z0-9"),
    SecretRule("clojars-api-token", "CLOJARS_ [A-Za-z0-9]{60}", rest="A-Za-z0-9"),
    SecretRule(
        "facebook-page-access-token",
        "EAA [CM]{1} [A-Za-z0-9]{100}",
        rest="A-Za-z0-9",
        digit=True,
        boundary=_OUTSIDE_BASE64,
    ),
    SecretRule(
        "square-access-token",
        "EAAA [A-Za-z0-9_-]{22}",
        rest="A-Za-z0-9_-",
        digit=True,
        boundary=_OUTSIDE_BASE64,
    ),
    SecretRule(
        "easypost-api-token",
        "EZAK [A-Za-z0-9]{54}",
        rest="A-Za-z0-9",
        digit=True,
        boundary=_OUTSIDE_BASE64,
    ),
    SecretRule(
        "easypost-test-api-token",
        "EZTK [A-Za-z0-9]{54}",
        rest="A-Za-z0-9",
        digit=True,
        boundary=_OUTSIDE_BASE64,
    ),
    SecretRule("flutterwave-public-key", "FLWPUBK_TEST- [0-9a-fgh]{32} -X", rest=None),
    SecretRule("flutterwave-secret-key", "FLWSECK_TEST- [0-9a-fgh]{32} -X", rest=None),
    SecretRule("flutterwave-encryption-key", "FLWSECK_TEST- [0-9a-fgh]{12}", rest="0-9a-fgh"),
    SecretRule(
        "gitlab-rrt",
        "GR1348941 [A-Za-z0-9_-]{20}",
        rest="A-Za-z0-9_-",
        digit=True,
        boundary=_OUTSIDE_BASE64,
    ),
    SecretRule("heroku-api-key-v2", "HRKU-AA [A-Za-z0-9_-]{58}", rest="A-Za-z0-9_-"),
    SecretRule(
        "alibaba-access-key-id",
        "LTAI [A-Za-z0-9]{20}",
        rest="A-Za-z0-9",
        digit=True,
        boundary=_OUTSIDE_BASE64,
    ),
    SecretRule("gitlab-session-cookie", "_gitlab_session= [a-z0-9]{32}", rest="a-z0-9"),
    SecretRule(
        "dynatrace-api-token", "dt0c01. [A-Za-z0-9]{24} . [A-Za-z0-9]{64}", rest="A-Za-z0-9"
    ),
    SecretRule("duffel-api-token", "duffel_live_ [A-Za-z0-9=_-]{43}", rest="A-Za-z0-9=_-"),
    SecretRule("duffel-api-token", "duffel_test_ [A-Za-z0-9=_-]{43}", rest="A-Za-z0-9=_-"),
    SecretRule("frameio-api-token", "fio-u- [A-Za-z0-9=_-]{64}", rest="A-Za-z0-9=_-"),
    SecretRule(
        "flyio-access-token",
        "fm1 [ar]{1} _ [A-Za-z0-9+/]{100}",
        rest="A-Za-z0-9+/=",
        digit=True,
        boundary=_OUTSIDE_BASE64,
    ),
    SecretRule("flyio-access-token", "fm2_ [A-Za-z0-9+/]{100}", rest="A-Za-z0-9+/="),
    SecretRule("flyio-access-token", "fo1_ [A-Za-z0-9_-]{43}", rest="A-Za-z0-9_-"),
    SecretRule("grafana-cloud-api-token", "glc_ [A-Za-z0-9+/]{32}", rest="A-Za-z0-9+/="),
    SecretRule("gitlab-feature-flag-client-token", "glffct- [A-Za-z0-9_-]{20}", rest="A-Za-z0-9_-"),
    SecretRule("infracost-api-token", "ico- [A-Za-z0-9]{32}", rest="A-Za-z0-9"),
    SecretRule("adobe-client-secret", "p8e- [A-Za-z0-9]{32}", rest="A-Za-z0-9"),
    SecretRule(
        "harness-api-key",
        "pat. [A-Za-z0-9_-]{22} . [A-Za-z0-9]{24} . [A-Za-z0-9]{20}",
        rest="A-Za-z0-9",
    ),
    SecretRule("prefect-api-token", "pnu_ [A-Za-z0-9]{36}", rest="A-Za-z0-9"),
    SecretRule(
        "planetscale-oauth-token", "pscale_oauth_ [A-Za-z0-9.=_-]{32}", rest="A-Za-z0-9.=_-"
    ),
    SecretRule("planetscale-password", "pscale_pw_ [A-Za-z0-9.=_-]{32}", rest="A-Za-z0-9.=_-"),
    SecretRule("planetscale-api-token", "pscale_tkn_ [A-Za-z0-9.=_-]{32}", rest="A-Za-z0-9.=_-"),
    SecretRule("pulumi-api-token", "pul- [0-9a-f]{40}", rest="0-9a-f"),
    SecretRule("readme-api-token", "rdme_ [a-z0-9]{70}", rest="a-z0-9"),
    SecretRule("stripe-access-token", "rk_prod_ [A-Za-z0-9]{10}", rest="A-Za-z0-9"),
    SecretRule("rubygems-api-token", "rubygems_ [0-9a-f]{48}", rest="0-9a-f"),
    SecretRule("intra42-client-secret", "s-s4t2af- [0-9a-f]{64}", rest="0-9a-f"),
    SecretRule("intra42-client-secret", "s-s4t2ud- [0-9a-f]{64}", rest="0-9a-f"),
    SecretRule(
        "harness-api-key",
        "sat. [A-Za-z0-9_-]{22} . [A-Za-z0-9]{24} . [A-Za-z0-9]{20}",
        rest="A-Za-z0-9",
    ),
    SecretRule(
        "openshift-user-token",
        "sha256 [\\x7e]{1} [A-Za-z0-9_-]{43}",
        rest="A-Za-z0-9_-",
        triggers=("sha256~",),
    ),
    SecretRule("shippo-api-token", "shippo_live_ [0-9A-Fa-f]{40}", rest="0-9A-Fa-f"),
    SecretRule("shippo-api-token", "shippo_test_ [0-9A-Fa-f]{40}", rest="0-9A-Fa-f"),
    SecretRule("stripe-access-token", "sk_prod_ [A-Za-z0-9]{10}", rest="A-Za-z0-9"),
    SecretRule("settlemint-application-access-token", "sm_aat_ [A-Za-z0-9]{16}", rest="A-Za-z0-9"),
    SecretRule("settlemint-personal-access-token", "sm_pat_ [A-Za-z0-9]{16}", rest="A-Za-z0-9"),
    SecretRule("settlemint-service-access-token", "sm_sat_ [A-Za-z0-9]{16}", rest="A-Za-z0-9"),
    SecretRule("scalingo-api-token", "tk-us- [A-Za-z0-9_-]{48}", rest="A-Za-z0-9_-"),
    SecretRule("cloudflare-origin-ca-key", "v1.0- [0-9a-f]{24} - [0-9a-f]{146}", rest="0-9a-f"),
    SecretRule("sendinblue-api-token", "xkeysib- [0-9a-f]{64} - [A-Za-z0-9]{16}", rest="A-Za-z0-9"),
)
# gitleaks-rules-end

_RUN: Final = re.compile(r"\[((?:\\.|[^\]])+)\](?:\{(\d+)(?:,(\d+))?\})?")


class RuleStep(msgspec.Struct, frozen=True):
    """`full` matches the step; `part` matches its beginning, where the text ends within it."""

    full: str
    part: str


def run_step(characters: str, least: int, most: int | None) -> RuleStep:
    bound = "" if most is None else most
    return RuleStep(f"[{characters}]{{{least},{bound}}}+", rf"[{characters}]{{0,{bound}}}+\Z")


def _literals(alternatives: list[str], *, first: bool) -> RuleStep:
    parts = {word[:end] for word in alternatives for end in range(1 if first else 0, len(word))}
    return RuleStep(f"(?>{_any_of(alternatives)})", rf"(?:{_any_of(parts)})\Z")


def _any_of(words: list[str] | set[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))


def _parse_step(notation: str, *, first: bool) -> RuleStep:
    if notation[0] == "!" and len(notation) > 1:
        return RuleStep(f"(?!{notation[1:]})", r"\Z")
    if notation[0] == "=" and len(notation) > 1:
        return RuleStep(f"(?={notation[1:]})", r"\Z")
    run = _RUN.fullmatch(notation)
    if run is None:
        return _literals(notation.replace("~", " ").split("|"), first=first)
    least = int(run[2] or 1)
    return run_step(run[1], least, int(run[3] or least))


def parse_steps(notation: str, *, first: bool = False) -> list[RuleStep]:
    return [
        _parse_step(part, first=first and place == 0) for place, part in enumerate(notation.split())
    ]


def opening_pattern(steps: list[RuleStep]) -> str:
    """Matches text that ends before these steps do."""
    pattern = ""
    for step in reversed(steps):
        pattern = f"(?:{step.part}|{step.full}{pattern})" if pattern else f"(?:{step.part})"
    return pattern


def full_pattern(steps: list[RuleStep]) -> str:
    return "".join(step.full for step in steps)


# Documentation writes xxxx where a secret would stand.
_NO_FILLER: Final = rf"(?![{WORD}]{{0,24}}?[xX]{{4}})"


class LazyPattern(msgspec.Struct, frozen=True, dict=True):
    """A regular expression that is compiled when it is first used: there are hundreds of them, and
    most processes use few.
    """

    pattern: str

    @cached_property
    def match(self):  # noqa: ANN201 - as of `re.Pattern`
        return re.compile(self.pattern).match

    @cached_property
    def search(self):  # noqa: ANN201 - as of `re.Pattern`
        return re.compile(self.pattern).search


class SecretTail(msgspec.Struct, frozen=True):
    """How a confirmed secret goes on: a run of one class, and at most one closing mark."""

    run: LazyPattern
    full: LazyPattern
    opening: LazyPattern


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
    pattern: LazyPattern
    boundary: str
    opening: str
    rest: SecretTail | None
    spaced: bool
    loose: bool
    begins_word: bool
    anchor: LazyPattern | None
    digit: bool
    run: int
    """Word signs side by side in whatever the row matches, at least."""

    def search(self, text: str, start: int) -> SecretMatch | None:
        match = self.pattern.search(text, start) if self.anchor is None else None
        # A search for literals skips what a search that begins with a boundary tries one by one.
        while self.anchor and match is None and (found := self.anchor.search(text, start)):
            match, start = self.pattern.match(text, found.start()), found.start() + 1
        if match is None:
            return None
        return SecretMatch(match.start(), match.start(1), match.end(1), self.rule, self.rest)


def tail_of(characters: str, closing: str = "") -> SecretTail:
    run, close = run_step(characters, 0, None), parse_steps(closing)
    end = f"(?:{full_pattern(close)})?+" if close else ""
    return SecretTail(
        run=LazyPattern(run.full),
        full=LazyPattern(run.full + end),
        opening=LazyPattern(opening_pattern([run, *close])),
    )


def _build_shape(row: SecretRule) -> SecretShape:
    lead, value, rest, loose_lead = row.lead, row.value, row.rest, row.loose_lead
    leads = parse_steps(lead, first=True)
    values = parse_steps(value, first=not lead and loose_lead is None)
    tail = [run_step(rest, 0, None)] if rest else []
    close = parse_steps(row.closing)
    last = values.pop()
    need = rf"(?=[{rest}]{{0,200}}?[0-9])" if row.digit or row.mixed else ""
    need += rf"(?=[{rest}]{{0,31}}?[A-Z])(?=[{rest}]{{0,31}}?[a-z])" if row.mixed else ""
    body = "".join((_NO_FILLER if "]" in s.full else "") + s.full for s in values)
    body += need + _NO_FILLER + last.full + full_pattern(tail)
    body += f"(?:{full_pattern(close)})?+" if close else ""
    before = loose_lead[0] if loose_lead else row.boundary + full_pattern(leads)
    opening = opening_pattern([*leads, *values, last, *tail, *close])
    if loose_lead:
        opening = f"(?:{loose_lead[1]}()|{loose_lead[0]}(){opening})"
    literals = (lead or value).split()[0].replace("~", " ").split("|")
    anchor = None if loose_lead else _anchor_of(literals, [*leads, *values, last])
    return SecretShape(
        rule=row.rule,
        triggers=row.triggers or tuple(literals),
        pattern=LazyPattern(f"{before}({body})"),
        boundary="" if loose_lead else row.boundary,
        opening=opening,
        rest=tail_of(rest, row.closing) if rest else None,
        spaced="~" in lead + value,
        loose=loose_lead is not None,
        begins_word=row.boundary == BOUNDARY,
        anchor=anchor,
        digit=row.digit or row.mixed,
        run=_shortest_run(f"{lead} {value}"),
    )


_WORD_CLASS: Final = re.compile(r"(?:[A-Z]-[A-Z]|[a-z]-[a-z]|[0-9]-[0-9]|[A-Za-z0-9_])*+-?")
_WORD_RUN: Final = re.compile(rf"[{WORD}]*")


def _shortest_run(notation: str) -> int:
    """The longest run of word signs that every text has that these steps match."""
    samples = product(*map(_samples_of, notation.split()))
    return min(max(map(len, _WORD_RUN.findall("".join(sample)))) for sample in samples)


def _samples_of(notation: str) -> list[str]:
    """Texts that a step matches, with as few word signs as can be."""
    if notation[0] in "!=" and len(notation) > 1:
        return [""]
    run = _RUN.fullmatch(notation)
    if run is None:
        return notation.replace("~", " ").split("|")
    return ["0" * int(run[2] or 1) if _WORD_CLASS.fullmatch(run[1]) else " "]


def _anchor_of(literals: list[str], steps: list[RuleStep]) -> LazyPattern | None:
    """The literals with which a row begins; what follows a single sign has to fit, too."""
    if literals[0][0] == "[":
        return None
    behind = f"(?={steps[1].full})" if len(literals[0]) == 1 else ""
    return LazyPattern(f"(?:{'|'.join(map(re.escape, literals))}){behind}")


SECRET_SHAPES: Final[tuple[SecretShape, ...]] = tuple(
    map(_build_shape, (*SECRET_RULES, *GITLEAKS_RULES))
)
"""Literals come first in a row, so that a search for them can be skipped where none occurs."""
