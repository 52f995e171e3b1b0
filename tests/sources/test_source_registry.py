"""One row is an agent: the folder, the package's metadata and everything that lists agents agree
with `OUTSIDE_AGENTS`, in both directions.
"""

import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from factwire.facts import CapabilityManifest
from factwire.runtime.agents import GROUP, WRAPPERS
from factwire.sources import (
    OUTSIDE_AGENTS,
    SOURCE_NAMES,
    OutsideAgent,
    Source,
    UnknownSource,
    find_outside_agent,
    find_source,
)

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
SOURCES = ROOT / "src" / "factwire" / "sources"
NO_AGENTS = {"kit", "observe"}
OTHER_EXTRAS = {"postgres", "nats", "openai", "client", "edge", "hub", "mcp", "all"}

rows = pytest.mark.parametrize("agent", OUTSIDE_AGENTS, ids=lambda agent: agent.name)


@pytest.mark.requirement("sources.live.entry-points")
@pytest.mark.parametrize(("kind", "group"), [("agent", GROUP), ("wrapper", WRAPPERS)])
def test_the_entry_points_are_those_of_the_rows(kind: str, group: str):
    wanted = {
        agent.name: agent.entry_point
        for agent in OUTSIDE_AGENTS
        if agent.kind == kind and agent.entry_point is not None
    }
    assert PROJECT["entry-points"][group] == wanted


def _package(requirement: str) -> str:
    return re.split(r"[\[<>=!~;, ]", requirement, maxsplit=1)[0]


@pytest.mark.requirement("sources.live.entry-points")
def test_the_extras_are_those_of_the_rows():
    assert EXTRAS.keys() - OTHER_EXTRAS == {agent.extra for agent in OUTSIDE_AGENTS} - {None}
    (everything,) = EXTRAS["all"]
    bundled = set(everything.removeprefix("factwire[").removesuffix("]").split(","))
    for agent in OUTSIDE_AGENTS:
        if agent.extra is not None:
            assert agent.extra in bundled
            assert set(agent.packages) & set(map(_package, EXTRAS[agent.extra]))


@pytest.mark.requirement("sources.live.entry-points")
def test_every_folder_is_an_agent_and_every_agent_has_a_folder():
    folders = {path.parent.name for path in SOURCES.glob("*/__init__.py")}
    assert folders - NO_AGENTS == {agent.folder for agent in OUTSIDE_AGENTS}
    names = [agent.name for agent in OUTSIDE_AGENTS]
    assert names == sorted(set(names))


@rows
@pytest.mark.requirement("sources.live.entry-points")
def test_the_modules_of_a_row_have_what_they_are_for(agent: OutsideAgent):
    assert find_outside_agent(agent.name) is agent
    if agent.convert is not None:
        source = find_source(agent.name)
        assert isinstance(source, Source)
        assert source.name == agent.name
    else:
        with pytest.raises(UnknownSource):
            find_source(agent.name)
    if agent.live is not None and agent.kind == "agent":
        assert isinstance(import_module(agent.module(agent.live)).MANIFEST, CapabilityManifest)
    if agent.observe is not None:
        assert agent.packages
        assert agent.extra, "who observes without the SDK reads which extra brings it"
        assert callable(import_module(agent.module(agent.observe)).install)


@rows
@pytest.mark.requirement("sources.live.entry-points")
def test_a_module_that_lies_there_under_a_usual_name_is_in_a_row(agent: OutsideAgent):
    """A row that forgets one would leave it unreachable."""
    of_folder = [each for each in OUTSIDE_AGENTS if each.folder == agent.folder]
    named = {part for each in of_folder for part in (each.live, each.observe)}
    for part in ("live", "observe"):
        there = find_spec(agent.module(part)) is not None
        assert there == (part in named)


@pytest.mark.requirement("sources.live.entry-points")
def test_reading_the_registry_loads_no_agent():
    folders = sorted({agent.folder for agent in OUTSIDE_AGENTS})
    program = (
        "import sys\n"
        "import factwire.sources\n"
        f"print(*(name for name in {folders!r} if f'factwire.sources.{{name}}' in sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("\n", "")
    assert set(SOURCE_NAMES) <= {agent.name for agent in OUTSIDE_AGENTS}
