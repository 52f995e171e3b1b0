"""Real Edges at a real Hub: joined on the command line, mirrored, shared, revoked, killed."""

import asyncio
import json
import os
import re
import stat
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL
from time import monotonic, sleep
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from factwire.edge.hub_access import HUB_FILE, HubTarget
from factwire.edge.startup import EdgeSettings
from factwire.serving.access_control import load_token
from tests.cli.cli_commands import COMMAND, Factwire
from tests.cli.conftest import factwire as factwire_fixture
from tests.edge.edges import TOKEN, RunningEdge, running_edge
from tests.hub.hub_process import HubProcess, hub_process
from tests.hub.hubs import PASSWORD

factwire = factwire_fixture
WAIT_SECONDS = 180.0


class SignedInPerson:
    """Somebody who uses a Hub in another process."""

    def __init__(self, hub: HubProcess, http: httpx.AsyncClient, signed_in: dict[str, Any]) -> None:
        self.hub = hub
        self.http = http
        self.signed_in = signed_in
        self.headers = {"authorization": f"Bearer {signed_in['accessToken']}"}

    async def request(self, method: str, path: str, body: Any = None) -> httpx.Response:
        return await self.http.request(method, path, json=body, headers=self.headers)

    async def post(self, path: str, body: Any = None) -> Any:
        answer = await self.request("POST", path, body)
        assert answer.is_success, answer.text
        return answer.json()

    async def status(self, path: str) -> int:
        return (await self.request("GET", path)).status_code

    async def register(self, name: str) -> "SignedInPerson":
        made = await self.post("/v1/invitations", {"role": "member"})
        return await register(self.hub, self.http, name, made["token"])

    def stream(self, path: str) -> Any:
        url = f"{self.hub.url.replace('http', 'ws', 1)}{path}"
        return connect(url, additional_headers=self.headers)

    async def join_device(self, edge_id: str) -> HubTarget:
        body = {"name": "laptop", "edgeId": edge_id}
        codes = (await self.http.post("/v1/device-authorizations", json=body)).json()
        path = f"/v1/device-authorizations/{codes['user_code']}/decision"
        await self.post(path, {"decision": "confirm"})
        poll = {"deviceCode": codes["device_code"]}
        joined = (await self.http.post("/v1/auth/device-token", json=poll)).json()
        return HubTarget(
            url=self.hub.url, token=joined["deviceToken"], device_id=joined["deviceId"]
        )

    async def wait_for(self, path: str, seq: int) -> None:
        """Return once a mirror has come to a seq."""
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                answer = await self.request("GET", path)
                if answer.status_code == 200 and int(answer.json()["cursor"][-16:]) >= seq:
                    return
                await asyncio.sleep(0.05)


async def register(
    hub: HubProcess, http: httpx.AsyncClient, name: str, token: str | None
) -> SignedInPerson:
    body = {"token": token, "name": name, "password": PASSWORD}
    answer = await http.post("/v1/auth/register", json=body)
    assert answer.status_code == 201, answer.text
    return SignedInPerson(hub, http, answer.json())


def open_http(hub: HubProcess) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=hub.url, timeout=WAIT_SECONDS, trust_env=False)


async def wait_until_closed(stream: Any) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        try:
            while True:
                await stream.recv()
        except ConnectionClosed:
            return


async def run_turn(edge: RunningEdge, prompt: str) -> str:
    run = await edge.start(prompt)
    await edge.allow_all(run["runId"])
    return run["threadId"]


