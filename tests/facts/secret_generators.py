"""Secrets and look-alikes made by rule, without end: a kind, a context, a seed.

Every kind belongs to one of two halves by its name alone. Rules are written against the half
`seen`; the half `held_out` is only counted. A template holds runs of characters (``{a20}``: twenty
letters and digits); ``«`` and ``»`` enclose the secret where what stands around makes it one.
"""

import base64
import json
import re
import string
import zlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Final, NamedTuple

__all__ = ["COMMON", "LOOK_ALIKES", "RARER", "MadeSecret", "look_alikes", "made_secrets"]

_ALPHABETS: Final = {
    "a": string.ascii_letters + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "c": string.ascii_letters,
    "z": string.ascii_lowercase,
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "w": string.ascii_letters + string.digits + "_-",
    "b": string.ascii_letters + string.digits + "+/",
    "u": string.ascii_uppercase + string.digits,
    "v": string.ascii_uppercase + "234567",
    "d": string.digits,
    "p": string.ascii_letters + string.digits + "!%*+=^._-~",
    "s": string.ascii_letters + string.digits + ":/?#[]!$&'()*+,;=",
    "q": "023456789acdefghjklmnpqrstuvwxyz",
    "k": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
}

_RUN: Final = re.compile(r"\{([a-zA-Z])(\d+)(?:,(\d+))?\}")
_UUID: Final = "{h8}-{h4}-4{h3}-a{h3}-{h12}"


class MadeSecret(NamedTuple):
    """`value` is a text, or data with the secret in it; `secrets` must all vanish from it."""

    kind: str
    value: object
    secrets: tuple[str, ...]


def _fill(rng: Random, template: str) -> str:
    def run(match: re.Match[str]) -> str:
        alphabet = _ALPHABETS[match[1]]
        length = rng.randint(int(match[2]), int(match[3] or match[2]))
        while True:
            body = "".join(rng.choice(alphabet) for _ in range(length))
            mixed = any(c.isdigit() for c in body) and any(c.isalpha() for c in body)
            if mixed or match[1] in "dzc" or length < 6:
                return body if "xxxx" not in body.lower() else run(match)

    return _RUN.sub(run, template.replace("{uuid}", _UUID))


def _pem(rng: Random, label: str = "RSA ") -> list[str]:
    body = [_fill(rng, "{b64}") for _ in range(rng.randint(3, 9))]
    name = f"{label}PRIVATE" + " KEY-----"
    return [f"-----BEGIN {name}", *body, _fill(rng, "{b21}") + "=", f"-----END {name}"]


_PEM_VIEWS: Final[dict[str, Callable[[list[str]], str]]] = {
    "plain": "\n".join,
    "crlf": "\r\n".join,
    "cat-n": lambda lines: "\n".join(f"{n:6}\t{line}" for n, line in enumerate(lines, 1)),
    "read-tool": lambda lines: "\n".join(f"{n:5}→{line}" for n, line in enumerate(lines, 1)),
    "grep-n": lambda lines: "\n".join(f"{n}:{line}" for n, line in enumerate(lines, 14)),
    "grep-file": lambda lines: "\n".join(f"keys/id_rsa:{n}:{s}" for n, s in enumerate(lines, 3)),
    "diff-added": lambda lines: "\n".join(f"+{line}" for line in lines),
    "diff-removed": lambda lines: "\n".join(f"-{line}" for line in lines),
    "quoted-mail": lambda lines: "\n".join(f"> {line}" for line in lines),
    "commented": lambda lines: "\n".join(f"# {line}" for line in lines),
    "indented": lambda lines: "key: |\n" + "\n".join(f"    {line}" for line in lines),
    "json": lambda lines: json.dumps({"private": "\n".join(lines)}),
    "escaped-twice": lambda lines: json.dumps(json.dumps({"k": "\n".join(lines)})),
    "json-array": lambda lines: json.dumps(lines, indent=2),
    "python-array": lambda lines: "[\n" + ",\n".join(f"    '{s}'" for s in lines) + ",\n]",
    "python-join": lambda lines: "(\n" + "\n".join(f'    "{s}\\n"' for s in lines) + "\n)",
    "js-concat": lambda lines: " +\n".join(f'  "{s}\\n"' for s in lines) + ";",
    "one-line": " ".join,
    "env": lambda lines: 'TLS_KEY="' + "\\n".join(lines) + '"',
    "table": lambda lines: "\n".join(f"| {line} |" for line in lines),
    "log": lambda lines: "\n".join(f"2026-01-02T03:04:05Z app[7]: {line}" for line in lines),
}  # fmt: skip

