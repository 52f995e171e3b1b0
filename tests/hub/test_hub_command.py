"""`factwire hub user|invite|audit`, on the database of a Hub that runs or does not."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.cli_commands import CommandOutput, Factwire
from tests.cli.conftest import factwire as factwire_fixture
from tests.hub.hub_process import hub_process
from tests.hub.hubs import PASSWORD

factwire = factwire_fixture
pytestmark = pytest.mark.requirement("hub.command")


class HubCommands:
    """The commands on one data folder."""

    def __init__(self, command: Factwire, data: Path) -> None:
        self._command = command
        self._data = data

    def __call__(self, *arguments: str, code: int = 0) -> CommandOutput:
        done = self._command("hub", *arguments, "--data", self._data)
        assert done.code == code, done
        return done

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json").out)


@pytest.fixture
def hub(factwire: Factwire, tmp_path: Path) -> HubCommands:
    return HubCommands(factwire, tmp_path / "hub")


def test_people_are_managed_while_the_hub_runs_and_while_it_does_not(
    hub: HubCommands, tmp_path: Path
):
    with (
        hub_process(tmp_path) as running,
        httpx.Client(base_url=running.url, trust_env=False) as http,
    ):
        ada = hub.json("user", "add", "Ada", "--role", "admin")
        assert {*ada} == {"personId", "name", "role", "createdAt", "password"}
        login = http.post("/v1/auth/login", json={"name": "Ada", "password": ada["password"]})
        bearer = {"authorization": f"Bearer {login.json()['accessToken']}"}
        assert http.get("/v1/people", headers=bearer).status_code == 200
        assert "last_admin" in hub("user", "role", "ada", "viewer", code=1).err
        bo = hub.json("user", "add", "Bo")
        assert hub.json("user", "role", "Bo", "admin")["role"] == "admin"
        assert hub.json("user", "disable", ada["personId"])["disabledAt"]
        assert http.get("/v1/me", headers=bearer).status_code == 401
    assert "disabledAt" not in hub.json("user", "enable", "ada")
    listed = hub.json("user", "list")
    assert [row["name"] for row in listed["items"]] == ["Bo", "Ada"]
    shown = hub("user", "list").out.splitlines()
    header = ["id", "name", "role", "signs", "in", "with", "created", "disabled"]
    assert shown[0].split() == header
    assert shown[1].split()[:3] == [bo["personId"], "Bo", "admin"]
    assert "password" in shown[1]
    methods = hub.json("user", "methods", "Ada")
    assert methods == {"password": True, "passkeys": [], "identities": []}
    assert "password" in hub("user", "methods", "Ada").out
    assert "unknown_method" in hub("user", "methods", "Ada", "--remove", "pky_x", code=1).err
    page = hub("user", "list", "--limit", "1")
    cursor = page.err.split("--after ")[1].strip()
    assert "Ada" in hub("user", "list", "--after", cursor).out
    assert "name_taken" in hub("user", "add", "BO", code=1).err
    assert "unknown_person" in hub("user", "disable", "nobody", code=1).err


def test_a_reset_password_replaces_the_old_one_and_ends_sessions(hub: HubCommands, tmp_path: Path):
    with (
        hub_process(tmp_path) as running,
        httpx.Client(base_url=running.url, trust_env=False) as http,
    ):
        body = {"token": running.first_token, "name": "Ada", "password": PASSWORD}
        signed_in = http.post("/v1/auth/register", json=body).json()
        password = hub("user", "reset", "Ada").out.strip()
        statuses = [
            http.post("/v1/auth/login", json={"name": "Ada", "password": each}).status_code
            for each in (PASSWORD, password)
        ]
        assert statuses == [401, 200]
        refreshed = http.post("/v1/auth/refresh", json={"refreshToken": signed_in["refreshToken"]})
        assert refreshed.status_code == 401


def test_invitations_are_made_listed_and_revoked(hub: HubCommands, tmp_path: Path):
    with (
        hub_process(tmp_path) as running,
        httpx.Client(base_url=running.url, trust_env=False) as http,
    ):
        link = hub("invite", "create", "--role", "viewer", "--uses", "2").out.strip()
        address, _, token = link.partition("/join#")
        assert address == running.url
        body = {"token": token, "name": "Vi", "password": PASSWORD}
        assert http.post("/v1/auth/register", json=body).json()["person"]["role"] == "viewer"
        rows = {row["invitationId"]: row for row in hub.json("invite", "list")["items"]}
        [made] = [row for name, row in rows.items() if name != "inv_first_admin"]
        assert (made["uses"], made["maxUses"]) == (1, 2)
        assert token not in hub("invite", "list").out
        hub("invite", "revoke", made["invitationId"])
        body["name"] = "Late"
        assert http.post("/v1/auth/register", json=body).json()["code"] == "invitation_invalid"
        assert "unknown_invitation" in hub("invite", "revoke", "inv_nobody", code=1).err
    actions = [row["action"] for row in hub.json("audit")["items"]]
    assert actions == [
        "invitation.revoked",
        "person.registered",
        "invitation.created",
        "invitation.created",
    ]
    mine = hub.json("audit", "--person", "Vi")["items"]
    assert [row["action"] for row in mine] == ["person.registered"]
    assert hub("audit").out.splitlines()[0].split()[:2] == ["at", "action"]


def test_a_folder_without_a_hub_and_a_wrong_database_are_named(
    hub: HubCommands, factwire: Factwire, tmp_path: Path
):
    assert "hub_not_started" in hub("user", "list", code=2).err
    assert not (tmp_path / "hub").exists()
    wrong = factwire("hub", "user", "list", "--database", "mysql://a/b")
    assert wrong.code == 2
    insecure = factwire("hub", "--host", "0.0.0.0", "--data", tmp_path / "hub")
    assert (insecure.code, "tls_required" in insecure.err) == (2, True)
    unknown = factwire("hub", "--url", "ftp://hub.example", "--data", tmp_path / "hub")
    assert (unknown.code, "hub.url expected an http" in unknown.err) == (2, True)
    assert not (tmp_path / "hub").exists()
    helped = factwire("hub", "--help")
    assert (helped.code, "invite" in helped.out) == (0, True)