@pytest.mark.requirement("hub.mirrors")
@pytest.mark.requirement("hub.grants")
@pytest.mark.asyncio
async def test_a_mirror_is_for_its_owner_and_those_it_is_shared_with(tmp_path: Path):
    with hub_process(tmp_path) as hub:
        async with open_http(hub) as http, running_edge(tmp_path) as probe:
            edge_id = probe.machine.edge_id
            ada = await register(hub, http, "Ada", hub.first_token)
            bo, eve = await ada.register("Bo"), await ada.register("Eve")
            target = await ada.join_device(edge_id)
        settings = EdgeSettings(token=TOKEN, hub=target)
        async with open_http(hub) as http, running_edge(tmp_path, settings=settings) as edge:
            for person in (ada, bo, eve):
                person.http = http
            base = f"/v1/edges/{edge_id}"
            mine, other = await run_turn(edge, "one"), await run_turn(edge, "two")
            pack = await edge.post("/v1/evidence", {"threadId": other}, status=201)
            await ada.wait_for(f"{base}/mirror", (await edge.machine.journal.head()).seq)
            original = await edge.http.get("/v1/threads")
            assert (await ada.request("GET", f"{base}/threads")).content == original.content
            assert await bo.status(f"{base}/threads") == 404
            share = {"deviceId": target.device_id, "role": "viewer"}
            whole = await ada.post("/v1/grants", {**share, "person": "Bo"})
            one = await ada.post("/v1/grants", {**share, "person": "Eve", "threadId": mine})
            assert (await bo.request("GET", f"{base}/threads")).content == original.content
            command = await bo.request("POST", f"{base}/runs", {})
            assert command.json()["code"] == "insufficient_grant"
            await check_reach_of_one_thread(eve, edge, base, (mine, other), pack)
            async with (
                bo.stream(f"{base}/events") as all_events,
                eve.stream(f"{base}/events?threadId={mine}") as some_events,
                eve.stream(f"{base}/threads/{mine}/projection/stream") as state,
                ada.stream(f"{base}/facts") as own,
            ):
                for stream in (all_events, some_events, state, own):
                    await asyncio.wait_for(stream.recv(), WAIT_SECONDS)
                for person, grant in ((bo, whole), (eve, one)):
                    path = f"/v1/grants/{grant['grantId']}"
                    assert (await ada.request("DELETE", path)).status_code == 204
                    with pytest.raises(InvalidStatus):
                        async with person.stream(f"{base}/events?threadId={mine}"):
                            pass
                for stream in (all_events, some_events, state):
                    await wait_until_closed(stream)
                assert await eve.status(f"{base}/threads/{mine}") == 404
                assert (await ada.request("POST", "/v1/auth/logout")).status_code == 204
                await wait_until_closed(own)
        assert hub.failures() == []
        secret = target.token.encode()
        assert secret not in hub.log().encode()
        assert secret not in (tmp_path / "hub" / "hub.db").read_bytes()


async def check_reach_of_one_thread(
    eve: SignedInPerson, edge: RunningEdge, base: str, threads: tuple[str, str], pack: Any
) -> None:
    """A grant on one thread opens that thread, and nothing else."""
    mine, other = threads
    for kind in ("runs", "approvals", "artifacts", "tasks", "evidence", "events", "facts"):
        path = f"{kind}?threadId={mine}"
        original = await edge.http.get(f"/v1/{path}")
        assert (await eve.request("GET", f"{base}/{path}")).content == original.content, kind
        assert await eve.status(f"{base}/{kind}") == 404
        assert await eve.status(f"{base}/{kind}?threadId={other}") == 404
        assert await eve.status(f"{base}/{kind}?threadId={mine}&threadId={other}") == 404
    for kind in ("", "/items", "/projection", "/read-model", "/queue"):
        original = await edge.http.get(f"/v1/threads/{mine}{kind}")
        answer = await eve.request("GET", f"{base}/threads/{mine}{kind}")
        assert answer.content == original.content, kind
        assert await eve.status(f"{base}/threads/{other}{kind}") == 404
    for run in (await edge.get("/v1/runs"))["items"]:
        expected = 200 if run["threadId"] == mine else 404
        assert await eve.status(f"{base}/runs/{run['runId']}") == expected
    for path in ("threads", "projects", "mirror", f"evidence/{pack['evidenceId']}"):
        assert await eve.status(f"{base}/{path}") == 404
    assert await eve.status(f"{base}/blobs/{pack['exportRef']}") == 404
    with pytest.raises(InvalidStatus):
        async with eve.stream(f"{base}/threads/{other}/projection/stream"):
            pass
    grants = (await eve.request("GET", "/v1/grants?received=true")).json()["items"]
    assert [(row["threadId"], row["role"]) for row in grants] == [(mine, "viewer")]
    assert (await eve.request("GET", "/v1/edges")).json()["items"] == []


