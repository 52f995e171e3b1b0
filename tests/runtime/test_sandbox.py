"""What a sandbox is asked for, what this machine can do, and the exact account of what held."""

import asyncio
import struct
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import Intake, inspect_fact, is_valid
from factwire.runtime import FactScope, Mint
from factwire.runtime.processes import stream_process_facts
from factwire.runtime.sandbox import (
    InvalidPolicy,
    Sandbox,
    SandboxLimits,
    SandboxPolicy,
    SandboxRefused,
    probe_sandbox,
    sandbox,
)
from factwire.runtime.sandbox.bubblewrap import (
    BubblewrapOptions,
    Features,
    Mount,
    MountKind,
    build_bubblewrap_argv,
    order_mounts,
    system_call_filter,
)
from factwire.runtime.sandbox.sandbox import SandboxPlan
from factwire.runtime.sandbox.sandbox_policy import build_layout
from tests.runtime.elsewhere import world_elsewhere
from tests.runtime.programs import BOUND, World, run, strict

EPERM, ENOSYS, ALLOW = 0x00050001, 0x00050026, 0x7FFF0000
X86, ARM = 0xC000003E, 0xC00000B7


@pytest.fixture
def world() -> Generator[World]:
    with world_elsewhere() as made:
        yield made


def fake_bubblewrap(folder: Path, script: str) -> str:
    folder.mkdir(exist_ok=True)
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(folder)


@pytest.mark.requirement("runtime.sandbox.probe")
def test_the_command_line_states_every_part():
    wanted = BubblewrapOptions(
        program="/bin/bwrap",
        network=False,
        features=Features(),
        mounts=(
            Mount("write", "/home/me/code"),
            Mount("empty", "/home/me"),
            Mount("no-file", "/etc/shadow"),
        ),
        scratch_bytes=100,
        folder="/home/me/code/sub",
        status_file=5,
        seccomp_file=6,
        process_limit=("/usr/bin/prlimit", 7),
    )
    assert " ".join(build_bubblewrap_argv(wanted)) == (
        "/bin/bwrap --unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup"
        " --unshare-net --disable-userns --cap-drop ALL --die-with-parent"
        " --ro-bind / / --dev /dev --proc /proc --remount-ro /proc"
        " --size 100 --tmpfs /dev/shm --remount-ro /dev"
        " --ro-bind /dev/null /etc/shadow --size 100 --tmpfs /home/me"
        " --bind /home/me/code /home/me/code --chdir /home/me/code/sub"
        " --json-status-fd 5 --seccomp 6 -- /usr/bin/prlimit --nproc=7:7 --"
    )
    fewer = msgspec.structs.replace(
        wanted,
        network=True,
        features=Features(cgroup_namespace=False, no_nested_namespaces=False),
        mounts=(Mount("read", "/opt"),),
        folder=None,
        status_file=None,
        seccomp_file=None,
        process_limit=None,
    )
    assert " ".join(build_bubblewrap_argv(fewer)) == (
        "/bin/bwrap --unshare-user --unshare-pid --unshare-ipc --unshare-uts --cap-drop ALL"
        " --die-with-parent --ro-bind / / --dev /dev --proc /proc --remount-ro /proc"
        " --size 100 --tmpfs /dev/shm --remount-ro /dev"
        " --ro-bind /opt /opt --"
    )


paths = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(
    lambda parts: "/" + "/".join(parts)
)
kinds: st.SearchStrategy[MountKind] = st.sampled_from(["empty", "no-file", "read", "write"])


@given(st.lists(st.builds(Mount, kinds, paths)))
def test_an_outer_mount_never_covers_an_inner_one(mounts: list[Mount]):
    made = order_mounts(mounts)
    assert set(made) == set(mounts)
    for at, mount in enumerate(made):
        assert not any(mount.path.startswith(f"{later.path}/") for later in made[at:])


@pytest.mark.requirement("runtime.sandbox.policy")
def test_what_is_hidden_cannot_be_worked_in(world: World):
    (world.home / ".ssh").mkdir()
    for policy, workspace in (
        (SandboxPolicy(), world.home / ".ssh"),
        (SandboxPolicy(hidden=(str(world.workspace),)), world.workspace),
        (SandboxPolicy(writable=(str(world.data),)), world.workspace),
        (SandboxPolicy(readable=(str(world.data),)), world.workspace),
    ):
        with pytest.raises(InvalidPolicy):
            build_layout(policy, workspace=workspace, home=world.home, data=[world.data])


