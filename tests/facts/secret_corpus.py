"""Made-up secrets and what only looks like them.

Everything is put together from parts with a fixed seed: no file of this repository holds a string
that a scanner of code hosts would take for a credential.
"""

import re
import string
from collections.abc import Callable, Iterable
from random import Random
from typing import Final, NamedTuple

from factwire.facts.secret_rules import GITLEAKS_RULES, SECRET_RULES, SecretRule

__all__ = ["FRAGMENTS", "NEGATIVES", "POSITIVES", "Case"]

_LETTERS: Final = string.ascii_letters
_ALNUM: Final = string.ascii_letters + string.digits
_UPPER: Final = string.ascii_uppercase + "234567"
_HEX: Final = "0123456789abcdef"
_WORD: Final = _ALNUM + "_-"
_BASE64: Final = _ALNUM + "+/"
_MIXED: Final = 3
"""Characters of the shortest body that holds a digit wherever it may."""


class Case(NamedTuple):
    """A text, and the secret that must vanish from it (empty in a negative)."""

    rule: str
    text: str
    secret: str = ""


class _Token(NamedTuple):
    rule: str
    prefix: str
    alphabet: str
    length: int
    suffix: str = ""


_TOKENS: Final = (
    _Token("openai", "sk" + "-", _ALNUM, 48),
    _Token("openai", "sk" + "-proj-", _WORD, 80),
    _Token("openai", "sk" + "-svcacct-", _WORD, 80),
    _Token("openrouter", "sk" + "-or-v1-", _HEX, 64),
    _Token("anthropic", "sk" + "-ant-api03-", _WORD, 93, "AA"),
    _Token("langfuse", "sk" + "-lf-1a2b3c4d-", _HEX, 28),
    _Token("langsmith", "lsv2" + "_pt_", _HEX, 32),
    _Token("github", "gh" + "p_", _ALNUM, 36),
    _Token("github", "gh" + "s_", _ALNUM, 36),
    _Token("github", "gh" + "o_", _ALNUM, 36),
    _Token("github", "github" + "_pat_", _ALNUM + "_", 82),
    _Token("gitlab", "gl" + "pat-", _WORD, 20),
    _Token("aws-access-key", "AK" + "IA", _UPPER, 16),
    _Token("aws-access-key", "AS" + "IA", _UPPER, 16),
    _Token("google-api-key", "AI" + "za", _WORD, 35, "7"),
    _Token("google-oauth", "ya" + "29.", _WORD, 120),
    _Token("google-client-secret", "GOC" + "SPX-", _WORD, 28),
    _Token("slack", "xo" + "xb-1234567890-", _ALNUM, 24),
    _Token("slack", "xo" + "xp-1234567890-", _ALNUM, 32),
    _Token("slack", "xa" + "pp-1-A012345-", _HEX, 64),
    _Token("stripe", "sk" + "_live_", _ALNUM, 24),
    _Token("stripe", "rk" + "_live_", _ALNUM, 24),
    _Token("stripe", "sk" + "_test_", _ALNUM, 24),
    _Token("stripe-webhook", "wh" + "sec_", _ALNUM, 32),
    _Token("twilio", "S" + "K", _HEX, 32),
    _Token("sendgrid", "S" + "G." + "Ab1dEf2hIj3lMn4pQr5tUv.", _WORD, 43, "0"),
    _Token("mailgun", "key" + "-", _HEX, 32),
    _Token("factwire", "fw" + "t_", _WORD, 43),
    _Token("npm", "np" + "m_", _ALNUM, 36),
    _Token("pypi", "py" + "pi-AgEIcHlwaS5vcmc", _WORD, 120),
    _Token("huggingface", "h" + "f_", _LETTERS, 34),
    _Token("replicate", "r" + "8_", _ALNUM, 37),
    _Token("groq", "gs" + "k_", _ALNUM, 52),
    _Token("xai", "xa" + "i-", _ALNUM, 80),
    _Token("perplexity", "pp" + "lx-", _ALNUM, 48),
    _Token("nvidia", "nv" + "api-", _WORD, 64),
    _Token("tavily", "tv" + "ly-", _ALNUM, 32),
    _Token("digitalocean", "do" + "p_v1_", _HEX, 64),
    _Token("linear", "lin" + "_api_", _ALNUM, 40),
    _Token("notion", "nt" + "n_", _ALNUM, 46),
    _Token("notion", "secret" + "_", _ALNUM, 43),
    _Token("databricks", "da" + "pi", _HEX, 32, "0"),
    _Token("doppler", "dp" + ".pt.", _ALNUM, 43, "1"),
    _Token("vault", "hv" + "s.", _WORD, 90, "1"),
    _Token("shopify", "shp" + "at_", _HEX, 32),
    _Token("supabase", "sb" + "p_", _HEX, 40),
    _Token("grafana", "gl" + "sa_", _ALNUM, 32, "_1a2b3c4d"),
    _Token("docker-hub", "dckr" + "_pat_", _WORD, 27),
    _Token("sentry", "sntry" + "s_", _ALNUM, 60),
    _Token("figma", "fi" + "gd_", _WORD, 40),
    _Token("new-relic", "NR" + "AK-", _UPPER, 27),
    _Token("postman", "PM" + "AK-" + "0123456789abcdef01234567-", _HEX, 34),
    _Token("square", "sq0" + "atp-", _WORD, 22),
    _Token("tailscale", "ts" + "key-auth-k1", _ALNUM, 30),
    _Token("age", "AGE-SECRET" + "-KEY-1", _UPPER, 58),
    _Token("jwt", "ey" + "JhbGciOiJIUzI1NiJ9.ey" + "J", _WORD, 40, ".c2lnbmF0dXJl"),
    _Token("jwt", "ey" + "JlbmMiOiJBMjU2R0NNIn0..", _WORD, 40, ".dGFn"),
)


