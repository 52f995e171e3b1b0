"""Starting a Hub: what keeps it from starting, what survives a kill, and where no secret is."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from factwire.hub.hub_startup import ensure_secure
from factwire.hub.people.hub_tokens import KEY_FILE
from factwire.runtime.configuration import HubSettings
from factwire.serving.access_control import InsecureStart
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


SPOILED: dict[str, tuple[bytes | None, str]] = {
    "empty": (b"", "key_unusable"),
    "short": (b"00" * 31, "key_unusable"),
    "no digits": (b"secret" * 11, "key_unusable"),
    "exposed": (None, "token_exposed"),
}


@pytest.mark.asyncio
@pytest.mark.requirement("hub.start")
@pytest.mark.parametrize("name", SPOILED)
async def test_a_key_that_cannot_be_trusted_keeps_it_from_starting(tmp_path: Path, name: str):
    async with running_hub(tmp_path):
        pass
    content, code = SPOILED[name]
    path = tmp_path / "hub" / KEY_FILE
    if content is None:
        path.chmod(0o644)
    else:
        path.write_bytes(content)
    with pytest.raises(InsecureStart) as raised:
        async with running_hub(tmp_path):
            pass
    assert raised.value.code == code


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


@pytest.mark.requirement("hub.secrets")
@pytest.mark.requirement("hub.audit")
def test_no_secret_is_in_the_database_the_log_or_a_list(tmp_path: Path):
    with hub_process(tmp_path) as hub, httpx.Client(base_url=hub.url, trust_env=False) as http:
        signed_in = register(hub, "Ada", hub.first_token)
        bearer = {"authorization": f"Bearer {signed_in['accessToken']}"}
        made = http.post("/v1/invitations", json={}, headers=bearer).json()
        renewed = http.post(
            "/v1/auth/refresh", json={"refreshToken": signed_in["refreshToken"]}
        ).json()
        wrong = "a password typed wrongly"
        http.post("/v1/auth/login", json={"name": wrong, "password": wrong})
        http.get("/v1/me", headers={"authorization": f"Bearer {renewed['refreshToken']}"})
        changed = "the next password of hers"
        body = {"currentPassword": PASSWORD, "newPassword": changed}
        assert http.post("/v1/me/password", json=body, headers=bearer).status_code == 204
        shown = [
            http.get(path, headers=bearer).text
            for path in ("/v1/audit", "/v1/invitations", "/v1/people", "/v1/me/sessions")
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
            *(
                each[name]
                for each in (signed_in, renewed)
                for name in ("accessToken", "refreshToken")
            ),
            metrics,
            (tmp_path / "hub" / KEY_FILE).read_text().strip(),
        ]
    stored = (tmp_path / "hub" / "hub.db").read_bytes()
    places = {"database": stored, "log": hub.log().encode(), "lists": json.dumps(shown).encode()}
    found = [
        (place, secret[:12])
        for place, content in places.items()
        for secret in secrets
        if secret.encode() in content
    ]
    assert found == []
    assert b"hub_started" in places["log"]
