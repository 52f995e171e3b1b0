"""Starting a Hub: what keeps it from starting, what survives a kill, and where no secret is."""

import json
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Event, Thread
from time import time
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from factwire.hub import hub_startup
from factwire.hub.hub_startup import URL_FILE, ensure_secure
from factwire.hub.notifications.channel_senders import MailPasswordMissing
from factwire.hub.notifications.web_push import encode_base64url
from factwire.hub.people import hub_tokens
from factwire.hub.people.hub_tokens import KEY_FILE, HubTokens, load_key
from factwire.runtime.configuration import HubSettings, MailSettings
from factwire.serving.access_control import InsecureStart
from tests.cli.cli_commands import COMMAND
from tests.hub.hub_process import HubProcess, hub_process
from tests.hub.hubs import PASSWORD, SteppedClock, running_hub


@pytest.mark.requirement("hub.start")
@pytest.mark.parametrize(
    ("settings", "starts"),
    [
        ({}, True),
        ({"host": "localhost"}, True),
        ({"host": "::1"}, True),
        ({"host": "0.0.0.0"}, False),
        ({"host": "192.0.2.1"}, False),
        ({"host": "::", "url": "http://hub.example"}, False),
        ({"host": "0.0.0.0", "url": "https://hub.example"}, True),
        ({"url": "http://127.0.0.1:9"}, True),
    ],
)
def test_passwords_never_cross_a_network_in_the_clear(settings: dict[str, Any], *, starts: bool):
    if starts:
        ensure_secure(HubSettings(**settings))
        return
    with pytest.raises(InsecureStart) as raised:
        ensure_secure(HubSettings(**settings))
    assert raised.value.code == "tls_required"


def test_without_its_check_any_address_would_do(monkeypatch: pytest.MonkeyPatch):
    def trust_all(_: str) -> bool:
        return True

    monkeypatch.setattr(hub_startup, "is_loopback", trust_all)
    ensure_secure(HubSettings(host="0.0.0.0"))


SPOILED: dict[str, tuple[bytes | None, str]] = {
    "empty": (b"", "key_unusable"),
    "short": (b"00" * 31, "key_unusable"),
    "no digits": (b"secret" * 11, "key_unusable"),
    "exposed": (None, "token_exposed"),
}


async def start_with_spoiled_key(folder: Path, content: bytes | None) -> None:
    async with running_hub(folder):
        pass
    path = folder / "hub" / KEY_FILE
    if content is None:
        path.chmod(0o644)
    else:
        path.write_bytes(content)
    async with running_hub(folder):
        pass


@pytest.mark.asyncio
@pytest.mark.requirement("hub.start")
@pytest.mark.parametrize("name", SPOILED)
async def test_a_key_that_cannot_be_trusted_keeps_it_from_starting(tmp_path: Path, name: str):
    content, code = SPOILED[name]
    with pytest.raises(InsecureStart) as raised:
        await start_with_spoiled_key(tmp_path, content)
    assert raised.value.code == code


def read_any_file(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("name", "check", "off"),
    [("short", "_KEY_BYTES", 31), ("exposed", "read_private_file", read_any_file)],
)
async def test_without_its_check_it_would_start_with_such_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, check: str, off: Any
):
    monkeypatch.setattr(hub_tokens, check, off)
    await start_with_spoiled_key(tmp_path, SPOILED[name][0])


@pytest.mark.requirement("hub.start")
def test_a_second_hub_does_not_start_on_a_folder_that_one_uses(tmp_path: Path):
    data = tmp_path / "hub"
    arguments = ("hub", "--data", str(data), "--port", "0")
    with hub_process(tmp_path) as first:
        address = (data / URL_FILE).read_text()
        second = subprocess.run(
            [*COMMAND, *arguments], capture_output=True, text=True, timeout=180, check=False
        )
        assert second.returncode == 2
        assert "data_unusable" in second.stderr
        assert "another Hub" in second.stderr
        assert (data / URL_FILE).read_text() == address
        assert httpx.get(f"{first.url}/v1/health", trust_env=False).status_code == 200
        first.kill()
    with hub_process(tmp_path) as third:
        assert httpx.get(f"{third.url}/v1/health", trust_env=False).status_code == 200


@pytest.mark.asyncio
@pytest.mark.requirement("hub.start")
async def test_a_mail_password_that_is_not_set_keeps_it_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    mail = MailSettings(
        host="127.0.0.1", sender="hub@hub.example", user="hub", password_env="NO_SUCH_PASSWORD"
    )
    for value in (None, ""):
        if value is not None:
            monkeypatch.setenv("NO_SUCH_PASSWORD", value)
        with pytest.raises(MailPasswordMissing, match="NO_SUCH_PASSWORD"):
            async with running_hub(tmp_path, mail=mail):
                pass
    monkeypatch.setenv("NO_SUCH_PASSWORD", "found")
    async with running_hub(tmp_path, mail=mail):
        pass


