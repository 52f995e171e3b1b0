"""`make hub`: a Hub with two people, two machines and a team of three agents, all on this machine.

Everything is what anybody would use: `factwire hub`, two `factwire edge`, and `factwire join`,
whose codes are confirmed over REST as a signed-in person would. What it keeps is in
`.run/hub-demo`; a second start finds the accounts, the machines and the team of the first.
"""

import asyncio
import json
import os
import re
import secrets
import signal
import socket
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

FOLDER = Path(".run/hub-demo")
FACTWIRE = Path(sys.executable).with_name("factwire")
PEOPLE = ("ada", "grace")
TEAM = "demo-team"
MEMBERS = {"boss": ("supervisor", 1), "ann": ("executor", 1), "rex": ("reviewer", 2)}
"""The team of the first person: name → role, and the machine that the agent is on."""
WAIT_SECONDS = 120.0


def find_port(wanted: int) -> int:
    """A port that is free, this one if it can be."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", wanted))
        except OSError:
            trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


async def start(*arguments: str | Path, log: Path) -> Process:
    """A server of Factwire; what it prints is in its log."""
    with log.open("ab") as output:
        return await asyncio.create_subprocess_exec(
            str(FACTWIRE),
            *map(str, arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=STDOUT,
        )


async def run(*arguments: str | Path) -> str:
    """What a command printed; raises where it failed."""
    command = [str(FACTWIRE), *map(str, arguments)]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=STDOUT)
    printed = (await process.communicate())[0].decode()
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{printed}")
    return printed


async def wait_for(url: str, server: Process, log: Path) -> None:
    """Return once a server answers; ends the demo where it has ended."""
    async with asyncio.timeout(WAIT_SECONDS), httpx.AsyncClient(trust_env=False) as http:
        while True:
            if server.returncode is not None:
                raise SystemExit(f"a server has ended; {log} says why")
            try:
                if (await http.get(f"{url}/v1/health")).is_success:
                    return
            except httpx.TransportError:
                await asyncio.sleep(0.1)


def read_passwords() -> dict[str, str]:
    """The passwords of the people of an earlier start."""
    try:
        return json.loads((FOLDER / "people.json").read_text())
    except FileNotFoundError:
        return {}


async def add_people() -> dict[str, str]:
    """Two accounts and their passwords, made on the Hub's machine as its operator would."""
    passwords = read_passwords()
    if not passwords:
        for name, role in zip(PEOPLE, ("admin", "member"), strict=True):
            added = ("hub", "user", "add", name, "--role", role, "--json")
            answer = json.loads(await run(*added, "--data", FOLDER / "hub"))
            passwords[name] = answer["password"]
        file = FOLDER / "people.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps(passwords))
    return passwords


async def join_edge(hub: str, number: int, person: httpx.AsyncClient) -> None:
    """Join the machine of a number, and confirm its code as its owner."""
    data = FOLDER / f"edge-{number}"
    if (data / "hub.json").exists():
        return
    command = (str(FACTWIRE), "join", hub, "--name", f"machine-{number}", "--data", str(data))
    joining = await asyncio.create_subprocess_exec(*command, "--no-qr", stdout=PIPE, stderr=STDOUT)
    if joining.stdout is None:
        raise SystemExit("factwire join has no output")
    printed = ""
    async with asyncio.timeout(WAIT_SECONDS):
        while not (code := re.search(r"\b[B-Z]{4}-[B-Z]{4}\b", printed)):
            line = await joining.stdout.readline()
            if not line:
                raise SystemExit(f"factwire join ended without a code:\n{printed}")
            printed += line.decode()
        path = f"/v1/device-authorizations/{code[0]}/decision"
        (await person.post(path, json={"decision": "confirm"})).raise_for_status()
        await joining.communicate()


@asynccontextmanager
async def sign_in(hub: str, name: str, password: str) -> AsyncGenerator[httpx.AsyncClient]:
    """A client that asks the Hub as one of its people."""
    async with httpx.AsyncClient(base_url=hub, trust_env=False, timeout=WAIT_SECONDS) as http:
        login = await http.post("/v1/auth/login", json={"name": name, "password": password})
        token = login.raise_for_status().json()["accessToken"]
        http.headers["authorization"] = f"Bearer {token}"
        yield http


