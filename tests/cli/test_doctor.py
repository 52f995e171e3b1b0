"""`factwire doctor`: what is well, what is not, and what to do about it."""

import json
from typing import Any

import pytest

from factwire.cli.doctor_command import judge_sandbox
from factwire.runtime.sandbox import Probe
from tests.cli.cli_commands import Factwire
from tests.cli.cli_homes import Home

pytestmark = pytest.mark.usefixtures("home")


def run_doctor(factwire: Factwire, *arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    done = factwire("doctor", "--json", *arguments)
    report = json.loads(done.out)
    assert (report["ok"], done.err) == (done.code == 0, "")
    return done.code, {each["name"]: each for each in report["findings"]}


@pytest.mark.requirement("cli.doctor")
def test_a_fresh_machine_is_well_and_nothing_is_made(factwire: Factwire, home: Home):
    code, found = run_doctor(factwire, "--workspace", str(home.folder))
    assert code == 0
    names = ["python", "sqlite", "extras", "sandbox", "configuration", "workspace", "data folder"]
    assert list(found)[:11] == [*names, "journal", "running", "hub", "agents"]
    assert "created on the first run" in found["journal"]["message"]
    assert str(home.folder / "factwire.toml") in found["configuration"]["message"]
    assert {"demo", "shell", "echo"} <= set(found["agents"]["message"].split(", "))
    assert not home.state.exists()


@pytest.mark.requirement("cli.doctor")
def test_people_get_a_line_each(factwire: Factwire):
    factwire("run", "echo", "x")
    done = factwire("doctor")
    assert (done.code, done.err) == (0, "")
    assert "✓ python         CPython 3." in done.out
    assert ", 1 thread, intact\n" in done.out


@pytest.mark.requirement("cli.doctor")
def test_a_run_that_goes_on_is_seen(factwire: Factwire, home: Home):
    with home.background("run", "asks", "x") as running:
        running.until("factwire deny act_")
        _, found = run_doctor(factwire)
    message = f"process {running.process.pid} on 1 thread"
    assert (found["running"]["message"], found["journal"]["status"]) == (message, "ok")


@pytest.mark.requirement("cli.doctor")
def test_a_data_folder_that_others_can_read_is_warned_of(factwire: Factwire, home: Home):
    home.state.mkdir(parents=True)
    home.state.chmod(0o755)
    code, found = run_doctor(factwire)
    assert (code, found["data folder"]["status"]) == (0, "warn")
    assert found["data folder"]["fix"] == f"chmod 700 {home.state}"


@pytest.mark.requirement("cli.doctor.fails")
def test_a_data_folder_that_is_none_fails(factwire: Factwire, home: Home):
    home.state.parent.mkdir()
    home.state.write_text("")
    code, found = run_doctor(factwire)
    assert (code, found["data folder"]["status"]) == (1, "fail")
    assert "FACTWIRE_DATA" in found["data folder"]["fix"]


@pytest.mark.requirement("cli.doctor.fails")
def test_a_workspace_that_a_run_would_refuse_is_told(factwire: Factwire, home: Home):
    code, found = run_doctor(factwire, "--workspace", "nowhere")
    assert (code, found["workspace"]["status"]) == (1, "fail")
    assert "workspace_missing" in found["workspace"]["message"]
    file = home.folder / "factwire.toml"
    (home.folder / "other").mkdir()
    home.configure(f'workspaces = ["other"]\n{file.read_text()}')
    code, found = run_doctor(factwire)
    assert (code, found["workspace"]["status"]) == (0, "warn")


@pytest.mark.requirement("cli.doctor.fails")
def test_a_configuration_that_cannot_be_looked_at_is_a_line(
    factwire: Factwire, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CONFIG_HOME", f"/{'x' * 300}")
    code, found = run_doctor(factwire)
    assert (code, found["configuration"]["status"]) == (1, "fail")
    assert (
        "expected a location that can be read, got File name" in found["configuration"]["message"]
    )
    done = factwire("run", "echo", "x")
    assert done.code == 2
    assert "Errno" not in done.err
    assert "expected a location that can be read" in done.err


@pytest.mark.requirement("cli.doctor.fails")
def test_a_journal_that_is_none_fails(factwire: Factwire, home: Home):
    broken = home.folder / "broken.db"
    broken.write_bytes(b"not a journal" * 1_000)
    code, found = run_doctor(factwire, "--journal", str(broken))
    assert (code, found["journal"]["status"]) == (1, "fail")
    assert "export" in found["journal"]["fix"]


@pytest.mark.requirement("cli.doctor.fails")
def test_a_configuration_that_cannot_be_read_fails_with_its_place(factwire: Factwire, home: Home):
    home.configure("[policy]\nmode = 'yolo'\n")
    code, found = run_doctor(factwire)
    assert (code, found["configuration"]["status"]) == (1, "fail")
    assert "factwire.toml:2" in found["configuration"]["message"]
    done = factwire("doctor")
    assert (done.code, "✗ configuration" in done.out, "→ fix" in done.out) == (1, True, True)


@pytest.mark.requirement("cli.doctor.fails")
def test_an_agent_that_cannot_be_had_is_told_and_the_default_one_must_be_there(
    factwire: Factwire, home: Home
):
    home.configure('agent = "none"\n[agents.broken]\nkind = "no_such_module:agent"\n')
    code, found = run_doctor(factwire)
    assert code == 1
    assert (found["agent broken"]["status"], found["agent"]["status"]) == ("warn", "fail")


@pytest.mark.requirement("cli.doctor")
@pytest.mark.parametrize("code", ["bubblewrap_missing", "namespaces_refused", "not_linux"])
def test_a_sandbox_that_does_not_work_fails_only_where_it_is_required(code: Any):
    probe = Probe(works=False, reason_code=code, reason="because")
    preferred = judge_sandbox(probe, required=False)
    required = judge_sandbox(probe, required=True)
    assert (preferred.status, required.status) == ("warn", "fail")
    assert code in required.message
    assert required.fix


@pytest.mark.requirement("cli.doctor")
def test_a_sandbox_that_works_in_part_says_which(factwire: Factwire, home: Home):
    whole = judge_sandbox(Probe(works=True, version="1"), required=True)
    part = Probe(works=True, version="1", missing={"system_call_filter": "no"})
    assert (whole.status, judge_sandbox(part, required=True).status) == ("ok", "warn")
    assert "system call filter" in judge_sandbox(part, required=True).message
    home.configure("[sandbox]\nmode = 'off'\n")
    _, found = run_doctor(factwire)
    assert "turned off in the configuration" in found["sandbox"]["message"]


@pytest.mark.requirement("runtime.policy.unenforced")
def test_rules_for_paths_that_no_sandbox_enforces_are_named(factwire: Factwire, home: Home):
    rules = "[policy]\ndeny = ['Read(**/.env)', 'Bash(rm *)']\n"
    home.configure(f"[sandbox]\nmode = 'off'\n{rules}")
    _, found = run_doctor(factwire)
    assert found["sandbox"]["status"] == "warn"
    assert "no sandbox enforces Read(**/.env):" in found["sandbox"]["message"]
    home.configure(f"[sandbox]\nmode = 'prefer'\n{rules}")
    assert "enforces" not in run_doctor(factwire)[1]["sandbox"]["message"]
