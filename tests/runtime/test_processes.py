"""A program gets what it is given, where it may be, and nothing else."""

import asyncio
import os
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.runtime.processes import (
    Exit,
    FolderRefused,
    InputClosed,
    InvalidSpec,
    NotStarted,
    ProcessSpec,
    ProgramNotFound,
    child_environment,
)
from factwire.runtime.processes import process_launch as launching
from factwire.runtime.processes.process_launch import folder_inside, real_path
from factwire.runtime.processes.process_spec import PlaceChanged
from factwire.runtime.sandbox import SandboxPolicy
from tests.runtime.programs import BOUND, World, heard, open_files, run


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.argv-only")
async def test_an_argument_is_never_read_as_shell(world: World):
    hostile = [
        "; touch stolen",
        "$(touch stolen)",
        "`touch stolen`",
        "&& touch stolen",
        "'\"\\",
        "",
    ]
    spec = world.python("import sys; print(sys.argv[1:])", *hostile)
    ran = await run(world.processes(), spec)
    assert ran.text() == f"{hostile}\n"
    assert list(world.workspace.iterdir()) == []


@pytest.mark.requirement("runtime.process.argv-only")
@pytest.mark.parametrize("argv", ["rm -rf folder", (), ("",), ("a\0b",), ("x",) * 5_000])
def test_what_is_not_a_list_of_arguments_is_refused(argv: tuple[str, ...]):
    with pytest.raises(InvalidSpec):
        ProcessSpec(argv=argv, cwd=".")


@pytest.mark.parametrize("options", [{"time_limit": 0}, {"max_output": -1}])
def test_numbers_without_sense_are_refused(options: dict[str, int]):
    with pytest.raises(InvalidSpec):
        msgspec.structs.replace(ProcessSpec(argv=("true",), cwd="."), **options)


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.folder")
async def test_a_program_works_inside_an_allowed_workspace(world: World):
    inside = world.workspace / "deep" / "er"
    inside.mkdir(parents=True)
    spec = world.python("import os; print(os.getcwd())", cwd=str(inside))
    assert (await run(world.processes(), spec)).text() == f"{inside}\n"


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.folder")
@pytest.mark.parametrize("name", ["..", "../data", "link", "link/sub", "file", "missing", "/"])
async def test_a_folder_outside_is_refused_however_it_is_named(world: World, name: str):
    outside = world.folder / "outside"
    (outside / "sub").mkdir(parents=True)
    (world.workspace / "link").symlink_to(outside)
    (world.workspace / "file").write_text("")
    spec = world.python("", cwd=name if name == "/" else f"{world.workspace}/{name}")
    with pytest.raises(FolderRefused):
        await run(world.processes(), spec)


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.folder")
async def test_no_workspace_allows_no_folder(world: World):
    with pytest.raises(FolderRefused, match="none is allowed"):
        await run(world.processes(workspaces=[]), world.python(""))


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.folder")
async def test_a_sibling_with_a_longer_name_is_not_inside(world: World):
    sibling = world.folder / "workspace-of-somebody"
    sibling.mkdir()
    with pytest.raises(FolderRefused):
        await run(world.processes(), world.python("", cwd=str(sibling)))


