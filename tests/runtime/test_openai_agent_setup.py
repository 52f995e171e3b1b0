"""The openai agent: set up by file and by flags, looked at by the doctor, run by the command."""

import asyncio
import importlib.util
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from factwire.cli.command_context import AgentFlags, load_context
from factwire.cli.doctor_command import check_models as findings
from factwire.facts import Fact, inspect_stream, read_fact, verify
from factwire.runtime.agents import AgentError, MissingAgentExtra, OpenAIAgent, register
from factwire.runtime.configuration import (
    AgentSettings,
    Configuration,
    list_setting_rows,
    load_configuration,
)
from tests.cli.cli_commands import CommandOutput
from tests.cli.cli_homes import Home
from tests.runtime.fake_model import FakeModel, calls, text
from tests.runtime.fake_model_runs import KEY, VARIABLE
from tests.runtime.trusted_files import write_trusted

LOCAL = "http://127.0.0.1:11434/v1"


def make_configuration(**agents: AgentSettings) -> Configuration:
    return Configuration(journal="memory:", data="data", agents=agents)


def openai(**fields: Any) -> Configuration:
    return make_configuration(mine=AgentSettings(kind="openai", **fields))


@pytest.mark.requirement("runtime.agents.openai.setup")
def test_an_agent_comes_from_a_file_and_is_shown_without_its_key(tmp_path: Path):
    write_trusted(
        tmp_path / "factwire.toml",
        f'[agents.local]\nkind = "openai"\nmodel = "tiny"\nbase_url = "{LOCAL}"\n'
        f'api_key_env = "{VARIABLE}"\noptions = {{ steps = 7, instructions = "Be kind." }}\n',
        {"HOME": str(tmp_path)},
    )
    environment = {"HOME": str(tmp_path), VARIABLE: KEY}
    resolved = load_configuration(tmp_path, environment=environment)

    found = register(resolved.configuration, [])
    assert isinstance(found.agent("local"), OpenAIAgent)
    assert found.manifests["local"].title == "OpenAI-compatible: tiny"
    shown = {row.key: row.value for row in list_setting_rows(resolved)}
    assert shown["agents.local.api_key_env"] == VARIABLE
    assert shown["agents.local.options"] == {"steps": 7, "instructions": "Be kind."}
    assert KEY not in str(shown)


@pytest.mark.requirement("runtime.agents.openai.setup")
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "set agents.NAME.model"),
        ({"model": "m", "options": {"steps": 0}}, "$.steps"),
        ({"model": "m", "options": {"temperature": 3}}, "$.temperature"),
        ({"model": "m", "options": {"reasoning_effort": "huge"}}, "$.reasoning_effort"),
        ({"model": "m", "options": {"api_key": "x"}}, "api_key"),
    ],
)
def test_a_configuration_that_makes_no_agent_says_why(fields: dict[str, Any], words: str):
    with pytest.raises(AgentError) as raised:
        register(openai(**fields), []).agent("mine")

    assert raised.value.code == "invalid_agent"
    assert words in str(raised.value)


@pytest.mark.requirement("runtime.agents.openai.setup")
@pytest.mark.parametrize("library", ["pydantic_ai", "openai"])
def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch, library: str):
    without(monkeypatch, library)
    with pytest.raises(MissingAgentExtra, match=r"install 'factwire\[openai\]'") as raised:
        register(openai(model="m"), []).agent("mine")

    assert (raised.value.code, raised.value.extra) == ("missing_extra", "openai")


@pytest.mark.requirement("runtime.agents.openai.setup")
def test_an_agent_that_nobody_uses_costs_no_import(tmp_path: Path):
    home = Home(tmp_path)
    home.configure('[agents.m]\nkind = "openai"\nmodel = "tiny"\n')
    home.environment["PYTHONPROFILEIMPORTTIME"] = "1"
    done = home.run("run", "demo", "demo: help")

    assert done.code == 0, done.err
    assert "factwire.runtime.agents.openai_agent" in done.err
    assert "pydantic_ai" not in done.err


@pytest.mark.requirement("runtime.agents.openai.doctor")
def test_the_doctor_says_where_the_model_is_and_whether_its_key_is_there():
    def find_model(environment: dict[str, str], **fields: Any) -> tuple[str, str]:
        [finding] = findings(openai(model="tiny", **fields), environment)
        assert (finding.name, KEY in str(finding)) == ("model of mine", False)
        assert (finding.fix is None) == (finding.status == "ok")
        return finding.status, finding.message

    public = "http://models.example.com/v1"
    key = {VARIABLE: KEY}
    assert find_model({}, base_url=LOCAL) == ("ok", "tiny at 127.0.0.1 (loopback), no key")
    assert find_model(key, base_url=LOCAL, api_key_env=VARIABLE) == (
        "ok",
        f"tiny at 127.0.0.1 (loopback), key in {VARIABLE}",
    )
    assert find_model({})[0] == "warn"
    assert "OPENAI_API_KEY is not set" in find_model({})[1]
    status, message = find_model(key, base_url=public, api_key_env=VARIABLE)
    assert (status, "unencrypted" in message) == ("warn", True)


