"""`factwire config`: every value and its source, never a secret."""

import json
from pathlib import Path

import pytest

from factwire.runtime.configuration import SETTINGS
from tests.cli.cli_commands import Factwire
from tests.runtime.trusted_files import write_trusted


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [setting.variable for setting in SETTINGS.values()]:
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.mark.requirement("cli.config")
def test_every_setting_is_shown_with_its_source(
    factwire: Factwire, monkeypatch: pytest.MonkeyPatch
):
    file = write_trusted(factwire.folder / "factwire.toml", '[policy]\ndeny = ["Bash(rm *)"]\n')
    monkeypatch.setenv("FACTWIRE_LIMITS_CONCURRENT_RUNS", "7")
    done = factwire("config", "--in", factwire.folder, "--set", "policy.mode=plan")
    assert (done.code, done.err) == (0, "")
    shown = {line.split()[0]: " ".join(line.split()[1:]) for line in done.out.splitlines()}
    assert list(shown) == list(SETTINGS)
    assert shown["policy.deny"] == f'["Bash(rm *)"] project: {file}:2'
    assert shown["policy.mode"] == "plan flag: --set policy.mode"
    assert shown["limits.concurrent_runs"] == "7 environment: FACTWIRE_LIMITS_CONCURRENT_RUNS"
    assert shown["agent"] == "- default"


@pytest.mark.requirement("cli.config")
def test_the_same_as_json(factwire: Factwire):
    write_trusted(factwire.folder / "factwire.toml", 'agent = "x"\n')
    done = factwire("config", "--json", "--in", factwire.folder)
    assert (done.code, done.err) == (0, "")
    settings = {row["key"]: row for row in json.loads(done.out)["settings"]}
    assert settings["agent"] == {
        "key": "agent",
        "value": "x",
        "source": "project",
        "where": f"{factwire.folder}/factwire.toml:1",
        "sentence": "The agent to use when none is named.",
    }
    assert settings["limits.concurrent_runs"]["value"] == 5


@pytest.mark.requirement("cli.config")
def test_secrets_are_not_shown_in_either_form(factwire: Factwire):
    write_trusted(
        factwire.folder / "factwire.toml", 'journal = "postgres://me:hunter2-secret@db/x"\n'
    )
    for arguments in ([], ["--json"]):
        done = factwire("config", "--in", factwire.folder, *arguments)
        assert done.code == 0
        assert "hunter2" not in done.out + done.err


@pytest.mark.requirement("cli.config")
@pytest.mark.requirement("cli.errors.no-traceback")
def test_every_problem_is_one_line(factwire: Factwire):
    file = write_trusted(
        factwire.folder / "factwire.toml", "agnt = 1\nlimits.concurrent_runs = 0\n"
    )
    done = factwire("config", "--in", factwire.folder)
    assert (done.code, done.out) == (1, "")
    first, second = done.err.splitlines()
    assert first.startswith(f"error: {file}:1: agnt expected a setting, got an unknown key")
    assert first.endswith("did you mean agent?")
    assert second.startswith(
        f"error: {file}:2: limits.concurrent_runs expected a whole number from 1 to"
    )
    assert second.endswith("got a whole number 0")


@pytest.mark.requirement("cli.config")
def test_problems_as_json(factwire: Factwire):
    file = write_trusted(factwire.folder / "factwire.toml", "agnt = 1\n")
    done = factwire("config", "--json", "--in", factwire.folder)
    assert (done.code, done.err) == (1, "")
    assert json.loads(done.out) == {
        "error": {
            "code": "configuration_invalid",
            "problems": [
                {
                    "code": "unknown_key",
                    "where": f"{file}:1",
                    "key": "agnt",
                    "expected": "a setting",
                    "got": "an unknown key",
                    "hint": "did you mean agent?",
                }
            ],
        }
    }


@pytest.mark.requirement("cli.config")
@pytest.mark.requirement("cli.errors.no-traceback")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "agent"], "--set expects KEY=VALUE, got 'agent'"),
        (["--in", "no/such/folder"], "folder not found: no/such/folder"),
    ],
)
def test_what_cannot_be_done_is_said(factwire: Factwire, arguments: list[str], words: str):
    done = factwire("config", *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


@pytest.mark.requirement("cli.config")
@pytest.mark.requirement("cli.errors.harmless-text")
def test_a_value_cannot_steer_the_terminal(factwire: Factwire):
    write_trusted(
        factwire.folder / "factwire.toml",
        '[agents."a\\u001b[2J"]\nkind = "x"\noptions = { a = "\\u001b[2J\\u202e" }\n',
    )
    done = factwire("config", "--in", factwire.folder)
    assert done.code == 0
    assert all(line.isprintable() for line in done.out.splitlines())