class _Placed(NamedTuple):
    """A secret that is one because of what stands around it."""

    rule: str
    before: str
    alphabet: str
    length: int
    after: str = ""
    start: str = ""


_RSA: Final = "-----BEGIN RSA " + "PRIVATE KEY-----\n"

_BEGIN: Final = "-----BEGIN RSA " + "PRIVATE KEY-----"

_PLACED: Final = (
    _Placed(
        "slack-webhook", "https://hooks.slack.com/services/", _ALNUM, 24, "", "T01AB2CDE/B01AB2CDE/"
    ),
    _Placed("slack-webhook", "hooks.slack.com/workflows/", _ALNUM, 24, " ", "T01AB2CDE/A01AB2CDE/"),
    _Placed(
        "discord-webhook", "https://discord.com/api/webhooks/", _WORD, 68, "", "123456789012345678/"
    ),
    _Placed(
        "discord-webhook", "discordapp.com/api/webhooks/", _WORD, 68, " ok", "123456789012345678/"
    ),
    _Placed(
        "discord", "Authorization: Bot ", _WORD, 27, "", "MT" + "k4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ."
    ),
    _Placed("discord", 'client.run("', _WORD, 27, '")', "MT" + "k4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ."),
    _Placed("discord", "bot.run('", _WORD, 38, "')", "Nz" + "k4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ."),
    _Placed("twilio", "curl -u A" + "C" + "0123456789abcdef" * 2 + ":", _HEX, 32, " x"),
    _Placed("azure-key", "AccountName=shop;AccountKey=", _BASE64, 86, ";EndpointSuffix=core", ""),
    _Placed("azure-key", "SharedAccessKeyName=root;SharedAccessKey=", _BASE64, 43, "", ""),
    _Placed(
        "azure-sas",
        "https://shop.blob.example.com/c?sv=2022-11-02&sig=",
        _ALNUM,
        43,
        "&se=2030",
        "",
    ),
    _Placed("terraform", "token Ab1cDe2fGh3iJk.", _WORD, 64, " here", "atlas" + "v1."),
    _Placed("telegram", "bot 123456789:", _WORD, 33, " runs", "A" + "A"),
    _Placed("telegram", "https://api.telegram.org/bot:1234567890:", _WORD, 33, "/getMe", "A" + "A"),
    _Placed("bearer", "sends Bearer ", _ALNUM + ".", 40, " to", "a1"),
    _Placed("bearer", "'Bearer ", _WORD, 24, "'", "a1"),
    _Placed("url-password", "postgres://", _ALNUM, 14, "@db.example.com:5432/app", "app:"),
    _Placed("url-password", "mysql://", _ALNUM, 14, "@localhost/app", "root:"),
    _Placed("url-password", "mongodb+srv://", _ALNUM, 14, "@cluster0.example.net/db", "admin:"),
    _Placed("url-password", "redis://", _ALNUM, 14, "@cache:6379/0", ":"),
    _Placed("url-password", "amqp://", _ALNUM, 14, "@queue/vhost", "guest:"),
    _Placed("url-password", "git clone https://", _ALNUM, 20, "@git.example.com/a/b.git", "me:"),
    _Placed("private-key", "", _BASE64, 600, "", "-----BEGIN RSA " + "PRIVATE KEY-----\n"),
    _Placed(
        "private-key",
        "key:\n",
        _BASE64,
        64,
        "\n-----END " + "PRIVATE KEY-----\n",
        "-----BEGIN " + "PRIVATE KEY-----\n",
    ),
    _Placed("private-key", "", _BASE64, 300, "\n", "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n"),
    _Placed("private-key", '"', _BASE64, 300, '\\n"', "-----BEGIN EC " + "PRIVATE KEY-----\\n"),
    _Placed(
        "private-key",
        "",
        _BASE64,
        300,
        "",
        _RSA + "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n",
    ),
    _Placed(
        "private-key",
        "",
        _BASE64,
        300,
        "",
        "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\nVersion: GnuPG v2.0.22 (GNU/Linux)\n\nlQOYBF",
    ),
    *(
        _Placed("private-key", mark, _BASE64, 64, "\n" + mark, _BEGIN + "\n" + mark)
        for mark in ("> ", "   12→", "12:\t", "# ", "| ", "// ", "+", "-", ">> ", " * ")
    ),
    _Placed("signed-url", "https://s3.example.com/a?X-Amz-Signature=", _HEX, 64, "&x=1"),
    _Placed("login", "curl -u user:", _LETTERS, 9, " https://example.com"),
    _Placed("login", "curl -sSu 'me@example.com:", _ALNUM, 12, "' -H 'Accept: */*'"),
    _Placed("login", 'curl --user="admin:', _ALNUM, 12, '" -o out'),
    _Placed("login", "curl https://example.com --proxy-user :", _ALNUM, 16, ""),
    _Placed("login", "curl -uadmin:", _ALNUM, 10, "\n"),
    _Placed("signed-url", "https://s3.example.com/a?b=1&X-Goog-Signature=", _HEX, 128, ""),
    _Placed("assignment", "https://maps.example.com/api/js?key=", _WORD, 32, "&v=3", "a1"),
    _Placed("assignment", "GET /v1/models?page=2&key=", _ALNUM, 39, " HTTP/1.1", "b2"),
    *(
        _Placed("assignment", before, _ALNUM, 24, after, "a1")
        for before, after in (
            ("API_KEY=", ""),
            ("token ⇒ ", " thanks"),
            ("the token → ", ""),
            ("token -> ", "\n"),
            ("token\uff1a", "。"),
            ("secret\uff1d", ""),
            ("**API key:** ", "\n"),
            ("password\xa0:\xa0", ""),
            ("TOKEN=$'", "'"),
            ("<password>", "</password>"),
            ("+export DEPLOY_SECRET=", "\n"),
            ("- x-api-key=", "\n"),
            ("export OPENAI_API_KEY=", "\n"),
            ('"client_secret": "', '"'),
            ('{\\"api_key\\": \\"', '\\"}'),
            ('{\\\\\\"access_token\\\\\\": \\\\\\"', '\\\\\\"}'),
            ("password: ", ""),
            ("password = '", "'"),
            ("my API key: ", " thanks"),
            ("**Password**: ", "\n"),
            ("aws_secret_access_key = ", "\n"),
            ("AWS_SECRET_ACCESS_KEY=", " "),
            ("spring.datasource.password=", "\n"),
            ("--auth-token=", " run"),
            ("https://api.example.com/v1?access_token=", "&page=2"),
            ("Server=db;Database=app;User Id=sa;Password=", ";Encrypt=true"),
            ("Server=db;Uid=sa;Pwd=", ";"),
            ("X-Api-Key: ", "\r\n"),
            ("Authorization: Bearer ", "\n"),
            ("authorization: bearer ", "\n"),
            ("'Authorization': 'Token ", "'"),
            ("Proxy-Authorization: Basic ", "\n"),
            ("Cookie: session=", "; theme=dark"),
            ("Set-Cookie: sid=", "; Path=/; HttpOnly"),
            ("x = 1\\npassword=", "\\ny = 2"),
            ("signing_key => '", "'"),
            ("passphrase := `", "`"),
        )
    ),
)

