"""A real Edge in a process of its own, with a log that can be read afterwards."""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_STOP_SECONDS = 60

_SERVE = """
import asyncio, sys
from pathlib import Path
from factwire.serving.logs import set_up_logs
from factwire.edge.startup import EdgeSettings, serve
from tests.edge.edges import TOKEN, configuration_in
from factwire.serving import http_server as server
from factwire.serving import guard
set_up_logs("info")
if len(sys.argv) > 2:
    server.FactwireHttpProtocol.header_seconds = float(sys.argv[2])
    server.IDLE_SECONDS = guard.BODY_SECONDS = float(sys.argv[2])
conf = configuration_in(Path(sys.argv[1]))
def ready(edge, url):
    print(url, flush=True)
asyncio.run(serve(conf, Path(conf.workspaces[0]), EdgeSettings(port=0, token=TOKEN), ready))
"""


class ServedEdge:
    """Where an Edge is, and what it wrote to its log."""

    def __init__(self, url: str, process: subprocess.Popen[str], log: Path) -> None:
        self.url = url
        self.process = process
        self._log = log

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def log(self) -> list[dict[str, Any]]:
        """Every line of the log; one that is not JSON fails the test that reads it."""
        return [json.loads(line) for line in self._log.read_text("utf-8").splitlines()]

    def failures(self) -> list[dict[str, Any]]:
        """What no request should ever lead to."""
        return [
            line
            for line in self.log()
            if line["level"] in ("error", "critical") or "exception" in line
        ]


@contextmanager
def served_edge(folder: Path, *, seconds: float | None = None) -> Generator[ServedEdge]:
    """Serve until the test is done with it; with `seconds`, deadlines of connections are so."""
    values = [] if seconds is None else [str(seconds)]
    log = folder / "edge.log"
    with log.open("wb") as writing:
        process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, str(folder), *values],
            stdout=subprocess.PIPE,
            stderr=writing,
            text=True,
        )
    with process:
        try:
            assert process.stdout is not None
            yield ServedEdge(process.stdout.readline().strip(), process, log)
        finally:
            process.terminate()
            process.wait(_STOP_SECONDS)
