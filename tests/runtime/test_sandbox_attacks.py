"""Attacks on a sandbox. Each is run twice: without one it must do its harm, inside it must not.

Where bubblewrap cannot work these tests fail, with what the system said, rather than be skipped: a
machine that cannot prove a promise has not proven it.
"""

import asyncio
import fcntl
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from factwire.runtime import FactScope, Mint
from factwire.runtime.policy import parse_rule
from factwire.runtime.processes import Exit, ProcessSpec, ProgramNotFound, stream_process_facts
from factwire.runtime.sandbox import (
    InvalidPolicy,
    SandboxLimits,
    SandboxPolicy,
    describe_unenforced_rules,
    limits,
    probe_sandbox,
)
from tests.runtime.elsewhere import world_elsewhere
from tests.runtime.programs import BOUND, QUICK, Ran, Watched, World, heard, run, strict

pytestmark = pytest.mark.asyncio

SCOPE = FactScope(session_id="s", thread_id="t", turn_id="u")

IN_SANDBOX = [pytest.param(False, id="without"), pytest.param(True, id="inside")]


@pytest.fixture(scope="module", autouse=True)
def _works() -> None:
    found = asyncio.run(probe_sandbox())
    assert found.works, f"no sandbox works on this machine: {found.reason_code}: {found.reason}"


@pytest.fixture
def world() -> Generator[World]:
    with world_elsewhere() as made:
        yield made


@pytest.fixture(params=IN_SANDBOX)
def in_sandbox(request: pytest.FixtureRequest) -> bool:
    return request.param


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def sleeper(**environment: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["/bin/sleep", "1000"], env=environment, start_new_session=True)


async def attack(
    world: World, in_sandbox: bool, code: str, *arguments: object, **policy: Any
) -> Ran:
    chosen = strict(**policy) if in_sandbox else SandboxPolicy()
    spec = world.python(code, *map(str, arguments), sandbox=chosen)
    ran = await run(world.processes(ladder=QUICK), spec)
    assert not ran.exit.sandbox_failed, ran.text("stderr")
    return ran


@pytest.mark.requirement("runtime.sandbox.write-outside")
async def test_nothing_outside_the_workspace_can_be_written(world: World, in_sandbox: bool):
    outside = world.folder / "outside"
    outside.mkdir()
    (outside / "there").write_text("before")
    code = """
import os, sys
for act in (
    lambda: open(sys.argv[1] + "/new", "w").write("x"),
    lambda: open(sys.argv[1] + "/there", "w").write("x"),
    lambda: os.mkdir(sys.argv[1] + "/folder"),
    lambda: os.rename(sys.argv[1] + "/there", "stolen"),
    lambda: os.link(sys.argv[1] + "/new", "linked"),
    lambda: os.chmod(sys.argv[1], 0o777),
):
    try: act()
    except OSError as error: print(error)
open("inside", "w").write("x")
"""
    ran = await attack(world, in_sandbox, code, outside)
    untouched = names(outside) == ["there"] and (outside / "there").read_text() == "before"
    assert untouched == in_sandbox, ran.text()
    assert (world.workspace / "inside").exists()


@pytest.mark.requirement("runtime.sandbox.hidden")
@pytest.mark.parametrize(
    "name", [".ssh/id_ed25519", ".aws/credentials", ".netrc", ".bash_history", "notes"]
)
async def test_the_home_and_its_keys_cannot_be_read(world: World, in_sandbox: bool, name: str):
    path = world.home / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("PRIVATE")
    ran = await attack(world, in_sandbox, "import sys; print(open(sys.argv[1]).read())", path)
    assert ("PRIVATE" in ran.text()) != in_sandbox


@pytest.mark.requirement("runtime.sandbox.hidden")
@pytest.mark.parametrize("name", [".ssh/id_ed25519", ".netrc"])
async def test_keys_are_hidden_in_a_workspace_that_is_the_home(
    world: World, in_sandbox: bool, name: str
):
    path = world.home / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("PRIVATE")
    (world.home / "project.txt").write_text("WORK")
    chosen = strict() if in_sandbox else SandboxPolicy()
    code = "import sys; print(open('project.txt').read()); print(open(sys.argv[1]).read())"
    spec = world.python(code, name, cwd=str(world.home), sandbox=chosen)
    ran = await run(world.processes(workspaces=[world.home]), spec)
    assert "WORK" in ran.text()
    assert ("PRIVATE" in ran.text()) != in_sandbox