_WRAPS: Final = (
    "{}",
    "please use {} for this",
    '{{"value": "{}"}}',
    "({}, then restart)",
    "line one\\n{}\\nline two",
    "first\n{}\nlast",
    "?next=%2F%3D{}&b=1",
)


def _body(rng: Random, alphabet: str, length: int) -> str:
    while True:
        body = "".join(rng.choice(alphabet) for _ in range(length))
        if "xxxx" not in body.lower() and (
            length < _MIXED or not body.isalpha() or alphabet is _LETTERS
        ):
            return body


def _positives(rng: Random) -> Iterable[Case]:
    for token in _TOKENS:
        for wrap in rng.sample(_WRAPS, 4):
            secret = token.prefix + _body(rng, token.alphabet, token.length) + token.suffix
            yield Case(token.rule, wrap.format(secret), secret)
    for placed in _PLACED:
        for _ in range(4):
            secret = placed.start + _body(rng, placed.alphabet, placed.length)
            yield Case(placed.rule, placed.before + secret + placed.after, secret)


def _near_misses(rng: Random) -> Iterable[Case]:
    for token in _TOKENS:
        body = _body(rng, token.alphabet, token.length)
        yield Case(token.rule, f"it starts with {token.prefix}... and goes on")
        yield Case(token.rule, f"set it to {token.prefix}{'x' * token.length} first")
        yield Case(token.rule, f"too short: {token.prefix}{body[:6]} ends")
        is_marked = any(mark in token.prefix for mark in ("_live_", "_test_", "_pat_", "_api_"))
        if token.rule not in ("aws-access-key", "twilio", "jwt") and not is_marked:
            yield Case(token.rule, f"in a word: ZZ{token.prefix}{body}")
    for placed in _PLACED:
        if placed.rule not in ("assignment", "url-password"):
            yield Case(placed.rule, f"{placed.before}... {placed.after}")
            if "Type" not in placed.start and "Version" not in placed.start:
                yield Case(placed.rule, f"{placed.before}{placed.start}{'x' * placed.length}")


