"""An Edge in a process of its own, to be killed, told to stop, and started again on the same data.

It is started from a server that has everything imported, so that a start takes little time. One
that is `eager` answers as soon as the journal has admitted facts, and its disk takes its time: what
an Edge would be that does not wait for its commits.
"""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any, Protocol, Self

import httpx

from factwire.edge.edge_context import EdgeContext
from factwire.edge.records import Records
from factwire.edge.startup import EdgeSettings, OpenEdge, serve
from factwire.journal.chunks import Chunk
from factwire.journal.sqlite import writer
from factwire.serving.http_server import run
from factwire.serving.logs import set_up_logs
from tests.edge.edges import ENDED, TOKEN, WAIT_SECONDS, configuration_in
from tests.journal.killed_writer import _answered_at_once

HEADERS = {"authorization": f"Bearer {TOKEN}"}


class EdgeProcess:
    """A running Edge; `port` is where it listens."""

    def __init__(self, process: BaseProcess, port: int) -> None:
        self._process = process
        self.port = port

    @classmethod
    def start(cls, folder: Path, *, eager: bool = False, **changes: Any) -> Self:
        """An Edge of a folder that answers requests."""
        context = get_context("forkserver")
        context.set_forkserver_preload(["tests.edge.edge_process"])
        receiver, sender = context.Pipe(duplex=False)
        values = (folder, eager, changes, sender, list(sys.path))
        process = context.Process(target=_serve, args=values, daemon=True)
        process.start()
        sender.close()
        with receiver:
            assert receiver.poll(WAIT_SECONDS), "the Edge did not start"
            return cls(process, receiver.recv())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def socket_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def kill(self) -> None:
        """End it without any warning."""
        os.kill(self.pid, SIGKILL)

    def terminate(self) -> None:
        """Tell it to stop."""
        os.kill(self.pid, SIGTERM)

    def wait(self, seconds: float = WAIT_SECONDS) -> int:
        """Its exit code, once it has ended; it must within so many seconds."""
        self._process.join(seconds)
        code = self._process.exitcode
        if code is None:
            self._process.kill()
            self._process.join()
            raise AssertionError(f"the Edge did not end within {seconds} seconds")
        self._process.close()
        return code

    async def wait_for_end(self, seconds: float = WAIT_SECONDS) -> int:
        return await asyncio.to_thread(self.wait, seconds)


class Addressed(Protocol):
    """Where an Edge is found."""

    @property
    def url(self) -> str: ...

    @property
    def socket_url(self) -> str: ...


class Client:
    """Asks whichever Edge runs now."""

    def __init__(self, http: httpx.AsyncClient, edge: Addressed | None = None) -> None:
        self.http = http
        self._edge = edge

    @property
    def edge(self) -> Addressed:
        assert self._edge is not None
        return self._edge

    def turn_to(self, edge: Addressed) -> None:
        """Ask another one from now on."""
        self._edge = edge

    async def get(self, path: str, **params: Any) -> Any:
        answer = await self.http.get(self.edge.url + path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def post(self, path: str, body: Any) -> Any:
        answer = await self.http.post(self.edge.url + path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    async def run_until(self, run_id: str, *statuses: str) -> dict[str, Any]:
        """A run once it has come to one of these, or to its end."""
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                run = await self.get(f"/v1/runs/{run_id}")
                if run["status"] in (*statuses, *ENDED):
                    return run
                await asyncio.sleep(0.01)


def new_client() -> httpx.AsyncClient:
    """Carries the token; connections of an Edge that died are of no use, so none is kept."""
    return httpx.AsyncClient(
        headers=HEADERS,
        timeout=WAIT_SECONDS,
        trust_env=False,
        verify=False,
    )


def _wait_for_nothing() -> None:
    heedful = writer.SqliteWriter._store

    def slow(self: writer.SqliteWriter, chunks: Sequence[Chunk]) -> None:
        time.sleep(0.02)
        heedful(self, chunks)

    async def return_records(self: EdgeContext, seq: int) -> Records:  # noqa: ARG001
        return self.records

    writer._admit_appends = _answered_at_once
    writer.SqliteWriter._store = slow
    EdgeContext.wait_for_records = return_records


def _serve(
    folder: Path, eager: bool, changes: dict[str, Any], pipe: Connection, path: list[str]
) -> None:
    sys.path[:] = path
    if eager:
        _wait_for_nothing()
    set_up_logs("warning")
    configuration = configuration_in(folder, **changes)
    settings = EdgeSettings(token=TOKEN, port=0)

    def ready(_: OpenEdge, address: str) -> None:
        pipe.send(int(address.rpartition(":")[2]))
        pipe.close()

    run(serve(configuration, Path(configuration.workspaces[0]), settings, ready))