@pytest.mark.requirement("runtime.sandbox.hidden")
async def test_keys_are_hidden_where_the_home_keeps_only_a_link_to_them(
    world: World, in_sandbox: bool
):
    vault = world.folder / "vault"
    vault.mkdir()
    (vault / "id").write_text("PRIVATE")
    (world.home / ".ssh").symlink_to(vault)
    ran = await attack(
        world, in_sandbox, "import sys; print(open(sys.argv[1]).read())", vault / "id"
    )
    assert ("PRIVATE" in ran.text()) != in_sandbox


@pytest.mark.requirement("runtime.sandbox.data-hidden")
@pytest.mark.parametrize("in_workspace", [False, True])
async def test_the_data_of_factwire_can_neither_be_read_nor_written(
    world: World, in_sandbox: bool, in_workspace: bool
):
    if in_workspace:
        world.data = world.workspace / ".factwire"
        world.data.mkdir()
    (world.data / "journal.db").write_text("FACTS")
    code = """
import sys
try: print(open(sys.argv[1]).read())
except OSError: pass
try: open(sys.argv[1], "w").write("forged")
except OSError: pass
"""
    ran = await attack(world, in_sandbox, code, world.data / "journal.db")
    assert ("FACTS" in ran.text()) != in_sandbox
    assert ((world.data / "journal.db").read_text() == "FACTS") == in_sandbox


CONNECT = """
import socket, sys
if len(sys.argv) == 2:
    kind, where = socket.AF_UNIX, "\\0" + sys.argv[1]
else:
    kind, where = socket.AF_INET, (sys.argv[1], int(sys.argv[2]))
try:
    with socket.socket(kind) as s:
        s.settimeout(20)
        s.connect(where)
        print(s.recv(100).decode())
except OSError as error:
    print(error)
"""


@pytest.mark.requirement("runtime.sandbox.network")
@pytest.mark.parametrize("network", [False, True])
async def test_a_server_on_this_machine_cannot_be_reached(
    world: World, in_sandbox: bool, network: bool
):
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HELLO")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        ran = await attack(world, in_sandbox, CONNECT, host, port, network=network)
    assert ("HELLO" in ran.text()) == (network or not in_sandbox), ran.text()


@pytest.mark.requirement("runtime.sandbox.network")
async def test_a_socket_without_a_file_cannot_be_reached(world: World, in_sandbox: bool):
    name = f"factwire-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0{name}")
        listening.listen()
        listening.settimeout(BOUND)
        running = asyncio.create_task(attack(world, in_sandbox, CONNECT, name))
        if not in_sandbox:
            connection, _ = await asyncio.to_thread(listening.accept)
            with connection:
                connection.sendall(b"HELLO")
        ran = await running
    assert ("HELLO" in ran.text()) != in_sandbox


@pytest.mark.requirement("runtime.sandbox.limits")
async def test_a_fork_bomb_runs_out_of_processes_and_not_the_machine(
    world: World, in_sandbox: bool
):
    code = """
import os, signal
made = 0
try:
    for _ in range(150):
        if os.fork() == 0:
            while True: signal.pause()
        made += 1
except OSError as error:
    print(error)
print("made", made, flush=True)
"""
    ran = await attack(world, in_sandbox, code, limits=SandboxLimits(processes=40))
    made = int(ran.text().split("made ")[1])
    assert (made < 40) == in_sandbox, ran.text()
    assert made > 10


@pytest.mark.requirement("runtime.sandbox.limits")
@pytest.mark.parametrize(
    ("code", "bounds"),
    [
        ("block = bytearray(300_000_000)", SandboxLimits(memory_bytes=100_000_000)),
        ("open('big', 'wb').write(bytes(3_000_000))", SandboxLimits(file_bytes=1_000_000)),
        ("import os; files = [os.pipe() for _ in range(100)]", SandboxLimits(open_files=64)),
    ],
    ids=["memory", "file", "files"],
)
async def test_what_a_program_takes_is_bounded(
    world: World, in_sandbox: bool, code: str, bounds: SandboxLimits
):
    ran = await attack(world, in_sandbox, f"{code}\nprint('DONE')", limits=bounds)
    assert ("DONE" in ran.text()) != in_sandbox


