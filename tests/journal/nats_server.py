"""A real nats-server on a free port, with throw-away storage, that can be killed and started again.

It runs with `sync_interval: always`, so that an acknowledged message is on disk. Each worker of a
parallel test run has a server of its own.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from factwire.journal import Journal, open_journal

_names = count(1)


class NatsServer:
    """A server in a folder; `kill` and `start` keep its port and its data."""

    def __init__(
        self, folder: Path, *, options: str = "", limits: str = "", sync: str = "always"
    ) -> None:
        self.folder = folder
        self.port = free_port()
        self.monitor = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / "log"
        (folder / "conf").write_text(
            f'listen: "127.0.0.1:{self.port}"\n'
            f'http: "127.0.0.1:{self.monitor}"\n'
            f'jetstream {{ store_dir: "{folder / "data"}", sync_interval: {sync}\n{limits} }}\n'
            f"{options}\n"
        )

    def url(self, name: str = "", options: str = "sync=always") -> str:
        """The URL of a journal; one that nobody else uses where no name is given."""
        name = name or f"j{os.getpid()}-{next(_names)}"
        query = f"?{options}" if options else ""
        return f"nats://127.0.0.1:{self.port}/{name}{query}"

    def start(self) -> None:
        """Start the server and wait until it takes connections."""
        program = Path(sys.executable).with_name("nats-server")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [program, "-c", self.folder / "conf"], stdout=log, stderr=log
            )
        give_up = time.monotonic() + 30
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError(f"nats-server did not start:\n{self._log.read_text()[-2000:]}")
            time.sleep(0.01)

    def kill(self) -> None:
        """End the server without any warning, as a crash does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(timeout=30)
            self._process = None

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                return connection.recv(4) == b"INFO"
        except OSError:
            return False


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class NatsBackend:
    """A journal of its own on a server, for the contract and the model."""

    def __init__(self, server: NatsServer) -> None:
        self._url = server.url()

    def open(self) -> Journal:
        return open_journal(self._url)

    def reopen(self) -> Journal:
        return open_journal(self._url)


@contextmanager
def running_server(
    *, options: str = "", limits: str = "", sync: str = "always"
) -> Generator[NatsServer]:
    """A server that lives as long as the block."""
    folder = Path(tempfile.mkdtemp(prefix="factwire-nats-"))
    server = NatsServer(folder, options=options, limits=limits, sync=sync)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_cluster() -> Generator[list[NatsServer]]:
    """Three servers that replicate to each other."""
    folder = Path(tempfile.mkdtemp(prefix="factwire-nats-"))
    ports = [free_port() for _ in range(3)]
    routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)
    servers: list[NatsServer] = []
    for number, port in enumerate(ports):
        place = folder / str(number)
        place.mkdir()
        cluster = f'name: c, listen: "127.0.0.1:{port}", routes: [{routes}]'
        options = f"server_name: n{number}\ncluster {{ {cluster} }}"
        servers.append(NatsServer(place, options=options))
    try:
        for server in servers:
            server.start()
        yield servers
    finally:
        for server in servers:
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def nats_server() -> Generator[NatsServer]:
    with running_server() as server:
        yield server
