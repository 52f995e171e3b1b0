"""`factwire doctor` about outside agents: what is installed where, and how to have the rest."""

import json
import os
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from factwire.cli import doctor_command
from tests.cli.cli_commands import Factwire
from tests.cli.cli_homes import Home

pytestmark = [
    pytest.mark.usefixtures("home", "gardener"),
    pytest.mark.requirement("cli.doctor.agents"),
]

MODULE = """
from factwire.runtime.agents import ShellAgent
from factwire.sources.kit.program import AgentProgram

PROGRAM = AgentProgram(title="Gardener", name="gardener", install="pip install gardener")


def agent(settings):
    PROGRAM.require_path(settings.options.get("command"))
    return ShellAgent()
"""

SAYS = (
    '#!/bin/sh\necho "gardener 1.2"\necho more\ntest -z "$GARDEN_KEY" && touch "$HOME/was-here"\n'
)


@pytest.fixture
def gardener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed agent that needs a program, and an SDK that nobody has."""
    (tmp_path / "gardening.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "gardening", raising=False)
    points = {
        "factwire.agents": [
            EntryPoint(name="gardener", group="factwire.agents", value="gardening:agent"),
            EntryPoint(name="lost", group="factwire.agents", value="no_such_module:agent"),
        ],
        "factwire.wrappers": [
            EntryPoint(name="no-such-sdk", group="factwire.wrappers", value="x:wrap"),
            EntryPoint(name="pytest", group="factwire.wrappers", value="x:wrap"),
        ],
    }

    def looked_up(group: str) -> list[EntryPoint]:
        return points[group]

    monkeypatch.setattr("factwire.cli.doctor_command.entry_points", looked_up)
    monkeypatch.setattr("factwire.runtime.agents.registry.entry_points", looked_up)


def run_doctor(factwire: Factwire) -> dict[str, dict[str, Any]]:
    done = factwire("doctor", "--json")
    assert (done.code, done.err) == (0, "")
    return {each["name"]: each for each in json.loads(done.out)["findings"]}


def program(home: Home, text: str, monkeypatch: pytest.MonkeyPatch, where: str = "../bin") -> Path:
    there = (home.folder / where).resolve() / "gardener"
    there.parent.mkdir(exist_ok=True)
    there.write_text(text)
    there.chmod(0o755)
    monkeypatch.setenv("PATH", str(there.parent), prepend=":")
    return there


def test_what_is_not_installed_is_told_with_how_to_have_it_and_is_no_fault(factwire: Factwire):
    found = run_doctor(factwire)
    assert found["gardener"]["status"] == "ok"
    words = "Gardener is not installed; install it with: pip install gardener"
    assert found["gardener"]["message"] == words
    assert "agent gardener" not in found
    assert "factwire[no-such-sdk]" in found["no-such-sdk"]["message"]
    assert found["pytest"]["message"].startswith("pytest ")
    assert found["agent lost"]["status"] == "warn"


def test_a_program_says_its_version_in_a_home_that_is_thrown_away_and_without_keys(
    factwire: Factwire, home: Home, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GARDEN_KEY", "made-up")
    there = program(home, SAYS, monkeypatch)
    found = run_doctor(factwire)
    assert found["gardener"]["message"] == f"gardener 1.2, {there}"
    assert "gardener" in found["agents"]["message"].split(", ")
    assert not (home.folder.parent / "was-here").exists()


@pytest.mark.requirement("runtime.programs.planted")
@pytest.mark.parametrize("entry", ["bin", ".", ""])
def test_a_program_that_lies_in_the_workspace_is_never_run(
    entry: str, factwire: Factwire, home: Home, monkeypatch: pytest.MonkeyPatch
):
    there = program(home, "#!/bin/sh\ntouch was-run\n", monkeypatch, entry or ".")
    if entry != "bin":
        monkeypatch.setenv("PATH", f"{entry}:{os.environ['PATH'].partition(':')[2]}")
    finding = run_doctor(factwire)["gardener"]
    lines = {"bin": f"{there} is in a workspace, where agents may write; it is never run"}
    missing = "Gardener is not installed; install it with: pip install gardener"
    assert finding["message"] == lines.get(entry, missing)
    assert not list(home.folder.rglob("was-run"))


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 3\n", "#!/bin/sh\n", "#!/no/such/shell\n"])
def test_a_program_that_does_not_say_its_version_is_warned_of(
    text: str, factwire: Factwire, home: Home, monkeypatch: pytest.MonkeyPatch
):
    there = program(home, text, monkeypatch)
    finding = run_doctor(factwire)["gardener"]
    assert (finding["status"], finding["fix"]) == ("warn", f"try {there} --version by hand")


def test_a_program_that_hangs_is_waited_for_no_longer_than_that(
    factwire: Factwire, home: Home, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(doctor_command, "_SECONDS", 0.1)
    program(home, "#!/bin/sh\nexec sleep 600\n", monkeypatch)
    assert run_doctor(factwire)["gardener"]["status"] == "warn"


def test_the_program_that_a_configuration_names_is_the_one_that_is_asked(
    factwire: Factwire, home: Home, monkeypatch: pytest.MonkeyPatch
):
    program(home, "#!/bin/sh\nexit 3\n", monkeypatch)
    other = home.folder / "other"
    other.write_text(SAYS)
    other.chmod(0o755)
    named = f'[agents.gardener]\nkind = "gardener"\noptions = {{ command = "{other}" }}\n'
    user = home.folder.parent / "config" / "factwire" / "config.toml"
    user.parent.mkdir(parents=True)
    user.write_text(named)
    assert run_doctor(factwire)["gardener"]["message"] == f"gardener 1.2, {other}"
    user.unlink()
    home.configure(named)
    local = f"{other}, found by way of this folder; not started"
    assert run_doctor(factwire)["gardener"]["message"] == local