@pytest.mark.requirement("runtime.sandbox.limits")
async def test_scratch_folders_are_private_bounded_and_work(world: World):
    code = """
import os, sys, tempfile
shown = {part for path in (os.getcwd(), sys.prefix, sys.base_prefix) for part in path.split("/")}
for place in ("/tmp", "/var/tmp", "/run", "/dev/shm"):
    assert set(os.listdir(place)) <= shown, (place, os.listdir(place))
    with tempfile.TemporaryFile(dir=place) as file: file.write(b"x")
    found = os.statvfs(place)
    print(place, found.f_blocks * found.f_frsize)
try: open("/dev/file", "w")
except OSError as error: print(error)
open("/dev/null", "w").write("x")
"""
    ran = await attack(world, True, code)
    bound = limits.SCRATCH_BYTES
    assert ran.text() == (
        f"/tmp {bound}\n/var/tmp {bound}\n/run {bound}\n/dev/shm {bound}\n"
        "[Errno 30] Read-only file system: '/dev/file'\n"
    ), ran.text("stderr")


@pytest.mark.requirement("runtime.sandbox.symlink")
async def test_a_link_out_of_the_workspace_leads_nowhere_that_can_be_changed(
    world: World, in_sandbox: bool
):
    outside = world.folder / "outside"
    outside.mkdir()
    code = """
import os, sys
os.symlink(sys.argv[1], "link")
try: open("link/file", "w").write("x")
except OSError as error: print(error)
"""
    await attack(world, in_sandbox, code, outside)
    assert (names(outside) == []) == in_sandbox


@pytest.mark.requirement("runtime.sandbox.proc")
async def test_other_processes_can_neither_be_seen_nor_used_as_a_way_out(
    world: World, in_sandbox: bool
):
    outside = world.folder / "outside"
    outside.mkdir()
    code = """
import os, sys
for name in os.listdir("/proc"):
    if not name.isdecimal(): continue
    try:
        if b"VICTIM=PRIVATE" in open(f"/proc/{name}/environ", "rb").read(): print("FOUND")
    except OSError: pass
    for way in ("root", "cwd/" + "../" * 30):
        try: open(f"/proc/{name}/{way}{sys.argv[1]}/file", "a").write("x")
        except OSError: pass
"""
    with sleeper(VICTIM="PRIVATE") as victim:
        ran = await attack(world, in_sandbox, code, outside)
        victim.kill()
    assert ("FOUND" in ran.text()) != in_sandbox
    assert (names(outside) == []) == in_sandbox


@pytest.mark.requirement("runtime.sandbox.proc")
async def test_no_setting_of_the_kernel_can_be_written(world: World, in_sandbox: bool):
    """For root these are doors: a program named there is run outside, by the kernel."""
    code = """
import glob, os
places = ["/proc/*", "/proc/sys/kernel/*", "/proc/sys/vm/*", "/proc/sys/fs/*", "/proc/irq/*/*"]
places += ["/sys/kernel/*", "/sys/power/*", "/sys/fs/cgroup/*", "/sys/fs/cgroup/*/*"]
for path in sorted({path for place in places for path in glob.glob(place)}):
    if os.path.isfile(path):
        try: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        except OSError: continue
        print("OPEN", path)
"""
    ran = await attack(world, in_sandbox, code)
    if in_sandbox or os.getuid() == 0:
        assert ("OPEN" in ran.text()) != in_sandbox, ran.text()


@pytest.mark.requirement("runtime.sandbox.kill-outside")
async def test_a_process_outside_cannot_be_killed(world: World, in_sandbox: bool):
    code = """
import os, sys
try: os.kill(int(sys.argv[1]), 9)
except OSError as error: print(error)
"""
    with sleeper() as victim:
        watched = Watched(victim.pid)
        await attack(world, in_sandbox, code, victim.pid)
        assert watched.ends(0 if in_sandbox else BOUND) != in_sandbox
        watched.close()
        victim.kill()


@pytest.mark.requirement("runtime.sandbox.setuid")
async def test_no_program_gains_a_user_by_its_file(world: World, in_sandbox: bool):
    code = "print([line for line in open('/proc/self/status') if 'NoNewPrivs' in line])"
    ran = await attack(world, in_sandbox, code)
    assert ("NoNewPrivs:\\t1" in ran.text()) == in_sandbox


@pytest.mark.requirement("runtime.sandbox.setuid")
@pytest.mark.parametrize(
    "act",
    [
        "os.chmod('door', 0o4755)",
        "os.fchmod(os.open('door', os.O_RDONLY), 0o6755)",
        "os.chmod('door', 0o2755, dir_fd=os.open('.', os.O_RDONLY))",
        "os.open('other', os.O_CREAT | os.O_WRONLY, 0o4755)",
        "os.mknod('other', 0o104755)",
    ],
)
async def test_no_file_is_left_that_lends_our_user_to_others(
    world: World, in_sandbox: bool, act: str
):
    (world.workspace / "door").write_text("#!/bin/sh\n")
    code = f"import os\nos.umask(0)\n{act}"
    await attack(world, in_sandbox, code)
    bits = [
        path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID) for path in world.workspace.iterdir()
    ]
    assert any(bits) != in_sandbox


