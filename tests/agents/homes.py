"""The settings under which each real agent speaks to a fake model, and reads nobody's real ones.

Each gets a home, a configuration and a made-up key of its own, and is told to fetch nothing:
no updates, no lists of models, no telemetry.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.agents.fake_models import FakeModel
from tools.agents import OPENCODE

KEY: Final = "made-up-key-0123456789abcdef"
"""Of no shape that redaction knows: nothing but care keeps it out of facts."""

FOREIGN: Final = ("ANTHROPIC_", "CLAUDE", "CODEX_", "OPENAI_", "OPENCODE_", "XDG_")
"""Beginnings of variables that may be set on a machine and must not reach an agent under test."""

PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy")

CODEX: Final = """\
model = "gpt-5"
model_provider = "fake"
check_for_update_on_startup = false

[analytics]
enabled = false

[features]
plugins = false

[model_providers.fake]
name = "Fake"
base_url = "{url}"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
"""

OPENCODE_QUIET: Final = (
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_MODELS_FETCH",
)
"""Variables that keep OpenCode from fetching; an agent that runs it has to pass them on."""


class AgentHome:
    """One home; `environment` is what an agent that lives there gets, and `set_variable` makes it
    so for this process.
    """

    def __init__(self, folder: Path, set_variable: Callable[[str, str], None]) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.environment: dict[str, str] = {}
        self._set = set_variable
        self._give(HOME=str(folder))
        for name, place in _PLACES.items():
            (folder / place).mkdir(parents=True)
            self._give(**{name: str(folder / place)})
        self.workspace.mkdir()
        # Some ask this, and not the system, where they are.
        self._give(PWD=str(self.workspace))

    def anthropic(self, model: FakeModel) -> dict[str, str]:
        """For Claude Code."""
        return self._give(
            ANTHROPIC_BASE_URL=model.url,
            ANTHROPIC_API_KEY=KEY,
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        )

    def openai(self, model: FakeModel) -> dict[str, str]:
        """For the SDKs that run in this process."""
        return self._give(
            OPENAI_BASE_URL=model.openai_url, OPENAI_API_KEY=KEY, OPENAI_AGENTS_DISABLE_TRACING="1"
        )

    def codex(self, model: FakeModel) -> dict[str, str]:
        """For Codex."""
        return self.codex_at(model.openai_url)

    def codex_at(self, url: str) -> dict[str, str]:
        """For Codex, with a model at another address."""
        written = CODEX.format(url=url)
        Path(self.environment["CODEX_HOME"], "config.toml").write_text(written, "utf-8")
        return self._give(OPENAI_API_KEY=KEY)

    def opencode(self, model: FakeModel) -> dict[str, str]:
        """For OpenCode, which asks before it edits and before it runs a command."""
        fake = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Fake",
            "options": {"baseURL": model.openai_url, "apiKey": KEY},
            "models": {"fake": {"name": "Fake", "tool_call": True, "reasoning": True}},
        }
        settings = {
            "model": "fake/fake",
            "small_model": "fake/fake",
            "autoupdate": False,
            "share": "disabled",
            "permission": {"edit": "ask", "bash": "ask"},
            "provider": {"fake": fake},
        }
        place = Path(self.environment["XDG_CONFIG_HOME"], "opencode")
        place.mkdir(exist_ok=True)
        (place / "opencode.json").write_text(json.dumps(settings), "utf-8")
        # It fetches its plugin kit into a folder that does not say it has it.
        kit = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
        (place / "package-lock.json").write_text(json.dumps(kit), "utf-8")
        (place / "node_modules").mkdir(exist_ok=True)
        return self._give(
            PATH=f"{Path(OPENCODE).parent}{os.pathsep}{os.environ['PATH']}",
            **dict.fromkeys(OPENCODE_QUIET, "1"),
        )

    def _give(self, **variables: str) -> dict[str, str]:
        for name, value in variables.items():
            self._set(name, value)
        self.environment |= variables
        return self.environment


_PLACES: Final = {
    "CLAUDE_CONFIG_DIR": ".claude",
    "CODEX_HOME": ".codex",
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}
