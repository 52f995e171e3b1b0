"""From a tap on approve to its fact in the journal of the Edge: through a Hub, and at the Edge.

Two Edges with their demo agents are each linked to a Hub, of which the second has ten times of
everything. A decision at the first Edge and those at both Hubs take turns. The clock stops when the
fact that the decision was applied comes out of the Edge's own stream.

    python -m bench.hub_approvals FOLDER TIMES EDGE_ID

is such a Hub, which prints where it is and who may use it.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec

from bench.edge_path import TOKEN, start_edge
from bench.edge_servers import serve_application
from bench.hub_growth import TIMES, open_filled_hub
from bench.measure import Row
from factwire.edge.hub_access import HubTarget, write_target
from factwire.hub.people.devices import NewDevice, register_device
from factwire.hub.records.invitation_records import ActionOrigin
from factwire.serving.streams import FactwireHttpProtocol, socket_settings

_ROUNDS: Final = 9
_WAIT: Final = 120


class ServedHub(msgspec.Struct, frozen=True, kw_only=True):
    """A Hub in a process of its own: who asks, and the device that is theirs."""

    url: str
    access_token: str
    device_id: str
    device_token: str


async def _serve(folder: Path, times: int, edge_id: str) -> None:
    async with open_filled_hub(folder, times) as filled:
        _, port = await serve_application(
            filled.hub.application, http=FactwireHttpProtocol, **socket_settings()
        )
        services = filled.hub.services
        new = NewDevice(
            person_id="usr_0", person_name="usr_0", edge_id=edge_id, name="edge", agents=["demo"]
        )
        async with services.events.change() as change:
            origin = ActionOrigin(via="bench", address="")
            joined = await register_device(services, change, new, origin)
        served = ServedHub(
            url=f"http://127.0.0.1:{port}",
            access_token=filled.access_token,
            device_id=joined.device_id,
            device_token=joined.device_token,
        )
        print(msgspec.json.encode(served).decode(), flush=True)
        await asyncio.Event().wait()


@contextmanager
def _start_hub(folder: str, times: int, edge_id: str) -> Generator[ServedHub]:
    arguments = ["-m", "bench.hub_approvals", f"{folder}/hub-{times}", str(times), edge_id]
    process = subprocess.Popen(  # noqa: S603 - this very program
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert process.stdout
        yield msgspec.json.decode(process.stdout.readline(), type=ServedHub)
    finally:
        process.kill()
        process.communicate()


class _Server:
    """Somewhere to send requests to."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def request(self, method: str, path: str, body: Any = None) -> Any:
        answer = await self._http.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    @asynccontextmanager
    async def read_lines(self, path: str) -> AsyncGenerator[AsyncIterator[str]]:
        """Server-sent events as they come."""
        headers = {"accept": "text/event-stream"}
        async with self._http.stream("GET", path, headers=headers) as stream:
            yield stream.aiter_lines()

    async def wait_for_items(self, path: str) -> list[dict[str, Any]]:
        """The items of a list, once there are some."""
        async with asyncio.timeout(_WAIT):
            while True:
                answer = await self._http.get(path)
                if answer.is_success and answer.json()["items"]:
                    return answer.json()["items"]
                await asyncio.sleep(0.02)


@asynccontextmanager
async def _open_server(url: str, token: str) -> AsyncGenerator[_Server]:
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(
        base_url=url, headers=headers, timeout=_WAIT, trust_env=False
    ) as http:
        yield _Server(http)


async def _read_applied(lines: AsyncIterator[str]) -> float:
    """When the next decision was applied, by the Edge's own facts."""
    async with asyncio.timeout(_WAIT):
        async for line in lines:
            if '"action.updated"' in line and json.loads(line[5:])["fact"]["payload"]["applied"]:
                return time.perf_counter()
    raise AssertionError("the stream of the Edge ended")


async def _start_run(edge: _Server) -> dict[str, Any]:
    """A request of the demo agent, which waits for a decision."""
    run = await edge.request("POST", "/v1/runs", {"agentId": "demo", "prompt": "approve"})
    path = f"/v1/approvals?runId={run['runId']}&status=pending"
    return (await edge.wait_for_items(path))[0]