@pytest.mark.asyncio
@pytest.mark.requirement("hub.first-admin")
async def test_each_start_without_accounts_makes_a_new_link(tmp_path: Path):
    clock, tokens = SteppedClock(), list[str]()
    for _ in range(3):
        clock.advance(1)
        async with running_hub(tmp_path, clock) as hub:
            tokens.append(hub.first_token)
            statuses = [(await hub.register(each, "Ada")).status_code for each in tokens[:-1]]
            assert statuses == [403] * (len(tokens) - 1)
    clock.advance(1)
    async with running_hub(tmp_path, clock) as hub:
        assert len({*tokens, hub.first_token}) == 4
        assert (await hub.register(hub.first_token, "Ada")).status_code == 201


def register(hub: HubProcess, name: str, token: str | None) -> dict[str, Any]:
    body = {"token": token, "name": name, "password": PASSWORD}
    answer = httpx.post(f"{hub.url}/v1/auth/register", json=body, trust_env=False)
    assert answer.status_code == 201, answer.text
    return answer.json()


def kill_after_registering(folder: Path, *, eager: bool = False) -> None:
    """Whoever was told that their account exists can sign in after a kill."""
    with hub_process(folder, eager=eager) as hub:
        signed_in = register(hub, "Ada", hub.first_token)
        hub.kill()
    with hub_process(folder) as hub:
        assert hub.first_token is None
        bearer = {"authorization": f"Bearer {signed_in['accessToken']}"}
        me = httpx.get(f"{hub.url}/v1/me", headers=bearer, trust_env=False)
        assert me.json() == signed_in["person"]
        body = {"refreshToken": signed_in["refreshToken"]}
        renewed = httpx.post(f"{hub.url}/v1/auth/refresh", json=body, trust_env=False)
        assert renewed.status_code == 200


@pytest.mark.fault
@pytest.mark.requirement("hub.records.durable")
def test_an_acknowledged_registration_survives_a_kill(tmp_path: Path):
    kill_after_registering(tmp_path)


@pytest.mark.fault
def test_a_hub_that_acknowledges_too_early_is_found_out(tmp_path: Path):
    with pytest.raises(AssertionError):
        kill_after_registering(tmp_path, eager=True)


@contextmanager
def indiscreet_mail_server() -> Generator[tuple[int, Event]]:
    """A mail server that refuses every password, and says it back; its port, and whether it did."""
    was_used = Event()

    class Session(StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 mail\r\n")
            for line in self.rfile:
                word = line[:4].upper()
                if word == b"EHLO":
                    self.wfile.write(b"250-mail\r\n250 AUTH PLAIN LOGIN\r\n")
                elif word == b"AUTH":
                    credentials = b64decode(line.split()[-1]) if len(line.split()) > 2 else b""
                    self.wfile.write(b"535 not " + credentials.replace(b"\0", b" ") + b"\r\n")
                    was_used.set()
                else:
                    self.wfile.write(b"250 ok\r\n")

    with ThreadingTCPServer(("127.0.0.1", 0), Session) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1], was_used
        finally:
            server.shutdown()
            thread.join()


def join_devices(http: httpx.Client, bearer: dict[str, str]) -> list[str]:
    """Every secret of a device that joins, of one that is still asking, and of a phone."""

    def post(path: str, body: Any, headers: dict[str, str] | None = None) -> Any:
        answer = http.post(path, json=body, headers=headers)
        assert answer.is_success, answer.text
        return answer.json()

    machine = {"name": "laptop", "edgeId": "edge_1", "agents": ["demo"]}
    codes = post("/v1/device-authorizations", machine)
    asking = post("/v1/device-authorizations", {**machine, "edgeId": "edge_2"})
    path = f"/v1/device-authorizations/{codes['user_code']}/decision"
    post(path, {"decision": "confirm"}, bearer)
    joined = post("/v1/auth/device-token", {"deviceCode": codes["device_code"]})
    access = post("/v1/auth/device", {"deviceToken": joined["deviceToken"]})
    pairing = post("/v1/me/pairings", {}, bearer)
    phone = post("/v1/auth/pairing", {"code": pairing["code"], "name": "phone"})
    return [
        *(each[name] for each in (codes, asking) for name in ("device_code", "user_code")),
        joined["deviceToken"],
        access["accessToken"],
        pairing["code"],
        phone["deviceCode"],
    ]