_PEM_LABELS: Final = ("RSA ", "", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA ")

_COMMON_TOKENS: Final = {
    "aws-key-id": "AKIA{v16}",
    "aws-session-id": "ASIA{v16}",
    "github-pat": "ghp_{a36}",
    "github-app": "ghs_{a36}",
    "github-fine": "github_pat_{a22}_{a59}",
    "gitlab-pat": "glpat-{w20}",
    "gitlab-routable": "glpat-{w27}.01.{l9}",
    "gitlab-runner": "glrt-{w20}",
    "gitlab-trigger": "glptt-{h40}",
    "slack-bot": "xoxb-{d12}-{d12}-{a24}",
    "slack-user": "xoxp-{d12}-{d12}-{d12}-{h32}",
    "slack-app": "xapp-1-A{u10}-{d13}-{h64}",
    "stripe-live": "sk_live_{a24}",
    "stripe-restricted": "rk_live_{a40}",
    "npm": "npm_{a36}",
    "pypi": "pypi-AgEIcHlwaS5vcmc{w110}",
    "google-api": "AIza{w35}",
    "google-refresh": "1//0{w60}",
    "google-client": "GOCSPX-{w28}",
    "google-access": "ya29.a0{w140}",
    "openai": "sk-{a20}T3BlbkFJ{a20}",
    "openai-project": "sk-proj-{w74}T3BlbkFJ{w74}",
    "anthropic": "sk-ant-api03-{w93}AA",
    "huggingface": "hf_{c34}",
    "sendgrid": "SG.{w22}.{w43}",
    "twilio-key": "SK{h32}",
    "jwt": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ{w60}.{w43}",
    "azure-client-secret": "{a3}8Q~{a34}",
    "docker-hub": "dckr_pat_{w27}",
    "digitalocean": "dop_v1_{h64}",
}

_RARER_TOKENS: Final = {
    "circleci": "CCIPAT_{a22}_{h40}",
    "buildkite": "bkua_{h40}",
    "netlify": "nfp_{a40}",
    "render": "rnd_{a28}",
    "heroku": "HRKU-AA{w58}",
    "fly": "fo1_{w43}",
    "fly-macaroon": "fm2_{b120}",
    "pulumi": "pul-{h40}",
    "terraform": "token {a14}.«atlasv1.{w67}» ok",
    "vault": "hvs.{w95}",
    "vault-legacy": "s.{a24}",
    "doppler": "dp.pt.{a43}",
    "rubygems": "rubygems_{h48}",
    "crates-io": "cio{a32}",
    "nuget": "oy2{l43}",
    "artifactory": "AKCp{a69}",
    "clojars": "CLOJARS_{h60}",
    "sonar": "squ_{h40}",
    "sonar-project": "sqp_{h40}",
    "sentry-user": "sntryu_{h64}",
    "grafana-cloud": "glc_{b80}",
    "grafana-service": "glsa_{a32}_{h8}",
    "new-relic": "NRAK-{u27}",
    "dynatrace": "dt0c01.{u24}.{u64}",
    "postman": "PMAK-{h24}-{h34}",
    "planetscale": "pscale_tkn_{w43}",
    "planetscale-password": "pscale_pw_{w43}",
    "supabase": "sbp_{h40}",
    "supabase-secret": "sb_secret_{w31}",
    "neon": "napi_{l64}",
    "databricks": "dapi{h32}",
    "shopify": "shpat_{h32}",
    "square": "sq0atp-{w22}",
    "square-production": "EAAA{w60}",
    "braintree": "access_token$production${l16}${h32}",
    "razorpay": "rzp_live_{a14}",
    "flutterwave": "FLWSECK_TEST-{h32}-X",
    "shippo": "shippo_live_{h40}",
    "easypost": "EZAK{a54}",
    "duffel": "duffel_live_{w43}",
    "mailchimp": "{h32}-us12",
    "mailgun": "key-{h32}",
    "sendinblue": "xkeysib-{h64}-{a16}",
    "mailersend": "mlsn.{h64}",
    "telegram": "bot {d10}:«AA{w33}» ok",
    "discord": "MT{a22}.G{a5}.{w38}",
    "facebook": "EAAC{a160}",
    "linear": "lin_api_{a40}",
    "notion": "ntn_{d11}{a35}",
    "airtable": "pat{a14}.{h64}",
    "atlassian": "ATATT3xFfGF0{w170}={H8}",
    "bitbucket": "ATBB{a32}",
    "asana": "1/{d16}:{h32}",
    "hubspot": "pat-na1-{uuid}",
    "contentful": "CFPAT-{w43}",
    "dropbox": "sl.{w140}",
    "figma": "figd_{w40}",
    "typeform": "tfp_{w44}_{a14}",
    "readme": "rdme_{l70}",
    "sourcegraph": "sgp_{h40}",
    "infracost": "ico-{a32}",
    "launchdarkly": "sdk-{uuid}",
    "openshift": "sha256~{w43}",
    "kubeadm": "kubeadm join --token «{l6}.{l16}» 10.0.0.1:6443",
    "rancher": "token-{l5}:«{l54}»",
    "alibaba": "LTAI{a20}",
    "tencent": "AKID{a32}",
    "yandex": "AQVN{w36}",
    "onepassword": "ops_eyJ{b260}",
    "age": "AGE-SECRET-KEY-1{v58}",
    "tailscale": "tskey-auth-k{a12}CNTRL-{a32}",
    "wallet-xprv": "xprv9s21ZrQH143K{k95}",
    "prefect": "pnu_{a36}",
    "replicate": "r8_{a37}",
    "groq": "gsk_{a52}",
    "pinecone": "pcsk_{a6}_{a62}",
    "posthog": "phx_{a43}",
    "octopus": "API-{u26}",
    "scalingo": "tk-us-{w48}",
    "harness": "pat.{w22}.{a24}.{a20}",
    "intercom": "dG9rO{a54}=",
    "plaid": "access-production-{uuid}",
    "bedrock": "ABSK{b130}",
    "clickhouse": "4b1d{a38}",
    "adobe": "p8e-{l32}",
    "weights-and-biases": "WANDB_API_KEY=«{h40}»",
    "heroku-legacy": "HEROKU_API_KEY=«{uuid}»",
    "datadog": "DD_API_KEY=«{h32}»",
    "datadog-app": "DD_APP_KEY: «{h40}»",
    "algolia": "ALGOLIA_ADMIN_KEY=«{h32}»",
    "cloudflare": "CF_API_TOKEN=«{w40}»",
    "snyk": "SNYK_TOKEN=«{uuid}»",
    "codecov": "CODECOV_TOKEN: «{uuid}»",
    "twitch": 'twitch_client_secret = "«{l30}»"',
    "fastly": "fastly_key: «{w32}»",
    "wireguard": "[Interface]\nPrivateKey = «{b43}=»\nAddress = 10.0.0.2/32",
    "wireguard-psk": "[Peer]\nPresharedKey = «{b43}=»\nAllowedIPs = 0.0.0.0/0",
    "wallet-mnemonic-name": 'MNEMONIC="«{z5} {z6} {z4} {z7} {z5} {z4} {z6} {z5} {z4} {z6} {z5} {z6}'
    '»"',
    "wallet-hex": "ETH_PRIVATE_KEY=«0x{h64}»",
    "wallet-hex-call": 'new ethers.Wallet("«0x{h64}»")',
    "kube-client-key": "    client-key-data: «LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo{b120}»",
    "kube-secret": "kind: Secret\ndata:\n  password: «{b22}==»\n",
    "docker-auth": '{"auths": {"ghcr.io": {"auth": "«{b40}=»"}}}',
    "netrc": "machine api.example.com login deploy password «{p16}»",
    "pgpass": "db.example.com:5432:app:deploy:«{a16}»",
    "npmrc": "//registry.example.com/:_authToken=«{uuid}»",
    "npmrc-auth": "//registry.example.com/:_auth=«{b32}»",
    "htpasswd": "deploy:«$apr1${a8}${a22}»",
    "shadow": "root:«$6${a16}${a86}»:19000:0:99999:7:::",
    "totp": "otpauth://totp/Shop:me?secret=«{v32}»&issuer=Shop",
    "django": "SECRET_KEY = 'django-insecure-«{p42}»'",
    "rails-master": "RAILS_MASTER_KEY=«{h32}»",
    "jwk": '{"kty": "EC", "crv": "P-256", "d": "«{w43}»", "kid": "1"}',
    "teams-webhook": "https://shop.webhook.office.com/webhookb2/{uuid}@{uuid}/IncomingWebhoo"
    "k/«{h32}»/{uuid}",
    "firebase-server": "AAAA{w7}:APA91b{w134}",
}  # fmt: skip

_COMMON_PLACED: Final = {
    "pgpassword": "PGPASSWORD=«{a12}» psql -h db.example.com app",
    "pgpassword-quoted": "PGPASSWORD='«{p14}»' pg_dump app > out.sql",
    "mysql-pwd": "MYSQL_PWD=«{p12}» mysqldump app",
    "curl-u": "curl -u deploy:«{p14}» https://api.example.com/v1",
    "curl-u-quoted": "curl -s -u 'deploy:«{p14}»' https://api.example.com/v1",
    "curl-user": 'curl --user "deploy:«{a16}»" https://api.example.com/v1',
    "wget": "wget --user=deploy --password=«{p12}» https://example.com/a.tgz",
    "mysql-p": "mysql -h db -uroot -p«{p12}» app -e 'select 1'",
    "mysql-p-quoted": "mysqldump -u root -p'«{p12}»' app",
    "flag-password": "psql-tool --user app --password «{p14}» --port 5432",
    "flag-pass": "redis-cli -h cache --pass «{a20}» ping",
    "flag-token": "deploy --token «{a32}» --wait",
    "flag-secret": "vault-tool --client-secret «{w30}» login",
    "flag-api-key": 'tool --api-key="«{a32}»" list',
    "docker-login": "docker login -u deploy -p «{p14}» registry.example.com",
    "sshpass": "sshpass -p '«{p12}»' ssh deploy@example.com",
    "redis-a": "redis-cli -h cache -a «{a24}» ping",
    "echo-stdin": 'echo "«{p16}»" | docker login -u me --password-stdin',
    "bearer": "Authorization: Bearer «{w40}»",
    "bearer-lower": "authorization:bearer «{w40}»",
    "basic": "Authorization: Basic «{b28}==»",
    "basic-spaced": "Authorization  :   Basic    «{b28}==»",
    "token-scheme": "Authorization: token «{h40}»",
    "apikey-scheme": "Authorization: ApiKey «{b40}==»",
    "own-scheme": "Authorization: SSWS «00{w40}»",
    "genie-scheme": "authorization: GenieKey «{uuid}»",
    "hmac-scheme": "Authorization: AWS4-HMAC-SHA256 Credential=AKIA{v16}/20260101/us-east-"
    "1/s3/aws4_request, Signature=«{h64}»",
    "digest-scheme": 'Proxy-Authorization: Digest username="me", response="«{h32}»"',
    "no-scheme": "Authorization: «{w40}»",
    "json-header": '{"headers": {"Authorization": "Bearer «{w40}»"}}',
    "header-flag": "curl -H 'Authorization: Bearer «{a40}»' https://api.example.com",
    "x-api-key": 'curl -H "X-Api-Key: «{a32}»" https://api.example.com',
    "x-auth": "X-Auth-Token: «{h32}»",
    "private-token": "PRIVATE-TOKEN: «{w20}»",
    "cookie": "Cookie: sessionid=«{l32}»; theme=dark",
    "cookie-later": "cookie: theme=dark; sessionid=«{a40}»; lang=en",
    "set-cookie": "Set-Cookie: connect.sid=«s%3A{w32}.{a43}»; Path=/; HttpOnly",
    "dsn": "postgres://app:«{a16}»@db.example.com:5432/app",
    "dsn-odd": "postgresql://app:«{p16}»@db.example.com/app?sslmode=require",
    "dsn-hash": "mysql://root:«a#{a10}/{a4}»@10.0.0.5:3306/app",
    "dsn-at": "postgres://app:«{a6}@{a8}»@db.example.com:5432/app",
    "dsn-colon": "amqp://app:«{a6}:{a6}»@queue.example.com/vhost",
    "dsn-no-user": "redis://:«{a24}»@cache.example.com:6379/0",
    "dsn-mongo": "MONGO_URL=mongodb+srv://admin:«{p14}»@cluster0.abcde.mongodb.net/app",
    "dsn-sqlalchemy": "create_engine('postgresql+psycopg2://app:«{a14}»@db/app')",
    "dsn-jdbc": "jdbc:postgresql://db:5432/app?user=app&password=«{a14}»",
    "dsn-ado": "Server=tcp:db.example.com,1433;User ID=sa;Password=«{p14}»;Encrypt=True",
    "dsn-libpq": "host=db port=5432 user=app password=«{a14}» dbname=app",
    "git-url": "git clone https://oauth2:«{a30}»@git.example.com/a/b.git",
    "git-url-user": "git remote add x https://«ghp_{a36}»@github.com/a/b.git",
    "azure-storage": "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=«{b86}==»;E"
    "ndpointSuffix=core.windows.net",
    "azure-bus": "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;Share"
    "dAccessKey=«{b43}=»",
    "azure-sas": "https://shop.blob.core.windows.net/c?sv=2024-11-04&sp=rl&sig=«{a43}%3D»",
    "s3-signed": "https://b.s3.amazonaws.com/k?X-Amz-Credential=AKIA{v16}%2F2026&X-Amz-S"
    "ignature=«{h64}»",
    "aws-secret-file": "[default]\naws_access_key_id = AKIA{v16}\naws_secret_access_key = «{b40}»",
    "aws-secret-env": "AWS_SECRET_ACCESS_KEY=«{b40}»",
    "aws-session-env": 'export AWS_SESSION_TOKEN="«IQoJb3JpZ2luX2Vj{b200}»"',
    "yaml-password": "database:\n  user: app\n  password: «{p16}»\n  port: 5432",
    "yaml-block": "password: |\n  «{p16}»\nport: 5432",
    "yaml-folded": "api_token: >-\n  «{a40}»\nregion: eu",
    "yaml-env-list": 'env:\n  - name: DB_PASSWORD\n    value: «{a16}»\n  - name: PORT\n    v'
    'alue: "80"',
    "toml": '[db]\npassword = "«{p16}»"\nport = 5432',
    "ini": "[smtp]\nuser=mail\npass=«{a14}»\nport=25",
    "properties": "spring.datasource.password=«{p14}»\nspring.datasource.username=app",
    "xml": '<add key="DbPassword" value="«{a14}»" />',
    "xml-element": "<password>«{a14}»</password>",
    "env-dump": "HOME=/root\nDB_PASSWORD=«{p16}»\nLANG=C.UTF-8",
    "env-app": "APP_KEY=base64:«{b43}=»\nAPP_ENV=local",
    "env-token": "SLACK_SIGNING_SECRET=«{h32}»\nPORT=8080",
    "export": "export STRIPE_KEY='«{a32}»'",
    "set-fish": "set -x GITHUB_TOKEN «{a40}»",
    "powershell": '$env:DB_PASSWORD = "«{a14}»"',
    "dockerfile-env": "ENV API_TOKEN «{a32}»",
    "dockerfile-arg": "ARG NPM_TOKEN=«{uuid}»",
    "compose": "    environment:\n      POSTGRES_PASSWORD: «{a16}»",
    "python-code": 'client = Client(api_key="«{a32}»", timeout=3)',
    "python-dict": "config = {'password': '«{p14}», 'port': 5432}".replace("»,", "»',"),
    "js-code": 'const client = new Client({ apiKey: "«{a32}»" });',
    "js-env": "process.env.JWT_SECRET = '«{a40}»';",
    "go-code": 'password := "«{a14}»"',
    "php-define": "define('DB_PASSWORD', '«{a14}»');",
    "ruby-hash": ':password => "«{a14}»",',
    "java-code": 'String dbPassword = "«{a14}»";',
    "sql": "ALTER USER app WITH PASSWORD '«{a14}»';",
    "sql-identified": "CREATE USER 'app'@'%' IDENTIFIED BY '«{p14}»';",
    "log-line": "2026-01-02 03:04:05 INFO login ok token=«{a32}» user=7",
    "log-password": "DEBUG connecting with password: «{p14}»",
    "url-token": "https://api.example.com/v1/items?access_token=«{a32}»&page=2",
    "url-key": "GET /maps?key=«{w39}» HTTP/1.1",
    "diff-env": "-DB_PASSWORD=«{a14}»\n+DB_PASSWORD=${DB_PASSWORD}",
    "diff-added": '+  api_secret: "«{a32}»"',
    "table-row": "| DB_PASSWORD | «{a16}» |",
    "markdown": "- **Password**: `«{p14}»`",
    "prose": "the password is «{p14}»",
    "escaped-json": '{\\"password\\": \\"«{a14}»\\"}',
    "basic-auth-code": "requests.get(url, auth=('deploy', '«{p14}»'))",
    "openssl-pass": "openssl rsa -in k.pem -passin pass:«{a14}»",
    "ansible": "ansible_become_pass: «{a14}»",
    "sudo": "echo '«{p12}»' | sudo -S apt-get install x",
    "smtp": "smtp://mailer:«{a16}»@mail.example.com:587",
    "slack-hook": "https://hooks.slack.com/services/«T{u8}/B{u10}/{a24}»",
    "discord-hook": "https://discord.com/api/webhooks/{d18}/«{w68}»",
}  # fmt: skip

_ARGUMENTS: Final = (
    *("password", "pass", "passwd", "pwd", "auth", "dsn", "jwt", "otp", "connectionString", "pin"),
    *("connection_string", "apiKey", "api_token", "secret", "clientSecret", "accessKey"),
    *("PGPASSWORD", "dbPass", "authToken", "private_key", "passphrase", "credentials", "authKey"),
    *("bearer", "sessionToken", "mysqlPassword", "encryptionKey", "masterKey", "signing_secret"),
    *("webhookSecret", "totpSecret", "mfaCode", "databaseUrl", "sas_token", "licenseKey"),
    *("sshKey", "access_token", "refreshToken", "id_token", "csrfToken", "userPass", "rootpw"),
)
_ARGUMENT_VALUES: Final = {
    "dsn": "postgres://app:«{a14}»@db/app",
    "connectionString": "Server=db;User Id=sa;Password=«{a14}»;",
    "connection_string": "mongodb://app:«{a14}»@db/app",
    "databaseUrl": "mysql://app:«{a14}»@db/app",
    "otp": "«{d6}»",
    "mfaCode": "«{d6}»",
    "pin": "«{d6}»",
    "jwt": "«eyJhbGciOiJIUzI1NiJ9.eyJ{w40}.{w43}»",
}

_CONTEXTS: Final = (
    "{}",
    "use {} for this",
    "TOKEN={}",
    '{{"value": "{}"}}',
    "value: {}",
    "export X='{}'",
    "https://example.com/cb?t={}&n=1",
    "2026-01-02T03:04:05Z INFO got {} from peer",
    "+ const t = `{}`;",
    "| name | {} | ok |",
    "curl -H 'X-Thing: {}' https://example.com",
    "- {}\n- other",
    "`{}`",
    "line\\n{}\\nline",
    "<v>{}</v>",
    'items = ["{}", "b"]',
    "Authorization: {}",
    "echo {} | pbcopy",
)

_HALVES: Final = ("seen", "held_out")


def half_of(kind: str) -> str:
    """The half that a kind belongs to, by nothing but its name."""
    return _HALVES[zlib.crc32(kind.encode()) % 2]


COMMON: Final = (
    *_COMMON_TOKENS,
    *_COMMON_PLACED,
    *(f"pem-{view}" for view in _PEM_VIEWS),
    *(f"argument-{name}" for name in _ARGUMENTS),
)
RARER: Final = (*_RARER_TOKENS,)


def made_secrets(kind: str, seed: int, count: int) -> Iterator[MadeSecret]:
    """Secrets of one kind, each in some context."""
    rng = Random(f"{kind} {seed}")
    for _ in range(count):
        if kind.startswith("pem-"):
            yield _made_pem(rng, kind)
        elif kind.startswith("argument-"):
            yield _made_argument(rng, kind)
        else:
            yield _made_text(rng, kind)


def _made_pem(rng: Random, kind: str) -> MadeSecret:
    lines = _pem(rng, rng.choice(_PEM_LABELS))
    return MadeSecret(kind, _PEM_VIEWS[kind[4:]](lines), tuple(lines[1:-1]))


def _made_argument(rng: Random, kind: str) -> MadeSecret:
    name = kind.removeprefix("argument-")
    text, secret = _cut_secret(_fill(rng, _ARGUMENT_VALUES.get(name, "«{a16,24}»")))
    value: object = {"name": "connect", "arguments": {"host": "db", name: text}}
    return MadeSecret(kind, value, (secret,))


def _made_text(rng: Random, kind: str) -> MadeSecret:
    template = (_COMMON_TOKENS | _RARER_TOKENS | _COMMON_PLACED)[kind]
    text, secret = _cut_secret(_fill(rng, template))
    if "«" not in template:
        text = rng.choice(_CONTEXTS).format(text)
    elif "\n" not in text and rng.random() < 0.5:
        text = rng.choice(("{}\n", "$ {}", "ran:\n{}\nok", "{} # x")).format(text)
    return MadeSecret(kind, text, (secret,))


def _cut_secret(filled: str) -> tuple[str, str]:
    start, end = filled.find("«"), filled.find("»")
    secret = filled if start < 0 else filled[start + 1 : end]
    return filled.replace("«", "").replace("»", ""), secret


_CURSOR: Final = base64.urlsafe_b64encode(b'{"epoch":"01J","seq":1234}').decode()

LOOK_ALIKES: Final = {
    "uuid": "{uuid}",
    "sha1": "{h40}",
    "short-sha": "{h7}",
    "git-log": "commit {h40}\nAuthor: A <a@example.com>",
    "git-range": "{h7}..{h7}  main -> main",
    "sha256": "sha256:{h64}",
    "md5sum": "{h32}  dist/app.tar.gz",
    "image-digest": "ghcr.io/a/b@sha256:{h64}",
    "npm-integrity": '"integrity": "sha512-{b86}=="',
    "pip-hash": "--hash=sha256:{h64} \\",
    "go-sum": "github.com/a/b v1.2.3 h1:{b43}=",
    "cargo-checksum": 'checksum = "{h64}"',
    "yarn-lock": "  integrity sha512-{b86}==",
    "etag": 'ETag: W/"{h32}"',
    "content-hash": "assets/index-{w8}.js  142.3 kB",
    "picture": "data:image/png;base64,iVBORw0KGgo{b160}",
    "picture-json": '{"mimeType": "image/png", "data": "iVBORw0KGgo{b160}"}',
    "certificate": "-----BEGIN CERTIFICATE-----\n{b64}\n{b64}\n-----END CERTIFICATE-----",
    "public-key": "-----BEGIN PUBLIC KEY-----\n{b64}\n-----END PUBLIC KEY-----",
    "ssh-public": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43} me@host",
    "known-host": "github.com ssh-rsa AAAAB3NzaC1yc2E{b120}",
    "ulid": "01J{u23}",
    "our-fact": '{"id": "fact_01J{u23}", "threadId": "thread_01J{u23}"}',
    "our-cursor": f"cursor={_CURSOR}" + "{h0}",
    "tool-call": "toolu_01{a22}",
    "call-id": "call_{a24}",
    "message-id": "msg_01{a22}",
    "response-id": "resp_{h48}",
    "chat-id": "chatcmpl-{a29}",
    "trace": "traceparent: 00-{h32}-{h16}-01",
    "span": "trace_id={h32} span_id={h16}",
    "placeholder": "API_KEY=<your-api-key>",
    "placeholder-braces": "password: {{ vault_password }}",
    "placeholder-env": "DB_PASSWORD=${DB_PASSWORD:?missing}",
    "placeholder-shell": 'curl -u "$USER:$PASS" https://api.example.com',
    "placeholder-dots": "token: sk-...",
    "placeholder-x": "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "placeholder-stars": "--password ******** --user app",
    "placeholder-word": "password=changeme",
    "placeholder-example": "AWS_ACCESS_KEY_ID=YOUR_ACCESS_KEY_HERE",
    "question": "Should the default password be changeme or should we ask?",
    "prompt": "Enter password: ",
    "prompt-sudo": "[sudo] password for deploy: ",
    "prose-password": "Reset your password: open the settings page and follow the steps.",
    "prose-token": "The token: a short string that the server signs.",
    "prose-auth": "auth: the middleware that checks the session before each route",
    "prose-secret": "The secret is to keep the functions short.",
    "prose-pass": "pass: 41, fail: 2, skip: 3",
    "test-pass": "PASS tests/auth/test_password_reset.py::test_token_expires (0.{d2} s)",
    "test-name": "tests/test_secret_key.py::test_api_key_is_required PASSED",
    "pytest": "========= {d3} passed, {d2} skipped in 12.{d2}s =========",
    "path": "/home/me/project/src/secrets/password_store_{d2}.py:{d3}:{d2}",
    "path-flag": "--password-file /run/secrets/db_password",
    "key-file": "ssh -i ~/.ssh/id_ed25519 deploy@example.com",
    "mkdir-p": "mkdir -p /srv/app{d3}/releases/v{d2}",
    "port": "docker run -p 8080:80 -p 5432:5432 nginx",
    "docker-user": "docker run -u 1000:1000 node:20 npm test",
    "pid": "kill -9 {d5}; ps -p {d5}",
    "grep-e": "grep -rn 'password' src/ --include=*.py -A {d2}",
    "patch-p": "patch -p1 < fix-{d4}.diff",
    "minified": "!function(e,t){var n=e.key,r=t.token;return n===r?a1b2:c3(d4)}(x1,y2z3);",
    "minified-key": "{key:'a'+b.token,pass:c=>c.auth(d),secret:e(f)}",
    "code-argument": "def login(user: str, password: str, token: str | None = None) -> Session1:",
    "code-read": 'password = os.environ["DB_PASSWORD"]',
    "code-call": "token = generate_token(user_id_{d2}, secret=settings.SECRET_KEY)",
    "code-compare": 'if password == confirmation_2 and token != "none":',
    "code-type": "password: Optional[SecretStr] = Field(default=None, min_length=8)",
    "code-ts": "interface Auth { password: string; token?: string; apiKey: ApiKeyV2 }",
    "code-css": ".password-input2 { color: #{h6}; }",
    "code-hash": "hashed = bcrypt.hashpw(password.encode(), salt_{d2})",
    "code-const": 'PASSWORD_FIELD = "password_confirmation_2"',
    "code-sort": "sorted(items, key=lambda item: item.sequence1)",
    "code-map": 'const KEYS = { primaryKey: "user_id_{d2}", foreignKey: "org_id2" };',
    "sql-key": "PRIMARY KEY (account_id_{d2}), FOREIGN KEY (org_id2) REFERENCES orgs2 (id)",
    "usage": '{"input_tokens": {d4}, "output_tokens": {d3}, "max_tokens": 4096}',
    "limits": "tokens: {d4}/200000, cache_read_input_tokens={d5}",
    "paging": '{"nextPageToken": "CAUQ{a12}"}',
    "public-id": "AWS_ACCOUNT_ID=123456789012 region=eu-central-1",
    "version": "python-3.12.{d1}-h{h7}_0 conda-forge",
    "wheel": "Downloading numpy-2.1.{d1}-cp312-cp312-manylinux_2_17_x86_64.whl (18.{d1} MB)",
    "apt": "Get:12 http://deb.example.org/debian bookworm/main amd64 libssl3 3.0.{d2}-1~deb12u2",
    "url": "https://example.com/a/b-{d5}?utm_source=x&id={d8}",
    "url-at": "https://medium.com/@someone/how-to-{d5}",
    "git-ssh": "git@github.com:org/repo-{d3}.git",
    "mail": "write to first.last{d2}@example.com: it is fine",
    "time": "2026-01-{d2}T03:04:05.{d6}Z INFO started in {d3} ms",
    "address": "inet 10.0.{d2}.{d2}/24 brd 10.0.0.255 mac 0a:{h2}:{h2}:{h2}:{h2}:{h2}",
    "hex-dump": "00000{d2}0: {h4} {h4} {h4} {h4} {h4} {h4} {h4} {h4}  ................",
    "hex-colour": "background: #{h6}; border: 1px solid #{h6}",
    "phone": "call +49 30 {d8} or 0800 {d6}",
    "isbn": "ISBN 978-3-{d2}-{d6}-{d1}",
    "order": "Order no. {d10}, customer K-{d6}",
    "licence": "SPDX-License-Identifier: Apache-2.0; key: see LICENSE",
    "keyboard": "keyboard: Logitech K{d3}; monkey: 12{d4}",
    "css-class": 'class="auth-form token-list_{a5} password-field"',
    "public-token": '"cancellationToken": "ct-{d6}", "tokenType": "Bearer"',
    "public-key-id": '{"kid": "{w22}", "kty": "EC", "x": "{w43}", "y": "{w43}"}',
    "csp": "Content-Security-Policy: script-src 'self' 'sha256-{b43}='",
    "ws-accept": "Sec-WebSocket-Accept: {b27}=",
    "rule-text": "Policy: passwords need 12 characters, tokens expire after 30 days.",
    "diff-hunk": "@@ -{d2},7 +{d2},9 @@ def check_password(user, secret):",
    "diff-index": "index {h7}..{h7} 100644",
    "stack": '  File "/srv/app/auth/token.py", line {d3}, in refresh_token',
    "kube-pod": "pod/api-{l10}-{l5}   1/1   Running   0   3d",
    "kube-event": "secret/db-credentials-{l5} created",
    "secret-ref": "secretKeyRef:\n  name: db-credentials\n  key: password",
    "vault-path": "vault kv get secret/data/app/password-v{d1}",
    "helm": "password: {{ .Values.db.password | quote }}",
    "workflow": "token: ${{ secrets.GITHUB_TOKEN }}",
    "terraform": "password = var.db_password_{d1}",
    "ansible": 'password: "{{ lookup(\'env\', \'DB_PASS\') }}"',
    "authors": "Author: Jane Doe <jane{d2}@example.com>\nauth: Jane",
    "pass-rate": "pass rate = 98.{d1}%, auth latency: {d2} ms",
    "session-id": "session: 01J{u23} opened",
    "run-id": "run_01J{u23}: completed",
    "basic-words": "Authorization: Basic is simpler than Bearer or Digest.",
    "bearer-words": "Use Bearer authentication with every request.",
    "cookie-words": "Cookie: a small file, see https://example.com/privacy2",
    "regex": "re.compile(r'password=([A-Za-z0-9]{{8,64}})')",
    "base64-text": "SGVsbG8gd29ybGQsIHRoaXMgaXMgYSB0ZXN0IG9mIHRleHQ=",
    "font": "src: url(data:font/woff2;base64,d09GMgABAAAA{b120})",
    "wasm": "AGFzbQEAAAAB{b80}",
    "source-map": "//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjoz{b80}",
    "query-id": "GET /v1/items?id={uuid}&key=name&sort=asc",
    "idempotency": "Idempotency-Key: {uuid}",
    "request-id": "x-request-id: {h32}",
    "csrf-words": "csrf: enabled, session: 30 minutes",
}  # fmt: skip


def look_alikes(kind: str, seed: int, count: int) -> Iterator[str]:
    """Texts of one kind without a secret, some within other text."""
    rng = Random(f"{kind} {seed}")
    for _ in range(count):
        text = _fill(rng, LOOK_ALIKES[kind])
        frame = rng.choice(("{}", "{}", "{}", "$ {}", "{}\n", "- {}", "x\n{}\ny"))
        yield frame.replace("{}", text)  # fmt: skip