@pytest.mark.requirement("runtime.process.folder.race")
def test_a_folder_that_is_swapped_after_the_check_is_not_the_one_that_is_used(world: World):
    """Bites: the path, looked at again, leads outside; what was opened does not."""
    inside, outside = world.workspace / "inside", world.folder / "outside"
    inside.mkdir()
    outside.mkdir()
    with folder_inside(str(inside), [world.workspace]) as folder:
        inside.rename(world.workspace / "moved")
        inside.symlink_to(outside)
        launched = launching.launch(
            [sys.executable, "-I", "-S", "-c", "open('here', 'w').close()"],
            environment={},
            folder=folder,
            takes_input=False,
        )
    os.write(launched.stdin, launching.OPEN_GATE)
    assert launched.popen.wait(BOUND) == 0
    launched.discard()
    assert (world.workspace / "moved" / "here").exists()
    assert inside.resolve() == outside
    assert list(outside.iterdir()) == []


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.folder.race")
async def test_a_folder_that_is_swapped_all_the_time_never_lets_a_program_out(world: World):
    inside, outside = world.workspace / "inside", world.folder / "outside"
    inside.mkdir()
    outside.mkdir()
    other = world.workspace / "link"
    other.symlink_to(outside)
    spare = world.workspace / "spare"
    done = asyncio.Event()

    async def swap() -> None:
        while not done.is_set():
            for old, new in ((inside, spare), (other, inside), (inside, other), (spare, inside)):
                old.rename(new)
                await asyncio.sleep(0)

    swapping = asyncio.create_task(swap())
    places: set[str] = set()
    for _ in range(20):
        try:
            spec = world.python("import os; print(os.getcwd())", cwd=str(inside))
            places.add((await run(world.processes(), spec)).text().strip())
        except FolderRefused:
            continue
    done.set()
    await swapping
    assert not any(place.startswith(str(outside)) for place in places)


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.folder")
async def test_a_folder_is_checked_where_the_system_does_not_tell_what_was_opened(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "platform", "darwin")
    ran = await run(world.processes(), world.python("import os; print(os.getcwd())"))
    assert ran.text() == f"{world.workspace}\n"
    (world.workspace / "link").symlink_to(world.data)
    with pytest.raises(FolderRefused):
        await run(world.processes(), world.python("", cwd=str(world.workspace / "link")))
    file = os.open(world.data, os.O_RDONLY)
    with pytest.raises(FolderRefused, match="was replaced while it was opened"):
        real_path(file, str(world.workspace))
    os.close(file)


@pytest.mark.requirement("runtime.process.environment")
def test_the_environment_is_an_allow_list_without_secrets():
    base = {
        "PATH": "/bin",
        "HOME": "/h",
        "LC_ALL": "C",
        "TZ": "UTC",
        "LD_PRELOAD": "evil.so",
        "SSH_AUTH_SOCK": "/run/agent",
        "AWS_SECRET_ACCESS_KEY": "k",
        "MY_AGENT_API_KEY": "mine",
        "EDITOR": "vi",
    }
    given_too = {"MODE": "fast", "db_password": "p", "GitHub_Token": "t", "OTHER_AGENT_KEY": "o"}
    assert child_environment(base, given_too, {"MY_AGENT_API_KEY"}) == {
        "PATH": "/bin",
        "HOME": "/h",
        "LC_ALL": "C",
        "TZ": "UTC",
        "MODE": "fast",
        "MY_AGENT_API_KEY": "mine",
    }


@pytest.mark.requirement("runtime.process.environment")
@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=8))
def test_no_name_that_looks_like_a_secret_passes_undeclared(base: dict[str, str]):
    shouted = {f"{name}_{word}": "x" for name in base for word in ("Key", "TOKEN", "sEcret")}
    passed = child_environment({**base, **shouted}, {})
    assert not [
        name
        for name in passed
        for word in ("KEY", "TOKEN", "SECRET", "PASSWORD")
        if word in name.upper()
    ]


@pytest.mark.parametrize("given_too", [{"A B": "x"}, {"": "x"}, {"A=B": "x"}, {"A": "\0"}])
def test_a_variable_that_no_shell_could_hold_is_refused(given_too: dict[str, str]):
    with pytest.raises(InvalidSpec):
        child_environment({}, given_too)


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.environment")
async def test_a_program_sees_the_environment_it_was_given_and_the_marker(world: World):
    processes = world.processes(
        environment={"PATH": "/usr/bin:/bin", "SECRET_X": "s", "EDITOR": "vi"}
    )
    spec = ProcessSpec(argv=("env",), cwd=str(world.workspace), env={"MODE": "fast"})
    ran = await run(processes, spec, process_id="proc_1")
    names = {line.split("=")[0] for line in ran.text().splitlines()}
    # A shell stands at the gate, and shells tell where they are.
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == {"PATH", "MODE", "FACTWIRE_PROCESS"}


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.group")
async def test_a_program_leads_its_own_session_and_group(world: World):
    code = "import os; print(os.getpid() == os.getsid(0) == os.getpgrp())"
    ran = await run(world.processes(), world.python(code))
    assert ran.text() == "True\n"