async def wait_until_online(person: httpx.AsyncClient, number: int) -> None:
    """Return once the machine of a number is connected to the Hub."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            devices = (await person.get("/v1/devices")).raise_for_status().json()["items"]
            if any(each["online"] and each["name"] == f"machine-{number}" for each in devices):
                return
            await asyncio.sleep(0.2)


async def share_machine(owner: httpx.AsyncClient, number: int, person: str) -> None:
    """Let somebody else operate a machine; the same again changes nothing."""
    devices = (await owner.get("/v1/devices")).raise_for_status().json()["items"]
    device_id = next(each["deviceId"] for each in devices if each["name"] == f"machine-{number}")
    grant = {"person": person, "role": "operator", "deviceId": device_id}
    (await owner.post("/v1/grants", json=grant)).raise_for_status()


async def create_team(person: httpx.AsyncClient) -> str:
    """A team whose supervisor is an agent, on both machines; its id."""
    teams = (await person.get("/v1/teams")).raise_for_status().json()["items"]
    known = [each["teamId"] for each in teams if each["name"] == TEAM]
    if known:
        return known[0]
    devices = (await person.get("/v1/devices")).raise_for_status().json()["items"]
    ids = {each["name"]: each["deviceId"] for each in devices}
    made = (await person.post("/v1/teams", json={"name": TEAM})).raise_for_status().json()
    for name, (role, number) in MEMBERS.items():
        places = {"agentType": "demo", "deviceIds": [ids[f"machine-{number}"]]}
        body = {"name": name, "role": role, **places}
        path = f"/v1/teams/{made['teamId']}/members"
        (await person.post(path, json=body)).raise_for_status()
    return made["teamId"]


def show(hub: str, passwords: dict[str, str], edges: list[tuple[str, str]], team_id: str) -> None:
    """What there is, and what to try."""
    lines = [f"\nThe Hub: {hub}/"]
    lines += [f"  sign in as {name} with {password}" for name, password in passwords.items()]
    for number, (url, token) in enumerate(edges, start=1):
        owner = PEOPLE[number - 1]
        lines.append(f"machine-{number} ({owner}'s): {url}/#token={token}")
    lines += [
        "",
        "In another terminal of this checkout, sign in and look:",
        f"  .venv/bin/factwire login {hub} --name {PEOPLE[0]}",
        f"  .venv/bin/factwire devices --hub {hub}",
        "",
        "Watch a team work: an agent delegates, is refused once, has the work reviewed, sends it",
        "back and finishes; you allow what the executor asks, there or on the Hub's page:",
        f'  .venv/bin/factwire team run {team_id} "Greet everybody" --watch --hub {hub}',
        "",
        f"Logs and data are in {FOLDER}. Press Ctrl-C to stop.",
    ]
    print("\n".join(lines), flush=True)


async def main() -> None:
    ports = [find_port(wanted) for wanted in (8788, 8791, 8792)]
    hub, *urls = (f"http://127.0.0.1:{port}" for port in ports)
    tokens = [secrets.token_urlsafe(32) for _ in urls]
    servers: list[Process] = []
    stopped = asyncio.Event()
    for kind in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(kind, stopped.set)
    try:
        log = FOLDER / "hub.log"
        print("Starting the Hub ...", flush=True)
        servers.append(
            await start("hub", "--port", str(ports[0]), "--data", FOLDER / "hub", log=log)
        )
        await wait_for(hub, servers[-1], log)
        passwords = await add_people()
        for number, (port, url, token) in enumerate(zip(ports[1:], urls, tokens, strict=True), 1):
            data, log = FOLDER / f"edge-{number}", FOLDER / f"edge-{number}.log"
            workspace = FOLDER / f"workspace-{number}"
            print(f"Starting machine-{number} and joining it to the Hub ...", flush=True)
            os.environ["FACTWIRE_TOKEN"] = token
            options = ("--port", str(port), "--data", data, "--workspace", workspace)
            journal = ("--journal", FOLDER / f"journal-{number}.db", "--agent", "demo")
            servers.append(await start("edge", *options, *journal, log=log))
            await wait_for(url, servers[-1], log)
            owner = PEOPLE[number - 1]
            async with sign_in(hub, owner, passwords[owner]) as person:
                await join_edge(hub, number, person)
                await wait_until_online(person, number)
        async with sign_in(hub, PEOPLE[1], passwords[PEOPLE[1]]) as owner:
            await share_machine(owner, 2, PEOPLE[0])
        async with sign_in(hub, PEOPLE[0], passwords[PEOPLE[0]]) as person:
            team_id = await create_team(person)
        show(hub, passwords, list(zip(urls, tokens, strict=True)), team_id)
        ended = [asyncio.create_task(server.wait()) for server in servers]
        await asyncio.wait(
            [*ended, asyncio.create_task(stopped.wait())], return_when="FIRST_COMPLETED"
        )
        if not stopped.is_set():
            raise SystemExit(f"a server has ended by itself; the logs in {FOLDER} say why")
    finally:
        for server in reversed(servers):
            if server.returncode is None:
                server.terminate()
        await asyncio.gather(*(server.wait() for server in servers))


if __name__ == "__main__":
    for each in range(1, len(PEOPLE) + 1):
        (FOLDER / f"workspace-{each}").mkdir(parents=True, exist_ok=True, mode=0o700)
    asyncio.run(main())
