"""A fake model server on loopback: aimock, answering what a test tells it to.

It speaks what the agents speak (OpenAI's chat and Responses, Anthropic's messages), streams, and
breaks in the ways that real servers do.
"""

import json
import re
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, cast

from tests.agents.replies import Reply
from tools.agents import MODULES, NODE

_LISTENS: Final = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")
_START_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.02
_ANSWER_SECONDS: Final = 60.0


class FakeModel:
    """One server. `url` is its root, for Anthropic's clients; `openai_url` is for OpenAI's."""

    def __init__(self, fixtures: Sequence[Reply], log: Path, *options: str) -> None:
        self._log = log
        self._fixtures = log.with_suffix(".json")
        self._fixtures.write_text(json.dumps({"fixtures": list(fixtures)}), "utf-8")
        self._options = options
        self._port = 0

    def __enter__(self) -> Self:
        program = MODULES / "@copilotkit" / "aimock" / "dist" / "cli.js"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [NODE, program, "--port", "0", "--fixtures", self._fixtures, *self._options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self._port = self._wait_for_port()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def requests(self, path: str = "") -> list[dict[str, Any]]:
        """What was asked, in order: `path`, `headers`, `body`, `response`; of paths that end so."""
        question = cast("list[dict[str, Any]]", self._call("GET", "journal?limit=1000"))
        return [each for each in question if str(each["path"]).partition("?")[0].endswith(path)]

    def bodies(self, path: str = "") -> list[dict[str, Any]]:
        return [each["body"] for each in self.requests(path) if each["body"] is not None]

    def breaks(self, **rates: float) -> None:
        """From now on every request fails so often: `disconnectRate`, `rateLimitRate`,
        `malformedRate`, `dropRate` (0 to 1), or waits for `latencyMs`.
        """
        self._call("POST", "chaos", rates)

    def works(self) -> None:
        """Nothing fails any more, unless a reply does."""
        self._call("DELETE", "chaos")

    def _call(self, method: str, what: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}/__aimock/{what}", data, headers)
        request.method = method
        # A proxy of the machine is no way to loopback.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=_ANSWER_SECONDS) as answer:
            payloads = answer.read()
        return json.loads(payloads) if payloads else None

    def _wait_for_port(self) -> int:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if found := _LISTENS.search(self.log):
                return int(found[1])
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_LOOK_SECONDS)
                break
        raise RuntimeError(f"aimock did not start:\n{self.log}")

    def _stop(self) -> None:
        self._process.kill()
        self._process.wait(_ANSWER_SECONDS)