def environment(folder: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FACTWIRE")}
    own = {"XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "HOME": "home"}
    paths = {name: str(folder / value) for name, value in own.items()}
    return clean | paths | {"NO_COLOR": "1", "FACTWIRE_DATA": str(folder / "data")}


@contextmanager
def start_command(folder: Path, *arguments: str) -> Generator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=environment(folder),
        text=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(WAIT_SECONDS)


def read_until(process: "subprocess.Popen[str]", pattern: str) -> "re.Match[str]":
    assert process.stdout is not None
    seen: list[str] = []
    while True:
        line = process.stdout.readline()
        assert line, seen
        seen.append(line)
        found = re.search(pattern, line)
        if found:
            return found


class OwnCommands:
    """Commands of somebody whose data folder is that of the Edge."""

    def __init__(self, command: Factwire, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self._command = command
        for name, value in environment(folder).items():
            patch.setenv(name, value)
        patch.chdir(folder)

    def __call__(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        done = self._command(*arguments, stdin=stdin.encode())
        assert done.code == code, done
        return done.out + done.err


def wait_for_answer(http: httpx.Client, path: str, text: str) -> None:
    ends = monotonic() + WAIT_SECONDS
    while text not in http.get(path).text:
        assert monotonic() < ends, path
        sleep(0.1)


@pytest.mark.requirement("hub.join-command")
@pytest.mark.requirement("hub.mirrors")
def test_an_edge_joins_by_a_command_and_is_read_after_its_kill(
    tmp_path: Path, factwire: Factwire, monkeypatch: pytest.MonkeyPatch
):
    kept = tmp_path / "data" / HUB_FILE
    with hub_process(tmp_path) as hub, httpx.Client(base_url=hub.url, trust_env=False) as http:
        own = OwnCommands(factwire, monkeypatch, tmp_path)
        body = {"token": hub.first_token, "name": "Ada", "password": PASSWORD}
        signed_in = http.post("/v1/auth/register", json=body).json()
        http.headers["authorization"] = f"Bearer {signed_in['accessToken']}"
        own("login", hub.url, "--name", "Ada", stdin=f"{PASSWORD}\n")
        assert "no device" in own("devices")
        options = ("--port", "0", "--agent", "demo", "--log-level", "error")
        with start_command(tmp_path, "edge", *options) as serving:
            address = read_until(serving, r"http://127\.0\.0\.1:\d+")[0]
            assert "not_a_hub" in own("join", address, code=2)
            with start_command(tmp_path, "join", hub.url, "--name", "laptop", "--qr") as joining:
                code = read_until(joining, r"confirm the code (\S+)")[1]
                assert "Name: laptop" in own("devices", "confirm", code, stdin="y\n")
                output, _ = joining.communicate(timeout=WAIT_SECONDS)
                assert joining.returncode == 0, output
                assert set(output) & set("█▀▄")
            assert stat.S_IMODE(kept.stat().st_mode) == 0o600
            [device] = json.loads(own("devices", "--json"))["items"]
            assert (device["name"], "demo" in device["agents"]) == ("laptop", True)
            token = load_token(tmp_path / "data", "edge-token").token.value
            bearer = {"authorization": f"Bearer {token}"}
            body = {"agentId": "demo", "prompt": "from afar"}
            run = http.post(f"{address}/v1/runs", json=body, headers=bearer).json()
            items = f"/v1/edges/{device['edgeId']}/threads/{run['threadId']}/items"
            wait_for_answer(http, items, "from afar")
            os.kill(serving.pid, SIGKILL)
            serving.wait(WAIT_SECONDS)
        assert "from afar" in http.get(items).text
        report = json.loads(own("doctor", "--json"))
        found = {row["name"]: row["status"] for row in report["findings"]}
        assert (found["hub"], "hub upload" in found) == ("ok", True)
        [asked] = json.loads(own("devices", "--json"))["items"]
        assert asked["agents"] == device["agents"]
        assert http.delete(f"/v1/devices/{device['deviceId']}").status_code == 204
        report = json.loads(own("doctor", "--json", code=1))
        [hub_row] = [row for row in report["findings"] if row["name"] == "hub"]
        assert (hub_row["status"], "device_token_invalid" in hub_row["message"]) == ("fail", True)
        assert "left" in own("leave", "--force")
        assert not kept.exists()
        assert "not joined" in own("leave")
        assert "no device" in own("devices")
        assert "signed out" in own("logout")
        assert "not_signed_in" in own("devices", code=2)
        assert device["deviceId"] in own("hub", "device", "list", "--data", "hub")
