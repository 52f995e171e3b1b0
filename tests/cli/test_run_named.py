"""`factwire run module:name`: an agent that a command line names, found from where you are."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.cli_commands import Factwire
from tests.cli.cli_homes import PATIENCE, Home, thread_in

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.requirement("cli.run.named")]

MODULE = """
from tests.cli.turn_agents import echo as make

agent = make(None)


def with_model(settings):
    if settings.model != "tiny":
        raise RuntimeError(f"got {settings.model}")
    return agent
"""


@pytest.fixture(autouse=True)
def gardening_module(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    (home.folder / "cli_gardening.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "cli_gardening", raising=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("cli_gardening:agent", "hello"),
        ("cli_gardening:make", "hello"),
        ("cli_gardening:with_model", "hello", "--model", "tiny"),
    ],
)
def test_an_object_or_a_callable_of_a_module_in_the_current_folder_is_an_agent(
    factwire: Factwire, arguments: tuple[str, ...]
):
    done = factwire("run", *arguments)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("hello\n✓ completed")


def test_a_thread_goes_on_where_it_is_named_again(factwire: Factwire):
    thread = thread_in(factwire("run", "cli_gardening:agent", "one").out)
    unnamed = factwire("resume", thread, "two")
    assert (unnamed.code, "unknown_agent" in unnamed.err) == (2, True)
    again = factwire("resume", thread, "two", "--agent", "cli_gardening:agent")
    assert (again.code, again.err) == (0, "")


def test_the_installed_command_finds_it(home: Home):
    script = Path(sys.executable).parent / "factwire"
    done = subprocess.run(
        [script, "run", "cli_gardening:agent", "one"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **home.environment},
        cwd=home.folder,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cli_no_such_module:agent", "No module named 'cli_no_such_module'; modules are imported"),
        ("cli_gardening:flower", "has no attribute 'flower'"),
        ("cli_gardening:MODULE:x", "cannot be loaded"),
        (":agent", "cannot be loaded"),
    ],
)
def test_what_is_not_there_is_told_clearly(factwire: Factwire, name: str, words: str):
    done = factwire("run", name, "x")
    assert (done.code, done.out) == (2, "")
    assert "broken_entry_point" in done.err
    assert words in done.err


def test_a_configuration_does_not_make_the_current_folder_importable(
    factwire: Factwire, home: Home
):
    home.configure('[agents.mine]\nkind = "cli_gardening:agent"\n')
    done = factwire("run", "mine", "x")
    assert (done.code, "not found" in done.err) == (2, True)