@pytest.mark.requirement("runtime.sandbox.setuid")
async def test_no_further_namespaces_can_be_made(world: World, in_sandbox: bool):
    code = "import ctypes; print('made', ctypes.CDLL(None).unshare(0x10000000))"
    ran = await attack(world, in_sandbox, code)
    assert ("made 0" in ran.text()) != in_sandbox


@pytest.mark.requirement("runtime.sandbox.no-leftovers")
async def test_a_daemon_that_left_the_group_does_not_outlive_its_sandbox(
    world: World, in_sandbox: bool
):
    code = """
import fcntl, os, signal
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        lock = open("lock", "w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        print(os.getpid(), flush=True)
        os.write(writer, b"x")
        while True: signal.pause()
    os._exit(0)
os.read(reader, 1)
"""
    ran = await attack(world, in_sandbox, code)
    with (world.workspace / "lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_alive = False
        except BlockingIOError:
            is_alive = True
            os.kill(int(ran.text()), signal.SIGKILL)
    assert is_alive != in_sandbox


@pytest.mark.requirement("runtime.sandbox.no-leftovers")
async def test_a_program_inside_hears_sigterm_and_may_say_goodbye(world: World):
    code = (
        "import signal, sys\n"
        "signal.signal(15, lambda *_: (print('bye', flush=True), sys.exit(4)))\n"
        "print('ready', flush=True)\n"
        "while True: signal.pause()"
    )
    spec = world.python(code, sandbox=strict())
    async with asyncio.timeout(BOUND), world.processes().start(spec) as process:
        await heard(process, "ready")
        ended = await process.stop()
        assert await process.read_log("stdout", 6, 10) == b"bye\n"
    assert ended == Exit(exit_code=4, stopped="stopped", rung="terminate")


@pytest.mark.requirement("runtime.sandbox.no-leftovers")
async def test_a_program_inside_that_hears_nothing_is_killed(world: World):
    code = (
        "import signal\nsignal.signal(15, signal.SIG_IGN)\n"
        "print('ready', flush=True)\nwhile True: signal.pause()"
    )
    spec = world.python(code, sandbox=strict())
    async with asyncio.timeout(BOUND), world.processes(ladder=QUICK).start(spec) as process:
        await heard(process, "ready")
        assert (await process.stop()).rung == "kill"


@pytest.mark.fault
@pytest.mark.requirement("runtime.sandbox.no-leftovers")
async def test_a_sandbox_dies_with_the_factwire_that_made_it(world: World):
    with subprocess.Popen(  # noqa: ASYNC220 - it is killed, not waited for
        [sys.executable, str(Path(__file__).with_name("sandboxed.py")), str(world.folder)],
        stdout=subprocess.PIPE,
        text=True,
    ) as factwire:
        assert factwire.stdout is not None
        assert factwire.stdout.readline() == "ready\n"
        factwire.kill()

    def acquire() -> None:
        with (world.workspace / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)

    async with asyncio.timeout(BOUND):
        await asyncio.to_thread(acquire)
    reaped = await world.processes().reap()
    assert [each.outcome for each in reaped] in (["gone"], ["killed"])


@pytest.mark.parametrize("linked", [False, True])
async def test_a_program_that_the_sandbox_hides_is_named_before_it_is_missed(
    world: World, linked: bool
):
    program = world.home / "tool"
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o755)
    if linked:
        (world.workspace / "tool").symlink_to(program)
        program = world.workspace / "tool"
    spec = ProcessSpec(argv=(str(program),), cwd=str(world.workspace), sandbox=strict())
    with pytest.raises(ProgramNotFound, match="readable"):
        await run(world.processes(), spec)
    shown = strict(writable=(str(world.home),))
    ran = await run(world.processes(), msgspec.structs.replace(spec, sandbox=shown))
    assert ran.text() == "ran\n"


OPENING = """
import os, sys
for name in sys.argv[1:]:
    try: print(name, open(name).read())
    except OSError as error: print(name, error)
    try: open(name, "a").write("x")
    except OSError as error: print(name, error)
    try: os.rename(name, name + ".moved"); os.rename(name + ".moved", name)
    except OSError as error: print(name, error)
"""