@pytest.mark.requirement("runtime.agents.openai.doctor")
def test_the_doctor_says_how_to_have_such_an_agent(monkeypatch: pytest.MonkeyPatch):
    [unset] = findings(make_configuration(), {})
    assert (unset.status, "agents.openai.model" in unset.message) == ("ok", True)
    assert list(findings(openai(), {})) == []

    without(monkeypatch, "pydantic_ai")
    [absent] = findings(make_configuration(), {})
    [needed] = findings(openai(model="tiny"), {})
    assert (absent.status, needed.status) == ("ok", "warn")
    assert "factwire[openai]" in absent.message
    assert "factwire[openai]" in str(needed.fix)


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.agents.openai.setup")
async def test_the_command_runs_a_turn_and_prints_its_facts(tmp_path: Path):
    home = Home(tmp_path)
    (home.folder / "a.txt").write_text("alpha")
    wanted = calls(("read", {"path": "a.txt"}), say="I look. ")
    async with FakeModel(wanted, text("It says ", "alpha.")) as model:
        home.configure(
            f'[agents.openai]\nkind = "openai"\nmodel = "tiny"\nbase_url = "{model.url}"\n'
            f'api_key_env = "{VARIABLE}"\n'
        )
        home.environment[VARIABLE] = KEY
        home.environment |= {"HTTP_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9"}
        done = await asyncio.to_thread(home.run, "run", "openai", "What is in a.txt?", "--json")

    assert (done.code, done.err) == (0, "")
    facts = facts_in(done)
    assert inspect_stream(facts) == []
    assert verify(facts) == []
    texts = [fact.payload["text"] for fact in facts if fact.event_class == "model.completed"]
    assert texts == ["I look. ", "It says alpha."]
    assert [request.headers["authorization"] for request in model.requests] == [f"Bearer {KEY}"] * 2
    assert model.requests[1].contents_of("tool") == ["alpha"]
    assert KEY not in done.out
    assert with_key(tmp_path) == []


@pytest.mark.asyncio
@pytest.mark.requirement("runtime.agents.openai.setup")
async def test_flags_name_the_model_where_no_file_does(tmp_path: Path):
    home = Home(tmp_path)
    (home.folder / "factwire.toml").unlink()
    async with FakeModel(text("Hello.")) as model:
        flags = ("--model", "tiny", "--base-url", model.url)
        done = await asyncio.to_thread(home.run, "run", "openai", "Hi", *flags)

    assert (done.code, done.out.partition("\n")[0], done.err) == (0, "Hello.", "")
    [request] = model.requests
    assert request.body["model"] == "tiny"
    assert "authorization" not in request.headers


@pytest.mark.requirement("runtime.agents.openai.setup")
def test_flags_change_what_a_file_says_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    write_trusted(
        tmp_path / "factwire.toml",
        f'[agents.pal]\nkind = "openai"\nmodel = "other"\nbase_url = "{LOCAL}"\n',
    )
    flags = AgentFlags(name="pal", model="tiny")
    found = load_context(workspace=tmp_path, agent=flags).configuration.agents["pal"]

    assert found == AgentSettings(kind="openai", model="tiny", base_url=LOCAL)
    untouched = load_context(workspace=tmp_path, agent=AgentFlags(name="demo")).configuration.agents
    assert sorted(untouched) == ["pal"]


@pytest.mark.requirement("runtime.agents.openai.setup")
def test_what_is_not_set_up_is_told_before_anything_starts(tmp_path: Path):
    home = Home(tmp_path)
    unset = home.run("run", "openai", "Hi")
    wrong = home.run("run", "openai", "Hi", "--model", "m", "--base-url", "ftp://models")

    assert (unset.code, unset.out) == (2, "")
    assert "invalid_agent: an openai agent needs a model" in unset.err
    assert (wrong.code, wrong.out) == (2, "")
    assert "agents.openai.base_url expected an http or https URL" in wrong.err


def facts_in(done: CommandOutput) -> list[Fact]:
    lines: list[Any] = [json.loads(line) for line in done.out.splitlines()]
    return [read_fact(msgspec.to_builtins(line), "facts") for line in lines]


def with_key(folder: Path) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if KEY.encode() in path.read_bytes()]


def without(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """As if a library were not installed."""
    found = importlib.util.find_spec

    def find_spec(name: str, package: str | None = None) -> Any:
        return None if name == library else found(name, package)

    for module in ("factwire.runtime.agents.openai_agent", "factwire.cli.doctor_command"):
        monkeypatch.setattr(f"{module}.find_spec", find_spec)
