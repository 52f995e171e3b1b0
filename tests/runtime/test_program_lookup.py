"""A program that an agent has put on PATH: never taken for Factwire's own, never run unasked."""

import asyncio
import os
import tarfile
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from factwire.runtime import Runtime
from factwire.runtime.policy import Policy, PolicyRequest, evaluate, follow_links
from factwire.runtime.program_lookup import find_own_program, note_agent_folders
from factwire.runtime.sandbox import SandboxPolicy, probe_sandbox
from factwire.runtime.sandbox.workspace_git import NoRepository, borrow
from factwire.runtime.toolbox import run_tool
from factwire.sources.kit.program import AgentProgram
from tests.runtime.agents import decide_shown, open_action
from tests.runtime.toolboxes import Kept, use

ALL = Policy.of(allow=["Bash", "Bash(tool *)", "Bash(tool)"])
SYSTEM = os.pathsep.join(("/usr/bin", "/bin"))


def plant(folder: Path, name: str = "tool", mark: Path | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\necho planted >> '{mark or folder / 'was-run'}'\n")
    file.chmod(0o755)
    return folder


def _plant_link(workspace: Path) -> Path:
    (workspace.parent / "link").symlink_to(plant(workspace / "real"))
    return workspace.parent / "link"


def _link_program(workspace: Path) -> Path:
    (elsewhere := workspace.parent / "elsewhere").mkdir()
    (elsewhere / "tool").symlink_to(plant(workspace / "deep") / "tool")
    return elsewhere


def _link_system_program(workspace: Path) -> Path:
    (folder := workspace / ".venv" / "bin").mkdir(parents=True)
    (folder / "tool").symlink_to("/bin/true")
    return folder


PLACES: dict[str, Callable[[Path], Path]] = {
    "the workspace": plant,
    "a folder in it": lambda workspace: plant(workspace / "bin"),
    "a link to it": _plant_link,
    "a program that is a link": _link_program,
    "a link in it to a program of the system": _link_system_program,
    "steps back into it": lambda workspace: plant(workspace / "x") / ".." / "x",
}
LINES: tuple[str | tuple[str, ...], ...] = (
    *("tool", "tool x --y", "true && tool", "true; tool", "true | tool", "( tool )"),
    *("env tool", "env -i tool x", "nice tool", "nice -n 5 tool", "timeout 5 tool", "nohup tool"),
    *("command tool", "exec tool", "time tool", "! tool", "xargs tool", "sh -c tool", "'tool'"),
    *("t''ool", "to\\ol", '"tool" x', "$'tool'", "echo $(tool)", "LANG=C tool", "stdbuf -o0 tool"),
    *(("tool",), ("tool", "x"), ("env", "tool"), ("sh", "-c", "tool")),
)


@pytest.mark.requirement("runtime.programs.planted")
@pytest.mark.parametrize("place", PLACES)
def test_no_rule_allows_a_name_that_leads_into_the_workspace(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (workspace := tmp_path / "workspace").mkdir()
    monkeypatch.setenv("PATH", f"{PLACES[place](workspace)}:{SYSTEM}")
    allowed: list[object] = []
    for line in LINES:
        request = PolicyRequest(tool="Bash", workspace=str(workspace), command=line)
        if evaluate(ALL, follow_links(request)).decision == "allow":
            allowed.append(line)
    assert allowed == []
    request = PolicyRequest(tool="Bash", workspace=str(workspace), command="tool x")
    found = evaluate(ALL, follow_links(request))
    assert (found.decision, found.reason_code) == ("ask", "planted_program")
    # It bites: a rule allows what nobody has looked up, and other programs as before.
    assert evaluate(ALL, request).decision == "allow"
    other = follow_links(PolicyRequest(tool="Bash", workspace=str(workspace), command="true"))
    assert evaluate(ALL, other).decision == "allow"


@pytest.mark.requirement("runtime.programs.planted")
def test_programs_of_our_own_are_never_taken_from_a_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (workspace := tmp_path / "workspace").mkdir()
    (link := tmp_path / "link").symlink_to(workspace)
    note_agent_folders((workspace,))
    for folder, name in product((workspace, workspace / "bin"), ("git", "bwrap", "tool")):
        plant(folder, name)
    monkeypatch.chdir(workspace)
    agent = AgentProgram(title="Tool", name="tool", install="")

    async def look() -> None:
        async with borrow(workspace):
            pass

    for entry in ("", ".", "bin", workspace, workspace / "bin", link, f"{link}/bin/../bin"):
        monkeypatch.setenv("PATH", f"{entry}:{SYSTEM}")
        assert find_own_program("git") == "/usr/bin/git"
        assert agent.find_path() is None
        with pytest.raises(NoRepository):
            asyncio.run(look())
    # As slow as a look at a sandbox is, so at the last entry alone.
    assert asyncio.run(probe_sandbox()).program in (None, "/usr/bin/bwrap")
    assert not list(tmp_path.rglob("was-run"))
    # Whoever names a file means this file.
    assert agent.find_path(str(workspace / "tool")) == str(workspace / "tool")


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.programs.planted")
@pytest.mark.parametrize("entry", ["", ".", "bin"])
async def test_a_relative_entry_of_path_leads_a_command_nowhere(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", f"{entry}:{SYSTEM}")
    kept = Kept(tmp_path, sandbox=SandboxPolicy(mode="off"))
    for folder in (kept.workspace, kept.workspace / "bin"):
        plant(folder, "uname", tmp_path / "was-run")
    used = await use(kept, ("run", {"command": "uname"}), ("run", {"command": ["uname"]}))
    assert [outcome.ok for outcome in used.outcomes] == [True, True]
    assert not (tmp_path / "was-run").exists()


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.programs.planted")
async def test_a_program_that_is_planted_while_somebody_decides_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", f"{tmp_path / 'workspace' / 'bin'}:{SYSTEM}")
    kept = Kept(tmp_path, Policy.of(), sandbox=SandboxPolicy(mode="off"))

    async def allow_after_planting(runtime: Runtime) -> None:
        action = await open_action(runtime)
        plant(kept.workspace / "bin", "uname", tmp_path / "was-run")
        await decide_shown(runtime, "thread", action, "allow", by="lena")

    used = await use(kept, ("run", {"command": "uname"}), meanwhile=allow_after_planting)
    assert used.outcome.category == "place_changed"
    assert not (tmp_path / "was-run").exists()


STARTED = {"gzip": "tar xzf x.tgz", "grep": "egrep a sample", "echo": "xargs < sample"}
"""A program → a line of known programs that start it, each by its name."""


def knows_no_program(_: PolicyRequest) -> bool:
    return False


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.programs.planted")
@pytest.mark.parametrize("guarded", [True, False])
async def test_known_programs_start_nothing_that_is_planted(
    *, guarded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", f"{tmp_path / 'workspace' / 'bin'}:{SYSTEM}")
    if not guarded:
        monkeypatch.setattr(run_tool, "runs_known_programs", knows_no_program)
    kept = Kept(tmp_path, Policy.of("dontAsk", allow=["Bash"]), sandbox=SandboxPolicy(mode="off"))
    (kept.workspace / "sample").write_text("a\n")
    with tarfile.open(kept.workspace / "x.tgz", "w:gz") as packed:
        packed.add(kept.workspace / "sample", "sample")
    for name in STARTED:
        plant(kept.workspace / "bin", name, tmp_path / f"ran-{name}")
    await use(kept, *(("run", {"command": line}) for line in STARTED.values()))
    ran = {name for name in STARTED if (tmp_path / f"ran-{name}").exists()}
    assert ran == (set() if guarded else STARTED.keys())


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.programs.planted")
async def test_a_program_of_which_nobody_knows_what_it_runs_finds_those_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", f"{tmp_path / 'workspace' / 'bin'}:{SYSTEM}")
    rule = "Bash(./build.sh)"
    kept = Kept(tmp_path, Policy.of("dontAsk", allow=[rule]), sandbox=SandboxPolicy(mode="off"))
    plant(kept.workspace / "bin", "tool", tmp_path / "ran")
    (kept.workspace / "build.sh").write_text("#!/bin/sh\ntool\n")
    (kept.workspace / "build.sh").chmod(0o755)
    assert (await use(kept, ("run", {"command": "./build.sh"}))).outcome.ok
    assert (tmp_path / "ran").exists()
