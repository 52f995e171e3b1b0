"""A Hub in a process of its own, to be killed and started again on the same data.

It hashes quickly and counts no requests. One that is `eager` answers before it commits, and never
gets to that: what a Hub would be that acknowledges too early.
"""

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from signal import SIGKILL
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.records.hub_database import HubDatabase

_STOP_SECONDS = 60

_SERVE = """
import json, os, sys
from pathlib import Path
from factwire.hub import hub_guard, hub_startup
from factwire.hub.people import accounts
from factwire.hub.people.passwords import Passwords
from factwire.runtime.configuration import HubSettings, MailSettings, ProviderSettings
from factwire.serving.http_server import run
from factwire.serving.logs import set_up_logs
from tests.hub.hubs import quick_passwords

set_up_logs("debug", "json")
Passwords.__init__.__defaults__ = (quick_passwords()._hasher,)
hub_guard.RequestRates.spend = lambda *_: None
if len(sys.argv) > 2:
    from tests.hub.hub_process import answer_before_commit
    answer_before_commit()

def ready(hub, address):
    token = None if hub.first_admin is None else hub.first_admin.token
    print(json.dumps({"address": hub.services.url, "token": token}), flush=True)

settings = HubSettings(port=0)
if os.environ.get("TEST_RUNNERS_AT"):
    settings = HubSettings(port=int(os.environ["TEST_RUNNERS_AT"]), runners=1)
if os.environ.get("TEST_MAIL_PORT"):
    mail = MailSettings(
        host="127.0.0.1", port=int(os.environ["TEST_MAIL_PORT"]), sender="hub@example.org",
        security="none", user="hub", password_env="MAIL_PASSWORD",
    )
    absent = ProviderSettings(
        issuer="http://127.0.0.1:9", client_id="hub", client_secret_env="CORP_SECRET", title="Corp",
        private_network=True,
    )
    settings = HubSettings(port=0, mail=mail, oidc={"corp": absent})
run(hub_startup.serve(Path(sys.argv[1]), settings, ready))
"""


def answer_before_commit() -> None:
    """Have transactions end for whoever waits for them, and be rolled back in truth."""
    write = HubDatabase.write
    migrated: list[bool] = []

    @asynccontextmanager
    async def write_without_commit(self: HubDatabase) -> AsyncGenerator[AsyncConnection]:
        async with write(self) as connection:
            yield connection
            # The schema is committed, and the first link, so that there is something to lose.
            if len(migrated) > 1:
                await connection.rollback()
            migrated.append(True)

    HubDatabase.write = write_without_commit


class HubProcess:
    """Where a Hub is, the token of the link for its first admin, and its log."""

    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"the Hub did not start:\n{log.read_text()}"
        started = json.loads(line)
        self.url: str = started["address"]
        self.first_token: str | None = started["token"]
        self.process = process
        self._log = log

    def kill(self) -> None:
        """End it without any warning."""
        os.kill(self.process.pid, SIGKILL)
        self.process.wait(_STOP_SECONDS)

    def log(self) -> str:
        return self._log.read_text("utf-8")

    def failures(self) -> list[Any]:
        """What it logged as an error."""
        entries = [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]
        return [each for each in entries if each.get("level") == "error"]


@contextmanager
def hub_process(
    folder: Path,
    *,
    eager: bool = False,
    runners_at: int | None = None,
    variables: Mapping[str, str] = {},
) -> Generator[HubProcess]:
    """With `runners_at`, it listens on that port and starts a runner."""
    log = folder / "hub.log"
    added = {} if runners_at is None else {"TEST_RUNNERS_AT": str(runners_at)}
    arguments = [sys.executable, "-c", _SERVE, str(folder / "hub"), *(["eager"] if eager else [])]
    with (
        log.open("a") as errors,
        subprocess.Popen(
            arguments,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, **added, **variables},
        ) as process,
    ):
        try:
            yield HubProcess(process, log)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(_STOP_SECONDS)