def misuse(http: httpx.Client, secret: str) -> list[str]:
    """What is answered to a secret where it does not belong."""
    headers = {"authorization": f"Bearer {secret}"}
    answers = [
        http.get("/v1/me", headers=headers),
        http.get(f"/v1/device-authorizations/{quote(secret, safe='')}x"),
        http.get(f"/client/ws?access_token={quote(secret)}"),
        http.post("/v1/auth/refresh", json={"refreshToken": f"{secret}x"}),
        http.post("/v1/auth/device", json={"deviceToken": f"{secret}x"}),
        http.post("/v1/auth/pairing", json={"code": f"{secret}x", "name": "phone"}),
        http.post("/v1/auth/login", json={"name": "Ada", "password": {"is": secret}}),
    ]
    return [each.text for each in answers]


@pytest.mark.requirement("hub.secrets")
@pytest.mark.requirement("hub.audit")
def test_no_secret_is_in_the_database_the_log_a_list_a_problem_or_a_figure(tmp_path: Path):
    own = {"MAIL_PASSWORD": "the-mail-password-1", "CORP_SECRET": "the-client-secret-1"}
    with (
        indiscreet_mail_server() as (port, was_used),
        hub_process(tmp_path, variables={"TEST_MAIL_PORT": str(port), **own}) as hub,
        httpx.Client(base_url=hub.url, trust_env=False) as http,
    ):
        signed_in = register(hub, "Ada", hub.first_token)
        bearer = {"authorization": f"Bearer {signed_in['accessToken']}"}
        made = http.post("/v1/invitations", json={}, headers=bearer).json()
        renewed = http.post(
            "/v1/auth/refresh", json={"refreshToken": signed_in["refreshToken"]}
        ).json()
        device_secrets = join_devices(http, bearer)
        webhook = http.post(
            "/v1/webhooks", json={"url": "https://hooks.example.com/in/a-key"}, headers=bearer
        ).json()
        problems = [
            http.post(
                "/v1/me/mail-addresses", json={"address": "ada@example.org"}, headers=bearer
            ).text,
            http.post("/v1/auth/providers/start", json={"providerId": "corp"}).text,
        ]
        tickets = [http.post("/client/ws-ticket", headers=bearer).json()["ticket"] for _ in "ab"]
        address = f"{hub.url.replace('http', 'ws')}/client/ws?access_token={tickets[0]}"
        with connect(address) as client:
            assert json.loads(client.recv(60))["type"] == "auth.ok"
        with pytest.raises(InvalidStatus):
            connect(address)
        wrong = "a password typed wrongly"
        http.post("/v1/auth/login", json={"name": wrong, "password": wrong})
        http.get("/v1/me", headers={"authorization": f"Bearer {renewed['refreshToken']}"})
        changed = "the next password of hers"
        body = {"currentPassword": PASSWORD, "newPassword": changed}
        assert http.post("/v1/me/password", json=body, headers=bearer).status_code == 204
        shown = [
            http.get(path, headers=bearer).text
            for path in (
                *("/v1/audit", "/v1/invitations", "/v1/people", "/v1/me/sessions", "/v1/devices"),
                *("/v1/webhooks", "/v1/me/mail-addresses", "/v1/device-authorizations"),
            )
        ]
        metrics = (tmp_path / "hub" / "hub-metrics-token").read_text().strip()
        figures = http.get("/v1/metrics", headers={"authorization": f"Bearer {metrics}"})
        assert 'factwire_hub_people{role="admin"} 1.0' in figures.text
        assert http.get("/v1/me", headers={"authorization": f"Bearer {metrics}"}).status_code == 401
        secrets = [
            PASSWORD,
            changed,
            wrong,
            str(hub.first_token),
            made["token"],
            *tickets,
            *(
                each[name]
                for each in (signed_in, renewed)
                for name in ("accessToken", "refreshToken")
            ),
            metrics,
            (tmp_path / "hub" / KEY_FILE).read_text().strip(),
            *device_secrets,
            webhook["secret"],
            *own.values(),
        ]
        vapid = HubTokens(load_key(tmp_path / "hub"), time).derive_secret("vapid")
        secrets += [vapid.hex(), b64encode(vapid).decode(), encode_base64url(vapid)]
        assert was_used.wait(60)
        problems += [text for secret in secrets for text in misuse(http, secret)]
    stored = (tmp_path / "hub" / "hub.db").read_bytes()
    assert vapid not in stored
    places = {
        "database": stored,
        "log": hub.log().encode(),
        "lists": json.dumps(shown).encode(),
        "problems": json.dumps(problems).encode(),
        "figures": figures.content,
    }
    found = [
        (place, secret[:12])
        for place, content in places.items()
        for secret in secrets
        if secret.encode() in content
    ]
    assert found == []
    assert b"hub_started" in places["log"]