@pytest.mark.asyncio
async def test_a_program_inherits_no_file_of_ours(world: World):
    with (world.folder / "private").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        code = "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"
        ran = await run(world.processes(), world.python(code))
    assert ran.text() == "[0, 1, 2]\n"


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.exit")
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("", Exit(exit_code=0)),
        ("raise SystemExit(3)", Exit(exit_code=3)),
        ("import os; os.kill(os.getpid(), 9)", Exit(signal="SIGKILL")),
        ("import os, signal; os.kill(os.getpid(), signal.SIGRTMIN + 1)", Exit(signal="SIG35")),
    ],
)
async def test_the_end_of_a_program_is_told_as_it_was(world: World, code: str, expected: Exit):
    assert (await run(world.processes(), world.python(code))).exit == expected


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["no-such-program", "./no-such-program", "./plain"])
async def test_a_program_that_is_not_there_is_refused_and_leaves_nothing(world: World, name: str):
    (world.workspace / "plain").write_text("not a program")
    before = open_files()
    with pytest.raises(ProgramNotFound):
        await run(world.processes(), ProcessSpec(argv=(name,), cwd=str(world.workspace)))
    assert open_files() == before
    assert not (world.data / "processes").exists()


@pytest.mark.asyncio
async def test_a_program_of_the_workspace_does_not_stand_in_for_one_of_the_path(world: World):
    fake = world.workspace / "env"
    fake.write_text("#!/bin/sh\necho fake\n")
    fake.chmod(0o755)
    processes = world.processes(environment={"PATH": ".::/usr/bin:/bin"})
    ran = await run(processes, ProcessSpec(argv=("env",), cwd=str(world.workspace)))
    assert "fake" not in ran.text()


@pytest.mark.asyncio
async def test_a_start_that_the_system_refuses_is_told_and_leaves_nothing(world: World):
    before = open_files()
    with pytest.raises(NotStarted):
        await run(world.processes(), world.python("", "x" * 3_000_000))
    assert open_files() == before


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.input")
async def test_input_is_written_and_closed(world: World):
    spec = world.python("import sys; print(sys.stdin.read().upper())", stdin="pipe")
    async with asyncio.timeout(BOUND), world.processes().start(spec) as process:
        await process.write(b"one ")
        await process.write(b"two")
        await process.close_input()
        assert await heard(process, "\n") == "ONE TWO\n"
        assert await process.wait() == Exit(exit_code=0)
        with pytest.raises(InputClosed):
            await process.write(b"late")


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.input")
async def test_big_input_and_big_output_do_not_wait_for_each_other(world: World):
    data = b"x" * 3_000_000
    code = "import sys, shutil; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"
    ran = await run(world.processes(), world.python(code, stdin=data, max_output=4_000_000))
    assert ran.text().encode() == data


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.process.input")
async def test_a_program_without_input_reads_the_end_and_takes_none(world: World):
    spec = world.python("import sys; print(repr(sys.stdin.read()))")
    async with asyncio.timeout(BOUND), world.processes().start(spec) as process:
        with pytest.raises(InputClosed):
            await process.write(b"x")
        assert await heard(process, "\n") == "''\n"


@pytest.mark.asyncio
async def test_input_for_a_program_that_does_not_read_it_is_let_go(world: World):
    ran = await run(world.processes(), world.python("", stdin=b"x" * 1_000_000))
    assert ran.exit == Exit(exit_code=0)


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.approval.place")
@pytest.mark.parametrize("mode", ["off", "require"])
async def test_a_program_is_not_launched_in_another_folder_than_was_shown(world: World, mode: str):
    """The launch itself looks, after every other check was passed."""
    about = world.workspace.stat()
    shown = f"{about.st_dev}:{about.st_ino}"
    sandbox = msgspec.convert({"mode": mode}, SandboxPolicy)
    spec = world.shell("touch here", folder_id=shown, sandbox=sandbox)
    assert (await run(world.processes(), spec)).exit.exit_code == 0
    (world.workspace / "here").unlink()

    world.workspace.rename(world.folder / "before")
    world.workspace.mkdir()
    with pytest.raises(PlaceChanged) as refused:
        await run(world.processes(), spec)
    assert refused.value.code == "place_changed"
    assert list(world.workspace.iterdir()) == list((world.folder / "before").iterdir()) == []
    assert list(world.processes().records.path.glob("*")) == []
