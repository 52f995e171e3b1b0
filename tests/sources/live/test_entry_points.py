"""What is promised in the package's metadata is there: agents and wrappers, each cheap to load."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from factwire.facts import CapabilityManifest, is_valid, manifest_issues
from factwire.runtime.agents import GROUP, WRAPPERS

ROOT = Path(__file__).resolve().parents[3]
POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]

SDKS = ("agents", "acp", "claude_agent_sdk", "langchain_core", "langgraph", "mcp", "pydantic_ai")


@pytest.mark.requirement("sources.live.entry-points")
@pytest.mark.parametrize("name", POINTS[GROUP])
def test_an_agent_has_a_sound_manifest_under_its_own_name(name: str):
    module, _, attribute = POINTS[GROUP][name].partition(":")
    loaded = import_module(module)

    assert callable(getattr(loaded, attribute))
    assert isinstance(loaded.MANIFEST, CapabilityManifest)
    assert loaded.MANIFEST.agent_id == name
    assert is_valid(manifest_issues(loaded.MANIFEST))


@pytest.mark.requirement("sources.live.entry-points")
def test_no_sdk_is_imported_to_load_an_agent_or_to_look_at_an_object():
    values = [*POINTS[GROUP].values(), *POINTS[WRAPPERS].values()]
    modules = [value.partition(":")[0] for value in values]
    program = (
        "import sys\n"
        "from importlib import import_module\n"
        f"loaded = [import_module(name) for name in {modules!r}]\n"
        "wrap = [each.wrap for each in loaded if hasattr(each, 'wrap')]\n"
        f"assert len(wrap) == {len(POINTS[WRAPPERS])}\n"
        "from factwire.runtime.configuration import AgentSettings\n"
        "settings = AgentSettings(kind='x:y')\n"
        "assert [each(object(), settings) for each in wrap] == [None] * len(wrap)\n"
        f"print(*sorted(sys.modules.keys() & {set(SDKS)!r}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=280
    )
    assert (done.stdout, done.stderr) == ("\n", "")