_TALK: Final = {
    "login": (
        "docker run -u 1000:1000 image",
        "docker run --user node:node image",
        "curl -u $USER:$PASSWORD https://example.com",
        "rsync -u host:some/folder .",
        "nc -u host:8080 and date -u +%H:%M",
        "git push -u origin main",
    ),
    "assignment": (
        "password: required",
        "token -> str",
        "def read(token: str) -> dict2: ...",
        "the token → the next word",
        "a password ⇒ an account",
        "<password>required</password>",
        "<token>${TOKEN1}</token>",
        "List<Token>item2name",
        "Map<String, Token>value12",
        "**Password:** required",
        "token -> <your-token-1>",
        "secret -> config.secret_2",
        "if (token > 100000) fail1()",
        "token: str",
        'token: "string"',
        "token: Optional[str] = None",
        "API_KEY=$OPENAI_API_KEY",
        "API_KEY=${TOKEN}",
        "api_key = os.environ['OPENAI_API_KEY']",
        "api_key=config.api_key_2",
        "apiKey: process.env.API_KEY1",
        "api_key: <your-api-key>",
        "api_key: your-api-key-123",
        "password: ********",
        "password=xxxxxxxxxx12",
        "password: [redacted]",
        '"password": "[redacted]"',
        "secret: {{ .Values.secret1 }}",
        "token: int64",
        "tokens: 4096",
        "totalTokens: 12345678",
        "max_tokens=4096",
        "token_type: bearer2",
        "tokenId: tok12345678",
        "nextPageToken: CAUQAA123456",
        "secretName: my-secret-123456",
        "secretRef: vault-42-entry",
        "secretary: Anna1234567",
        "passwordless: v2login99",
        "keyboard: qwerty123456",
        "monkey: banana123456",
        "authorizationUrl: login.example.com/a1b2c3",
        "token = get_token2(session1)",
        "secret = sha256(data)",
        "password: see section 4",
        "The secret: patience.",
        "token == other1token2",
        "secret: /run/secrets/db_password1",
        "token: https://example.com/token/1",
        "password: 12",
        "Authorization: Bearer <token>",
        "Authorization: Bearer $TOKEN",
        "Authorization: Basic auth",
        "Cookie: none",
        "cookie: a small file",
        "issued token: 2024-05-01T10:00:00Z",
    ),
    "url-password": (
        "https://example.com:8080/path@here",
        "https://user@example.com/",
        "http://localhost:3000",
        "https://medium.com/@someone/post-1",
        "postgres://user:${DB_PASSWORD}@localhost/app",
        "postgres://user:<password>@localhost/app",
        "postgres://user:***@localhost/app",
        "postgres://[redacted]@localhost/app",
        "docker://registry/image:1.2@sha256:" + "ab" * 32,
        "git@github.com:org/repo.git",
        "npm:react@18.2.0",
        "mailto:someone@example.com?subject=a:b@c",
    ),
    "private-key": (
        'if "-----BEGIN RSA ' + 'PRIVATE KEY-----" in text: fail()',
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----\nMIIDXTCCAkWgAwIBAgIJAKl\n-----END CERTIFICATE-----",
        "-----BEGIN " + "PRIVATE KEY-----\n...\n-----END " + "PRIVATE KEY-----",
    ),
    "bearer": (
        "a Bearer authentication-scheme is used",
        "Bearer tokens are fine",
        "Bearer token123",
    ),
    "telegram": ("at 12345678:AA the", "ratio 123456789:1", "id 12345678:AAshort"),
    "terraform": ("a.atlasv1.short", "the atlasv1. format", "x.atlasv1 is a name"),
    "signed-url": ("X-Amz-Signature=abc", "the X-Amz-Signature= part", "X-Goog-Signature=<sig>"),
    "url-key": (
        "?key=name",
        "https://x.org/?key=primary-key-of-the-table",
        "a?x=1&key=a1b2c3d4",
        "a ?key= b",
        "monkey=a1b2c3d4e5f6a1b2c3d4e5f6",
    ),
    "azure-sas": ("sig=short", "the sig= part", "design=" + "a1" * 30),
    "azure-key": ("AccountKey=short", "AccountKey=<key>", "the AccountKey= part"),
    "slack-webhook": (
        "https://hooks.slack.com/services/",
        "hooks.slack.com/docs/a1b2c3",
        "slack.com/x",
    ),
    "discord-webhook": (
        "discord.com/api/webhooks/123",
        "discord.com/invite/a1",
        "api/webhooks/1/2",
    ),
    "discord": ("Bot Mike is here", 'asyncio.run("main")', "subprocess.run('make test')"),
    "prose": (
        "The secret of getting ahead is getting started.",
        "Please enter your password to continue; your token has expired.",
        "We use sk-learn and sk-image-like-words-in-kebab-case everywhere.",
        "task-1 and task-2 wait for task-3; risk-averse desk-bound folk",
        "import sklearn  # the scikit-learn package",
        "a bearer of bad news, a secretary, a keyboard and a monkey",
        "A key-value store maps keys to values: simple.",
        "The tokenizer splits 12,000 tokens; max_tokens=4096 is the limit.",
        "npm_config_registry and hf_hub_download_file are names",
        "secret_santa_list_of_the_whole_office_2024",
        "github_pat_ is the prefix of fine-grained tokens",
        "See RFC 6750: The OAuth 2.0 Authorization Framework: Bearer Token Usage",
        "| Name | Token |\n|------|-------|\n| a | b |",
        "-----\nsection\n-----",
        "/usr/lib/python3.11/site-packages/secrets.py:42",
        "C:\\Users\\me\\token\\file_1.txt",
        "const token = await getToken();",
        "def f(token: str, *, api_key: str | None = None) -> None: ...",
        "if (password.length < 8) return;",
        '{"type": "object", "properties": {"api_key": {"type": "string"}}}',
    ),
}


