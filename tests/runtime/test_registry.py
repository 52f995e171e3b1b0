"""The registry: agents by configuration and by entry point, and clear words about the rest."""

import importlib
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from factwire.facts import CapabilityManifest
from factwire.journal import open_journal
from factwire.journal.blobs import MemoryBlobs
from factwire.runtime import Runtime, UnknownAgent, build_turn_resources
from factwire.runtime.agents import (
    BUILT_INS,
    GROUP,
    WRAPPERS,
    AgentError,
    AgentRegistry,
    DemoAgent,
    ShellAgent,
    register,
)
from factwire.runtime.configuration import (
    AgentSettings,
    Configuration,
    Limits,
    PolicySettings,
    SandboxSettings,
    load_configuration,
)
from tests.runtime.agents import wait_for_end
from tests.runtime.trusted_files import write_trusted

MODULE = """
from factwire.facts import CapabilityManifest
from factwire.runtime.agents import ShellAgent

manifest = CapabilityManifest(agent_id="mine", title="Mine")
contradicting = CapabilityManifest(agent_id="mine", title="Mine", cancel="no", controls=("stop",))


def make(settings):
    agent = ShellAgent(manifest)
    agent.settings = settings
    return agent


def unsound(settings):
    return ShellAgent(contradicting)


def nothing(settings):
    return None


def raising(settings):
    raise RuntimeError("no luck")


def lacking(settings):
    import claude_agent_sdk_that_nobody_has


def lacking_known(settings):
    raise ModuleNotFoundError("No module named 'langgraph'", name="langgraph.graph")


def unimportable(settings):
    raise ImportError("cannot import name")


def leaving(settings):
    raise SystemExit(3)


def settingless():
    return ShellAgent(manifest)


class Foreign:
    pass


def foreign(settings):
    return Foreign()


def wrap(loaded, settings):
    return ShellAgent(manifest) if isinstance(loaded, Foreign) else None


def wrap_badly(loaded, settings):
    raise RuntimeError("no idea") if isinstance(loaded, Foreign) else TypeError("not asked for")


requests = []


class AgentOfAnotherSdk:
    # Works when it is called, as agents of some SDKs do.

    def __call__(self, task, **more):
        requests.append(task)


def ask_model(prompt: str):
    requests.append(prompt)


async def ask_model_later(prompt):
    requests.append(prompt)


unknown = AgentOfAnotherSdk()
ready = ShellAgent(manifest)
theirs = Foreign()
number = 3
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = "registry_plugin"
    (tmp_path / f"{name}.py").write_text(MODULE)
    (tmp_path / "registry_broken.py").write_text("raise ValueError('broken')\n")
    (tmp_path / "registry_lacking.py").write_text("import pydantic_ai_that_nobody_has\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    for module in (name, "registry_broken", "registry_lacking"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return name


def make_configuration(**agents: AgentSettings) -> Configuration:
    return Configuration(journal="memory:", data="data", agents=agents)


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, group=GROUP, value=value)


def problem(found: AgentRegistry, name: str) -> AgentError:
    with pytest.raises(AgentError) as raised:
        found.agent(name)
    return raised.value


@pytest.mark.requirement("runtime.agents.registry")
def test_the_built_in_agents_are_always_there():
    found = register(make_configuration(), [])

    assert isinstance(found.agent("demo"), DemoAgent)
    assert isinstance(found.agent("shell"), ShellAgent)
    assert sorted(found.manifests) == ["demo", "shell"]
    assert sorted(BUILT_INS) == ["demo", "openai", "shell"]
    assert problem(found, "openai").code == "invalid_agent"


@pytest.mark.requirement("runtime.agents.registry")
def test_an_agent_is_configured_under_a_name_of_its_own(plugin: str):
    fast = AgentSettings(kind="demo", options={"pace": 0})
    mine = AgentSettings(kind=f"{plugin}:make", model="some-model", options={"a": 1})
    found = register(make_configuration(fast=fast, mine=mine), [])

    assert sorted(found.agents) == ["demo", "fast", "mine", "shell"]
    agent: Any = found.agent("mine")
    assert (agent.settings, agent.manifest.agent_id) == (mine, "mine")


@pytest.mark.requirement("runtime.agents.registry")
def test_an_installed_entry_point_is_an_agent_and_a_kind(plugin: str):
    other = AgentSettings(kind="mine", model="other")
    found = register(make_configuration(other=other), [point("mine", f"{plugin}:make")])

    agents: list[Any] = [found.agent("mine"), found.agent("other")]
    assert [agent.settings for agent in agents] == [AgentSettings(kind="mine"), other]
    assert isinstance(found.manifests["mine"], CapabilityManifest)


@pytest.mark.requirement("runtime.agents.registry.errors")
@pytest.mark.parametrize(
    ("kind", "code", "words"),
    [
        ("telepath", "unknown_agent_kind", "choose from demo, openai, shell, or use 'module:name'"),
        ("no_such_module_here:make", "broken_entry_point", "not found"),
        ("registry_plugin:missing", "broken_entry_point", "missing"),
        ("registry_plugin:number", "broken_entry_point", "a function or class that creates one"),
        ("registry_broken:make", "broken_entry_point", "ValueError: broken"),
        ("registry_plugin:raising", "broken_entry_point", "RuntimeError: no luck"),
        ("registry_plugin:leaving", "broken_entry_point", "SystemExit: 3"),
        ("registry_plugin:settingless", "broken_entry_point", "called with the settings"),
        ("registry_plugin:unimportable", "broken_entry_point", "cannot import name"),
        ("registry_lacking:make", "missing_extra", "pydantic_ai_that_nobody_has"),
        ("registry_plugin:lacking", "missing_extra", "claude_agent_sdk_that_nobody_has"),
        ("registry_plugin:lacking_known", "missing_extra", "install 'factwire[langgraph]'"),
        ("registry_plugin:nothing", "invalid_agent", "an agent with a manifest, got None"),
        ("registry_plugin:unsound", "invalid_agent", "$.cancel"),
    ],
)
@pytest.mark.usefixtures("plugin")
def test_an_agent_that_cannot_be_had_says_why_and_leaves_the_others(
    kind: str, code: str, words: str
):
    found = register(make_configuration(wanted=AgentSettings(kind=kind)), [])

    error = problem(found, "wanted")
    assert error.code == code
    assert words in str(error)
    assert sorted(found.agents) == ["demo", "shell"]


@pytest.mark.requirement("runtime.agents.registry.errors")
@pytest.mark.parametrize("name", ["unknown", "ask_model", "ask_model_later"])
def test_what_is_not_known_to_be_a_factory_is_not_called(plugin: str, name: str):
    found = register(make_configuration(wanted=AgentSettings(kind=f"{plugin}:{name}")), [])

    assert problem(found, "wanted").code == "broken_entry_point"
    assert sys.modules[plugin].requests == []


@pytest.mark.requirement("runtime.agents.registry.wrappers")
@pytest.mark.parametrize("name", ["ready", "theirs", "foreign", "make"])
def test_what_a_kind_names_may_be_an_agent_an_object_of_an_sdk_or_makes_either(
    plugin: str, name: str
):
    wrappers = [
        EntryPoint(name="a-broken", group=WRAPPERS, value="registry_broken:wrap"),
        EntryPoint(name="foreign", group=WRAPPERS, value=f"{plugin}:wrap"),
    ]
    found = register(make_configuration(it=AgentSettings(kind=f"{plugin}:{name}")), [], wrappers)

    assert isinstance(found.agent("it"), ShellAgent)
    assert found.agent("it").manifest.agent_id == "mine"


@pytest.mark.requirement("runtime.agents.registry.wrappers")
@pytest.mark.parametrize(
    ("wrapper", "words"),
    [
        ("registry_broken:wrap", "an object of sdk (registry_broken:wrap cannot be loaded"),
        ("registry_plugin:nothing", "failed to create an agent: TypeError"),
        ("registry_plugin:wrap_badly", "RuntimeError: no idea"),
    ],
)
@pytest.mark.usefixtures("plugin")
def test_an_object_that_no_wrapper_makes_an_agent_of_says_why(wrapper: str, words: str):
    wrappers = [EntryPoint(name="sdk", group=WRAPPERS, value=wrapper)]
    found = register(
        make_configuration(it=AgentSettings(kind="registry_plugin:theirs")), [], wrappers
    )

    assert words in str(problem(found, "it"))
    assert problem(found, "it").code == "broken_entry_point"


@pytest.mark.requirement("runtime.agents.registry.lazy")
def test_an_agent_is_made_when_it_is_asked_for_and_once(plugin: str):
    found = register(
        make_configuration(),
        [point("mine", f"{plugin}:make"), point("bad", "registry_broken:make")],
    )

    assert isinstance(found.agent("demo"), DemoAgent)
    assert "shell" in found.agents
    assert plugin not in sys.modules
    assert found.agents.get("mine") is found.agent("mine")
    assert "registry_broken" not in sys.modules
    assert len(found.agents) == 3


@pytest.mark.requirement("runtime.agents.registry.errors")
@pytest.mark.parametrize(
    "agent",
    [
        AgentSettings(kind="demo", options={"pace": "fast"}),
        AgentSettings(kind="demo", options={"speed": 1}),
        AgentSettings(kind="shell", options={"login": True}),
    ],
)
def test_options_that_an_agent_does_not_know_are_refused(agent: AgentSettings):
    assert problem(register(make_configuration(odd=agent), []), "odd").code == "invalid_agent"


@pytest.mark.requirement("runtime.agents.registry.errors")
def test_an_entry_point_cannot_take_the_place_of_another(plugin: str):
    points = [
        point("demo", f"{plugin}:make"),
        point("mine", f"{plugin}:make"),
        point("mine", f"{plugin}:raising"),
    ]
    found = register(make_configuration(), points)

    assert isinstance(found.agent("demo"), DemoAgent)
    assert {name: error.code for name, error in found.problems.items()} == {
        "openai": "invalid_agent",
        f"demo ({plugin}:make)": "agent_name_taken",
        f"mine ({plugin}:raising)": "agent_name_taken",
    }


@pytest.mark.requirement("runtime.agents.registry.errors")
def test_a_name_that_nobody_registered_is_unknown():
    with pytest.raises(UnknownAgent, match="choose from demo, shell"):
        register(make_configuration(), []).agent("nobody")


@pytest.mark.requirement("runtime.agents.registry")
def test_entry_points_that_are_installed_are_looked_up():
    assert {"demo", "shell"} <= set(register(make_configuration()).agents)


@pytest.mark.requirement("runtime.agents.registry.means")
@pytest.mark.asyncio
async def test_a_configuration_becomes_agents_and_the_means_they_act_with(tmp_path: Path):
    write_trusted(
        tmp_path / "factwire.toml",
        'data = "data"\nworkspaces = ["work"]\n'
        '[policy]\nallow = ["Bash(touch *)"]\n[agents.sh]\nkind = "shell"\n',
        {"HOME": str(tmp_path)},
    )
    (tmp_path / "work").mkdir()
    configuration = load_configuration(tmp_path, environment={"HOME": str(tmp_path)}).configuration
    blobs = MemoryBlobs()
    async with (
        open_journal("memory:") as journal,
        Runtime(
            journal,
            blobs,
            register(configuration, []).agents,
            workspace=Path(configuration.workspaces[0]),
            resources=build_turn_resources(configuration, blobs),
        ) as runtime,
    ):
        await runtime.submit("thread", "sh", "touch made", turn_id="turn")
        assert await wait_for_end(runtime, "turn") == "completed"

    assert (tmp_path / "work" / "made").exists()


@pytest.mark.requirement("runtime.agents.registry.means")
def test_limits_and_sandbox_of_the_configuration_hold(tmp_path: Path):
    configuration = Configuration(
        journal="memory:",
        data=str(tmp_path),
        workspaces=(str(tmp_path / "work"),),
        policy=PolicySettings(mode="plan", deny=("Bash(rm *)",)),
        sandbox=SandboxSettings(mode="require", network=True),
        limits=Limits(output_bytes=5, approval_seconds=7.0),
    )
    means = build_turn_resources(configuration, MemoryBlobs())

    assert (means.policy.mode, [str(rule) for rule in means.policy.deny]) == (
        "plan",
        ["Bash(rm *)"],
    )
    assert (means.sandbox.mode, means.sandbox.network) == ("require", True)
    assert (means.output_bytes, means.approval_seconds) == (5, 7.0)
    assert means.processes is not None
    assert means.processes.workspaces == (tmp_path / "work",)