def test_a_layout_mounts_only_what_is_there_and_not_what_is_covered_anyway(world: World):
    (world.home / ".ssh").mkdir()
    (world.home / "tools").mkdir()
    (world.home / "tools" / ".cache").mkdir()
    policy = SandboxPolicy(
        readable=(str(world.home / "tools"), str(world.home / "missing")),
        hidden=(str(world.home / "tools" / ".cache"),),
        network=True,
    )
    layout = build_layout(policy, workspace=world.workspace, home=world.home, data=[world.data])
    mounts = {(mount.kind, mount.path) for mount in layout.mounts}
    assert str(world.home / ".ssh") in layout.hidden
    assert ("empty", str(world.home / ".ssh")) not in mounts
    assert ("empty", str(world.home / "tools" / ".cache")) in mounts
    assert ("read", str(world.home / "tools")) in mounts
    assert ("write", str(world.workspace)) in mounts
    assert not any("missing" in path for _, path in mounts)


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.sandbox.probe")
async def test_a_sandbox_works_on_the_machine_that_proves_it():
    found = await probe_sandbox()
    assert found.works, f"{found.reason_code}: {found.reason}"
    assert found.version
    assert found.program.startswith("/")


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.sandbox.probe")
@pytest.mark.parametrize(
    ("script", "reason_code", "reason"),
    [
        (None, "bubblewrap_missing", "install the package bubblewrap"),
        (
            "echo bwrap: setting up uid map: Permission denied >&2; exit 1",
            "namespaces_refused",
            "uid map",
        ),
        ("exit 7", "namespaces_refused", "exit 7"),
    ],
)
async def test_a_sandbox_that_does_not_work_says_why(
    tmp_path: Path, script: str | None, reason_code: str, reason: str
):
    path = str(tmp_path) if script is None else fake_bubblewrap(tmp_path / "bin", script)
    found = await probe_sandbox(path)
    assert (found.works, found.reason_code) == (False, reason_code)
    assert reason in found.reason


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.sandbox.probe")
async def test_a_part_that_does_not_work_is_left_out_and_named(tmp_path: Path):
    script = 'case "$*" in *--disable-userns*) echo Unknown option >&2; exit 1;; esac'
    found = await probe_sandbox(fake_bubblewrap(tmp_path / "bin", script))
    assert found.works
    assert found.features == Features(no_nested_namespaces=False)
    assert found.missing == {"no_nested_namespaces": "Unknown option"}