def lay_out_denied(world: World) -> dict[str, Path]:
    """Files that rules deny, by every kind of name."""
    outside = world.folder / "outside"
    for folder in ("deep/er", "keys/sub", "config"):
        (world.workspace / folder).mkdir(parents=True)
    outside.mkdir()
    paths = {
        "plain": world.workspace / ".env",
        "deep": world.workspace / "deep/er/.env",
        "case": world.workspace / "deep/.ENV",
        "folder": world.workspace / "keys/sub/one.pem",
        "absolute": outside / "secret",
        "exact": world.workspace / "config/prod.yml",
    }
    for path in paths.values():
        path.write_text("hidden")
    (world.workspace / "linked").symlink_to(".env")
    (world.workspace / "aside").symlink_to("deep")
    (world.workspace / "real").write_text("hidden")
    (world.workspace / "config/.env").symlink_to("../real")
    os.link(paths["plain"], world.workspace / "twin")
    names = ("linked", "aside/er/.env", "twin", "real", "/proc/self/cwd/.env")
    return paths | {name: world.workspace / name for name in names}


def are_untouched(paths: dict[str, Path]) -> bool:
    own = [path for path in paths.values() if not path.is_relative_to("/proc")]
    return {path.read_text() for path in own} == {"hidden"}


DENIED = ("Read(**/.env)", "Read(keys/**)", "Read(config/prod.yml)")


@pytest.mark.requirement("runtime.sandbox.path-rules")
async def test_what_a_rule_denies_to_read_is_not_there(world: World, in_sandbox: bool):
    paths = lay_out_denied(world)
    rules = (*DENIED, f"Read({paths['absolute']})")
    ran = await attack(
        world, in_sandbox, OPENING, *paths.values(), deny=tuple(map(parse_rule, rules))
    )
    read = {name for name, path in paths.items() if f"{path} hidden" in ran.text()}
    assert read == (set() if in_sandbox else paths.keys()), ran.text()
    assert are_untouched(paths) == in_sandbox


@pytest.mark.requirement("runtime.sandbox.path-rules")
async def test_what_a_rule_denies_to_edit_can_only_be_read(world: World, in_sandbox: bool):
    paths = {name: path for name, path in lay_out_denied(world).items() if name != "absolute"}
    rules = tuple(parse_rule(rule.replace("Read", "Edit")) for rule in DENIED)
    ran = await attack(world, in_sandbox, OPENING, *paths.values(), deny=rules)
    assert {name for name, path in paths.items() if f"{path} hidden" in ran.text()} == paths.keys()
    assert are_untouched(paths) == in_sandbox, ran.text()


@pytest.mark.requirement("runtime.sandbox.path-rules")
async def test_rules_that_cover_more_than_can_be_hidden_stop_the_program(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    for number in range(4):
        (world.workspace / f"{number}.pem").write_text("")
    deny = (parse_rule("Read(**/*.pem)"),)
    for name in ("DENIED_PATHS", "DENIED_ENTRIES"):
        with monkeypatch.context() as fewer:
            fewer.setattr(limits, name, 3)
            with pytest.raises(InvalidPolicy):
                await run(world.processes(), world.python("pass", sandbox=strict(deny=deny)))


@pytest.mark.requirement("runtime.sandbox.path-rules")
async def test_the_account_names_what_rules_hide_or_do_not(world: World):
    paths = lay_out_denied(world)
    deny = (parse_rule("Read(**/.env)"), parse_rule("Edit(config/prod.yml)"))
    spec = world.python("pass", sandbox=strict(deny=deny))
    async with world.processes().start(spec) as process:
        assert process.plan is not None
        account = process.plan.account()
        await process.wait()
    hidden = {path for path in account["hidden"] if path.startswith(str(world.workspace))}
    names = (".env", "deep/er/.env", "deep/.ENV", "real", "twin")
    assert hidden == {str(world.workspace / name) for name in names}
    assert str(paths["exact"]) in account["readable"]
    off = world.python("pass", sandbox=SandboxPolicy(mode="off", deny=deny))
    facts = [
        fact
        async for fact in stream_process_facts(
            world.processes(), off, mint=Mint("test"), scope=SCOPE
        )
    ]
    [account_fact] = [fact for fact in facts if fact.event_class == "sandbox.applied"]
    assert account_fact.payload["notApplied"] == [
        {"what": "sandbox", "reason": "no sandbox is used"},
        {
            "what": "pathRules",
            "reason": describe_unenforced_rules(deny),
        },
    ]