async def _decide_at_edge(edge: _Server, approval: dict[str, Any]) -> None:
    body = {
        "runId": approval["runId"],
        "requestId": approval["approvalId"],
        "decision": "allow",
        "argsHash": approval["argsHash"],
    }
    await edge.request("POST", "/v1/permissions/decide", body)


async def _decide_at_hub(hub: _Server, approval: dict[str, Any]) -> None:
    body = {"decision": "allow", "argsHash": approval["argsHash"]}
    await hub.request("POST", f"/v1/approvals/{approval['approvalId']}/decide", body)


async def _find_at_hub(hub: _Server, request: dict[str, Any]) -> dict[str, Any]:
    """An approval as the Hub has it, once the mirror is there."""
    async with asyncio.timeout(_WAIT):
        while True:
            found = (await hub.request("GET", "/v1/approvals"))["items"]
            for each in found:
                if each["requestId"] == request["approvalId"]:
                    return each
            await asyncio.sleep(0.02)


class _LinkedEdge:
    """An Edge, the stream of its facts, and the Hub that it is linked to."""

    def __init__(self, edge: _Server, hub: _Server, lines: AsyncIterator[str]) -> None:
        self._edge = edge
        self._hub = hub
        self._lines = lines

    async def time_decision(self, *, is_direct: bool) -> float:
        """Seconds from one decision to its application."""
        request = await _start_run(self._edge)
        # Also before a direct one, so that the mirror is at rest.
        approval = await _find_at_hub(self._hub, request)
        if is_direct:
            deciding = _decide_at_edge(self._edge, request)
        else:
            deciding = _decide_at_hub(self._hub, approval)
        start = time.perf_counter()
        task = asyncio.create_task(deciding)
        applied = await _read_applied(self._lines)
        await task
        await self._edge.request("POST", f"/v1/runs/{request['runId']}/:cancel")
        return applied - start


@asynccontextmanager
async def _open_edge(name: str, times: int) -> AsyncGenerator[_LinkedEdge]:
    folder = Path(name, f"edge-{times}")
    await asyncio.to_thread(folder.mkdir)
    with start_edge(str(folder)) as target:
        url = f"http://127.0.0.1:{target.ports[0]}"
        async with _open_server(url, TOKEN) as edge:
            health = await edge.request("GET", "/v1/health")
            with _start_hub(name, times, health["details"]["edgeId"]) as served:
                joined = HubTarget(
                    url=served.url, token=served.device_token, device_id=served.device_id
                )
                await asyncio.to_thread(write_target, folder / "data", joined)
                async with (
                    _open_server(served.url, served.access_token) as hub,
                    edge.read_lines("/v1/facts?since=now") as lines,
                ):
                    yield _LinkedEdge(edge, hub, lines)


async def _measure() -> list[Row]:
    seen: dict[str, list[float]] = {"edge": [], "small": [], "large": []}
    with tempfile.TemporaryDirectory() as name:
        async with _open_edge(name, 1) as small, _open_edge(name, TIMES) as large:
            for number in range(_ROUNDS + 1):
                found = {
                    "edge": await small.time_decision(is_direct=True),
                    "small": await small.time_decision(is_direct=False),
                    "large": await large.time_decision(is_direct=False),
                }
                # The first one finds nothing prepared.
                for kind, seconds in found.items() if number else ():
                    seen[kind].append(1_000 * seconds)
    medians = {kind: statistics.median(found) for kind, found in seen.items()}
    return [
        Row(name="tap on approve to applied, at the Edge", value=medians["edge"], unit="ms"),
        Row(
            name="tap on approve to applied on the Edge, through a Hub",
            value=medians["small"],
            unit="ms",
            ratio=medians["small"] / medians["edge"],
            baseline="at the Edge",
        ),
        Row(
            name=f"the same, through a Hub with {TIMES} times of everything",
            value=medians["large"],
            unit="ms",
            ratio=medians["large"] / medians["small"],
            baseline="a tenth of it",
            goal="≤ 1.3",
        ),
    ]


def rows() -> list[Row]:
    """All rows of the group."""
    return asyncio.run(_measure())


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