def _ids(rng: Random) -> Iterable[str]:
    ulid = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    makers: tuple[Callable[[], str], ...] = (
        lambda: "-".join(_body(rng, _HEX, size) for size in (8, 4, 4, 4, 12)),
        lambda: _body(rng, _HEX, 40),
        lambda: "sha256:" + _body(rng, _HEX, 64),
        lambda: "01" + _body(rng, ulid, 24),
        lambda: "toolu_01" + _body(rng, _ALNUM, 22),
        lambda: "call_" + _body(rng, _ALNUM, 24),
        lambda: "msg_01" + _body(rng, _ALNUM, 22),
        lambda: "evt_" + _body(rng, _ALNUM, 24),
        lambda: "thread_" + _body(rng, _ALNUM, 24),
        lambda: f"task-{rng.randrange(10_000)}",
        lambda: "data:image/png;base64,iVBORw0KGgo" + _body(rng, _BASE64, 120),
        lambda: f"/srv/{_body(rng, _HEX, 12)}/src/main_{rng.randrange(99)}.py",
        lambda: f"2025-0{rng.randrange(1, 9)}-1{rng.randrange(9)}T1{rng.randrange(9)}:00:00.000Z",
    )
    for make in makers:
        for frame in ("{}", "the id is {} here", '{{"id": "{}"}}'):
            yield frame.format(make())