@pytest.mark.asyncio
async def test_another_system_or_machine_has_no_sandbox_or_no_filter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = fake_bubblewrap(tmp_path / "bin", "exit 0")
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("platform.machine", lambda: "riscv64")
        found = await probe_sandbox(path)
        assert found.missing == {
            "system_call_filter": "no system call filter is available for riscv64"
        }
    monkeypatch.setattr("sys.platform", "darwin")
    assert (await probe_sandbox(path)).reason_code == "not_linux"


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.sandbox.policy")
async def test_each_mode_does_what_it_says(world: World):
    none = Sandbox(home=world.home, data=[], path=str(world.folder))

    async def plan(mode: str):
        policy = msgspec.convert({"mode": mode}, SandboxPolicy)
        return await none.plan(policy, workspace=world.workspace, folder=world.workspace, name="x")

    assert await plan("off") is None
    assert await plan("prefer") is None
    with pytest.raises(SandboxRefused) as refused:
        await plan("require")
    assert (refused.value.code, refused.value.reason_code) == (
        "sandbox_refused",
        "bubblewrap_missing",
    )


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.sandbox.policy")
async def test_a_sandbox_that_never_reached_the_program_has_failed(world: World):
    """Bubblewrap says when it did; one that works in a trial and then does not, says nothing."""
    path = fake_bubblewrap(world.folder / "bin", "exit 0")
    broken = Sandbox(home=world.home, data=[world.data], path=path)
    spec = world.shell("touch ran", sandbox=strict())
    facts = stream_process_facts(
        world.processes(sandbox=broken), spec, mint=Mint("r"), scope=FactScope(thread_id="t")
    )
    last = [fact async for fact in facts][-1]
    assert last.event_class == "process.failed"
    assert last.payload["failureCategory"] == "sandbox_failed"
    assert list(world.workspace.iterdir()) == []


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.sandbox.account")
async def test_the_account_says_exactly_what_held(world: World):
    limits = SandboxLimits(processes=50, memory_bytes=10**9, file_bytes=10**8, open_files=100)
    policy = strict(network=True, limits=limits)
    spec = world.shell("true", sandbox=policy)
    facts = [
        fact
        async for fact in stream_process_facts(
            world.processes(), spec, mint=Mint("r"), scope=FactScope(thread_id="t", turn_id="u")
        )
    ]
    assert facts[0].event_class == "sandbox.applied"
    numbered = msgspec.structs.replace(facts[0], sequence=1)
    assert is_valid(inspect_fact(numbered))
    assert Intake(mode="off").feed(numbered).fact == numbered
    account = dict(facts[0].payload)
    found = await probe_sandbox()
    assert str(world.data) in account["hidden"]
    assert str(world.home) in account["hidden"]
    assert {name: bound["value"] for name, bound in account["limits"].items()} == {
        "processes": 50,
        "memory": 10**9,
        "fileBytes": 10**8,
        "openFiles": 100,
        "coreDumps": 0,
    }
    del account["hidden"], account["limits"], account["readable"]
    assert account == {
        "mode": "require",
        "decision": "applied",
        "tool": "bubblewrap",
        "toolVersion": found.version,
        "network": "shared",
        "root": "read-only",
        "writable": [str(world.workspace)],
        "namespaces": ["user", "pid", "ipc", "uts", "cgroup"],
        "capabilities": "none",
        "newSession": True,
        "diesWithParent": True,
        "nestedNamespaces": False,
        "systemCallFilter": True,
        "notApplied": [],
    }


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.sandbox.account")
async def test_a_limit_that_could_not_be_set_is_in_the_account(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sandbox, "_MOUNT", world.folder)
    monkeypatch.setattr(sandbox.make_cgroups, "__kwdefaults__", {"mount": world.folder})
    monkeypatch.setattr("os.getuid", lambda: 0)
    async with asyncio.timeout(BOUND):
        async with world.processes().start(world.shell("true", sandbox=strict())) as process:
            assert process.plan is not None
            account = process.plan.account()
            await process.wait()
    assert [missing["what"] for missing in account["notApplied"]] == ["processes"]
    assert account["limits"]["memory"]["by"] == "rlimit"
    assert "processes" not in account["limits"]


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.sandbox.account")
async def test_a_group_that_cannot_be_joined_is_no_bound(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    made = sandbox.Cgroup(path=str(world.folder / "none"), controllers=("pids",))
    bounds: dict[sandbox.Controller, str] = {}

    def make(_name: str, _bounds: dict[sandbox.Controller, int]):
        return [made], bounds

    monkeypatch.setattr("factwire.runtime.sandbox.sandbox.make_cgroups", make)
    monkeypatch.setattr("os.getuid", lambda: 0)
    ran = world.processes().start(world.shell("true", sandbox=strict()))
    async with asyncio.timeout(BOUND), ran as process:
        assert process.plan is not None
        account = process.plan.account()
    assert account["notApplied"] == [{"what": "processes", "reason": "No such file or directory"}]


@pytest.mark.asyncio
async def test_a_user_who_is_not_root_is_bounded_by_the_count_of_processes(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sandbox.make_cgroups, "__kwdefaults__", {"mount": world.folder})
    monkeypatch.setattr("os.getuid", lambda: 1000)
    spec = world.shell("ulimit -a", sandbox=strict(limits=SandboxLimits(processes=77)))
    ran = await run(world.processes(), spec)
    assert " 77\n" in ran.text()


def test_groups_of_either_version_are_made_and_removed(tmp_path: Path):
    own_old, own_new = sandbox._own_groups("pids")
    for place in (tmp_path / "pids" / own_old, tmp_path / own_new):
        place.mkdir(parents=True, exist_ok=True)
    made, missing = sandbox.make_cgroups("one", {"pids": 5, "memory": 9}, mount=tmp_path)
    assert (made, set(missing)) == ([], {"pids", "memory"})
    assert sandbox.remove_cgroup(str(tmp_path / "absent"))
    (tmp_path / "busy").mkdir()
    (tmp_path / "busy" / "child").mkdir()
    assert not sandbox.remove_cgroup(str(tmp_path / "busy"))


def verdict(program: bytes, machine: int, number: int, *arguments: int) -> int:
    """What the kernel would answer: the filter, carried out."""
    data = struct.pack("<IIQ6Q", number, machine, 0, *(*arguments, *([0] * (6 - len(arguments)))))
    code = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    value, at = 0, 0
    while True:
        kind, yes, no, operand = code[at]
        at += 1
        match kind:
            case 0x20:
                (value,) = struct.unpack_from("<I", data, operand)
            case 0x15:
                at += yes if value == operand else no
            case 0x35:
                at += yes if value >= operand else no
            case 0x45:
                at += yes if value & operand else no
            case _:
                return operand


@pytest.mark.requirement("runtime.sandbox.setuid")
@pytest.mark.parametrize(
    ("machine", "code", "call", "expected"),
    [
        ("x86_64", X86, (90, 0, 0o4755), EPERM),
        ("x86_64", X86, (90, 0, 0o2755), EPERM),
        ("x86_64", X86, (90, 0, 0o1777), ALLOW),
        ("x86_64", X86, (268, 0, 0, 0o4000), EPERM),
        ("x86_64", X86, (452, 0, 0, 0o4000), EPERM),
        ("x86_64", X86, (257, 0, 0, 0o100, 0o4644), EPERM),
        ("x86_64", X86, (257, 0, 0, 0, 0o4644), ALLOW),
        ("x86_64", X86, (2, 0, 0o101, 0o644), ALLOW),
        ("x86_64", X86, (437,), ENOSYS),
        ("x86_64", X86, (425,), ENOSYS),
        ("x86_64", X86, (250,), ENOSYS),
        ("x86_64", X86, (16, 0, 0x5412), EPERM),
        ("x86_64", X86, (16, 0, 0x541C), EPERM),
        ("x86_64", X86, (16, 0, 0x5413), ALLOW),
        ("x86_64", X86, (0x40000000 + 90, 0, 0o4755), ENOSYS),
        ("x86_64", 0x40000003, (15, 0, 0o4755), ENOSYS),
        ("x86_64", X86, (0,), ALLOW),
        ("aarch64", ARM, (53, 0, 0, 0o4755), EPERM),
        ("aarch64", ARM, (56, 0, 0, 0o100, 0o6755), EPERM),
        ("aarch64", ARM, (56, 0, 0, 0o100, 0o755), ALLOW),
        ("aarch64", ARM, (219,), ENOSYS),
    ],
)
def test_the_filter_of_system_calls_lets_no_bit_through(
    machine: str, code: int, call: tuple[int, ...], expected: int
):
    program = system_call_filter(machine)
    assert program is not None
    assert verdict(program, code, *call) == expected


def test_an_unknown_machine_has_no_filter():
    assert system_call_filter("pdp11") is None


class _SwappingSandbox(Sandbox):
    """Puts another folder in the place of the workspace once the plan for it is made."""

    async def plan(self, policy: SandboxPolicy, **options: Any) -> SandboxPlan | None:
        plan = await super().plan(policy, **options)
        _swap_folder(options["workspace"])
        return plan


def _swap_folder(folder: Path) -> None:
    folder.rename(folder.with_name("before"))
    folder.mkdir()


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.folder.race")
@pytest.mark.parametrize("inner", [".", "inner"])
async def test_a_workspace_that_is_swapped_after_the_check_is_not_the_one_that_is_mounted(
    world: World, inner: str
):
    (world.workspace / "inner").mkdir()
    swapping = _SwappingSandbox(home=world.home, data=[world.data])
    spec = world.shell(
        "touch here; ls /proc/self/fd", cwd=str(world.workspace / inner), sandbox=strict()
    )
    ran = await run(world.processes(sandbox=swapping), spec)
    assert ran.exit.exit_code == 0
    assert ran.text().split() == ["0", "1", "2", "3"]
    assert (world.folder / "before" / inner / "here").exists()
    assert list(world.workspace.iterdir()) == []


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.sandbox.probe")
async def test_an_older_bubblewrap_mounts_by_path_and_this_is_named(tmp_path: Path):
    script = 'case "$*" in *--bind-fd*) echo Unknown option --bind-fd >&2; exit 1;; esac'
    found = await probe_sandbox(fake_bubblewrap(tmp_path / "bin", script))
    assert found.works
    assert found.features == Features(bind_open_folder=False)
    assert found.missing == {"bind_open_folder": "Unknown option --bind-fd"}
