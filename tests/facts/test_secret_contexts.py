"""A fourth corpus, made by rule: secrets as command lines, files and logs write them, and lines of
this repository that only look like some.
"""

import base64
import hashlib
import random
import uuid
from collections.abc import Callable
from pathlib import Path
from string import ascii_letters, ascii_uppercase, digits
from typing import Final, NamedTuple

import pytest

from factwire.facts import redact_text

ROOT: Final = Path(__file__).resolve().parents[2]
ANY, HEX = ascii_letters + digits, "0123456789abcdef"
CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


class Sample(NamedTuple):
    text: str
    secret: str


class Maker:
    """Secrets and look-alikes of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def draw(self, count: int, signs: str = ANY) -> str:
        return "".join(self.random.choices(signs, k=count))

    def encode(self, count: int) -> str:
        return base64.b64encode(self.random.randbytes(count)).decode()

    def list_common(self) -> list[Sample]:
        tokens: tuple[Callable[[], str], ...] = (
            lambda: "sk-proj-" + self.draw(48), lambda: "sk-ant-api03-" + self.draw(60),
            lambda: self.random.choice(("ghp_", "ghs_", "gho_")) + self.draw(36),
            lambda: "glpat-" + self.draw(20), lambda: "npm_" + self.draw(36),
            lambda: "AKIA" + self.draw(16, ascii_uppercase + "234567"),
            lambda: f"xoxb-{self.draw(12, digits)}-{self.draw(12, digits)}-{self.draw(24)}",
            lambda: "sk_live_" + self.draw(24), lambda: "AIza" + self.draw(35),
            lambda: f"SG.{self.draw(22)}.{self.draw(43)}", lambda: "hf_" + self.draw(34),
            lambda: f"eyJ{self.draw(30)}.eyJ{self.draw(60)}.{self.draw(43)}",
            lambda: f"github_pat_{self.draw(22)}_{self.draw(59)}",
        )  # fmt: skip
        places = (
            "{}", "found {} in the log", "key={}", '"{}"', "- {}", "  3\t{}", "+{}", "`{}`", "({})",
            "x:{},", "https://u.local/cb#{}", "echo {} | tee f", "grep:12:{}",
        )  # fmt: skip
        named = (
            "PGPASSWORD={} psql -h db", "export DATABASE_PASSWORD='{}'", '"client_secret": "{}",',
            "password: {}", "--api-key {} --verbose", "Authorization: Bearer {}",
            "curl -H 'X-Api-Key: {}' https://api.local", "curl -u deploy:{} https://ci.local",
            "mysql -u root -p{} app", "postgres://app:{}@db.local:5432/app", "ENV SECRET_KEY={}",
            '  token = "{}"', "-e ADMIN_PASSWORD={} -p 80:80", "secret_key_base: {}", "DB_PASS={}",
            "set_password(password='{}')", "?access_token={}&x=1", "redis://:{}@cache:6379/0",
            "Cookie: sessionid={}; theme=dark", "name: DB_PASSWORD\n  value: {}",
            "<password>{}</password>", "| api_token | {} |",
        )  # fmt: skip
        found = [(self.random.choice(places), make()) for make in tokens for _ in range(14)]
        found += [(place, self.draw(20)) for place in named for _ in range(8)]
        return [Sample(place.format(secret), secret) for place, secret in found]

    def list_rarer(self) -> list[Sample]:
        tokens: tuple[Callable[[], str], ...] = (
            lambda: "hvs." + self.draw(90), lambda: "dp.pt." + self.draw(43),
            lambda: f"CCIPAT_{self.draw(22)}_{self.draw(40, HEX)}",
            lambda: "lin_api_" + self.draw(40), lambda: "ntn_" + self.draw(46),
            lambda: "dop_v1_" + self.draw(64, HEX), lambda: "fo1_" + self.draw(43),
            lambda: "pscale_tkn_" + self.draw(43), lambda: "key-" + self.draw(32, HEX),
            lambda: "SK" + self.draw(32, HEX), lambda: "shpat_" + self.draw(32, HEX),
            lambda: "sntrys_" + self.draw(60), lambda: "pul-" + self.draw(40, HEX),
            lambda: "NRAK-" + self.draw(27, ascii_uppercase + digits),
            lambda: f"{self.draw(9, '123456789')}:AA{self.draw(33)}",
            lambda: f"Bot MT{self.draw(24)}.{self.draw(6)}.{self.draw(38)}",
            lambda: "AccountKey=" + self.encode(64), lambda: "CF_API_TOKEN=" + self.draw(40),
            lambda: "DD_API_KEY=" + self.draw(32, HEX), lambda: "sbp_" + self.draw(40, HEX),
            lambda: f"HEROKU_API_KEY={uuid.UUID(bytes=self.random.randbytes(16))}",
            lambda: "//registry.local/:_authToken=" + self.draw(36),
            lambda: "client-key-data: " + self.encode(90), lambda: "$2b$12$" + self.draw(53),
            lambda: "xprv9" + self.draw(106, BASE58),
            lambda: "otpauth://totp/x?secret=" + self.draw(32, ascii_uppercase + "234567"),
            lambda: "aws_secret_access_key = " + self.draw(40, ANY + "/+"),
            lambda: f'"auth": "{self.encode(24)}"', lambda: "JENKINS_TOKEN=11" + self.draw(32, HEX),
            lambda: "Authorization: SSWS 00" + self.draw(40),
            lambda: f"glsa_{self.draw(32)}_{self.draw(8, HEX)}",
        )  # fmt: skip
        found = [make() for make in tokens for _ in range(5)]
        places = ("{}", "out: {}", "  {}", "> {}", "1: {}")
        return [Sample(self.random.choice(places).format(text), text[-20:]) for text in found]

    def list_look_alikes(self) -> list[str]:
        sources = [
            *sorted(ROOT.glob("web/src/**/*.ts*")),
            *sorted(ROOT.glob("src/factwire/**/*.py")),
        ]
        lines = [
            line
            for path in self.random.sample(sources, 120)
            for line in path.read_text("utf-8").splitlines()
            if 20 < len(line) < 200
        ]
        bundle = max(ROOT.glob("src/factwire/workbench/assets/*.js"), key=lambda path: path.name)
        text = bundle.read_text("utf-8")
        cuts = [self.random.randrange(max(len(text) - 300, 1)) for _ in range(40)]
        made = [
            each
            for _ in range(25)
            for each in (
                "sha256:" + hashlib.sha256(self.random.randbytes(9)).hexdigest(),
                "commit " + self.draw(40, HEX), f'ETag: W/"{self.draw(32, HEX)}"',
                f"requestId={uuid.UUID(bytes=self.random.randbytes(16))}",
                f'"integrity": "sha512-{self.encode(64)}"', f'hash = "sha256:{self.draw(64, HEX)}"',
                "run_01" + self.draw(24, CROCKFORD), f"/assets/index-{self.draw(8)}.js",
            )
        ]  # fmt: skip
        return [
            *self.random.sample(lines, 240),
            *(text[at : at + 300] for at in cuts),
            *made,
            *PROSE,
        ]


PROSE: Final = (
    "Das Passwort muss mindestens zwölf Zeichen haben.", "Le mot de passe : voir la documentation",
    "La clave: consulte el manual", "Der Token wird nach 24 Stunden ungültig.",
    "パスワード\uff1a管理者に確認してください", "The API key is read from the environment.",
    "password: required", "token: string | null", "secret = os.environ['SECRET']",
    "Authorization: Bearer <token>", "auth: { type: 'none' }", "密码\uff1a请联系管理员",
    "кодовое слово: спросите администратора", "maxTokens: 4096", "api_key=${API_KEY}",
    "--password-file /run/secrets/db", "key: user-settings-theme",
)  # fmt: skip


def share_hidden(samples: list[Sample]) -> float:
    return sum(sample.secret not in redact_text(sample.text)[0] for sample in samples) / len(
        samples
    )


@pytest.mark.requirement("redaction.recall")
@pytest.mark.parametrize("seed", [77_123, 5, 90_210])
def test_secrets_in_other_contexts_are_hidden_and_look_alikes_are_not(seed: int):
    maker = Maker(seed)
    common, rarer, others = maker.list_common(), maker.list_rarer(), maker.list_look_alikes()
    assert (len(common) >= 300, len(rarer) >= 150, len(others) >= 300) == (True, True, True)
    assert share_hidden(common) >= 0.95
    assert share_hidden(rarer) >= 0.80
    assert sum(bool(redact_text(text)[1]) for text in others) <= 0.02 * len(others)