_STEP_RUN: Final = re.compile(r"\[((?:\\.|[^\]])+)\](?:\{(\d+)(?:,\d+)?\})?")


def _spell_out(rng: Random, notation: str) -> str:
    """A text that the steps of a rule match."""
    text = ""
    for step in notation.split():
        if step[0] == "!":
            continue
        run = _STEP_RUN.fullmatch(step)
        if run is None:
            text += rng.choice(step.split("|"))
            continue
        allowed = re.compile(f"[{run[1]}]")
        alphabet = "".join(c for c in map(chr, range(33, 127)) if allowed.match(c))
        length = int(run[2] or 1)
        has_digits = length < _MIXED or any(sign.isdigit() for sign in alphabet)
        text += _body(rng, alphabet if has_digits else _LETTERS, length)
    return text


def _rules_without_tokens() -> list[SecretRule]:
    """Rules that are literals and runs alone, and not among the tokens above."""
    named = {token.rule for token in _TOKENS} | {placed.rule for placed in _PLACED}
    return [row for row in (*SECRET_RULES, *GITLEAKS_RULES) if row.rule not in named]


def _rule_positives(rng: Random) -> Iterable[Case]:
    for row in _rules_without_tokens():
        for wrap in rng.sample(_WRAPS[:6], 4):
            lead, secret = _spell_out(rng, row.lead), _spell_out(rng, row.value)
            before = _BEFORE_RULE.get(row.rule, "")
            yield Case(row.rule, wrap.format(f"see {before}{lead}{secret} there"), secret)


def _rule_near_misses() -> Iterable[Case]:
    for row in _rules_without_tokens():
        before, start = _BEFORE_RULE.get(row.rule, ""), row.value.split()[0].split("|")[0]
        yield Case(row.rule, f"it starts with {before}{row.lead}... and goes on")
        yield Case(
            row.rule, f"too short: {before}{row.lead}{start if start[0] != '[' else ''} ends"
        )
        yield Case(row.rule, f"words: {before}{row.lead}{'of words and ' * 3}more")


_BEFORE_RULE: Final = {
    "azure-client-secret": "abc8",
    "braintree": "access",
    "huggingface-organization": "api",
    "marked-token": "shop",
    "plaid": "access",
    "prefixed-token": "shop",
    "teams-webhook": "https://x.example.com/Incoming",
}

POSITIVES: Final[tuple[Case, ...]] = (*_positives(Random(20)), *_rule_positives(Random(23)))
NEGATIVES: Final[tuple[Case, ...]] = (
    *_near_misses(Random(21)),
    *_rule_near_misses(),
    *(Case(rule, text) for rule, texts in _TALK.items() for text in texts),
    *(Case("id", text) for text in _ids(Random(22))),
)

FRAGMENTS: Final[tuple[str, ...]] = (
    *sorted({token.prefix for token in _TOKENS}),
    *sorted({placed.before for placed in _PLACED} | {placed.after for placed in _PLACED}),
    *sorted({placed.start for placed in _PLACED}),
    *(_body(Random(length), _ALNUM, length) for length in (2, 6, 9, 17, 33, 48)),
    *(_body(Random(length), _HEX, length) for length in (8, 32, 40)),
    *(
        "a1b2c3",
        "x" * 8,
        "word",
        "the ",
        " ",
        "\n",
        "\t",
        "\\n",
        "\\",
        '"',
        "'",
        "`",
        ".",
        ",",
        ";",
    ),
    *(
        "-",
        "--",
        "-----",
        "_",
        "=",
        ":",
        ": ",
        " = ",
        "->",
        ">",
        "<",
        "⇒",
        "\uff1a",
        "\xa0",
        "**",
        "?key=",
        "://",
        "/",
        "@",
        "%",
        "%20",
        "$",
        "{",
        "(",
        "[",
    ),
    *("curl -u ", "-u ", "--user ", "me:"),
    *("[redacted]", "password", "token", "API", " key", "secret", "Bearer ", "BEGIN ", "é", "漢字"),
)
"""Pieces from which property tests build texts that come close."""
