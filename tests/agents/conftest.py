"""Real agents against a fake model, where nothing but loopback is.

`aimock(*replies)` starts a fake model, `agent_home` is where an agent lives, `driven(agent)` is a
runtime around it. Everything in this folder is marked `agents`.
"""

import os
from collections.abc import Generator
from contextlib import AbstractAsyncContextManager, ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from factwire.runtime import Provider
from tests.agents.driving import DrivenAgent, driven_agent
from tests.agents.fake_models import FakeModel
from tests.agents.homes import FOREIGN, PROXIES, AgentHome
from tests.agents.loopback import loopback_only
from tests.agents.replies import Reply
from tools import agents

FOLDER = Path(__file__).resolve().parent


class Aimock(Protocol):
    """Starts a fake model; `options` are those of its command line, such as `--strict`."""

    def __call__(self, *replies: Reply, options: tuple[str, ...] = ()) -> FakeModel: ...


class Drive(Protocol):
    """A runtime around an agent; settings are those of the runtime, and its policy."""

    def __call__(
        self, agent: Provider, **settings: Any
    ) -> AbstractAsyncContextManager[DrivenAgent]: ...


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(FOLDER):
            item.add_marker(pytest.mark.agents)


@pytest.fixture(scope="session")
def npm_packages() -> Path:
    """Installed before the network goes away."""
    return agents.install()


@pytest.fixture(autouse=True)
def loopback(npm_packages: Path) -> Generator[None]:  # noqa: ARG001
    with loopback_only():
        yield


@pytest.fixture
def agent_home(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    loopback: None,  # noqa: ARG001
) -> AgentHome:
    """A home that this process lives in, too; its methods say whose model an agent speaks to."""
    for name in list(os.environ):
        if name.startswith(FOREIGN) or name in PROXIES or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    home = AgentHome(tmp_path / "home", monkeypatch.setenv)
    monkeypatch.chdir(home.workspace)
    return home


@pytest.fixture
def aimock(tmp_path: Path, loopback: None) -> Generator[Aimock]:  # noqa: ARG001
    started: list[FakeModel] = []
    with ExitStack() as stack:

        def start(*replies: Reply, options: tuple[str, ...] = ()) -> FakeModel:
            log = tmp_path / f"aimock-{len(started)}.log"
            model = stack.enter_context(FakeModel(replies, log, *options))
            started.append(model)
            return model

        yield start
    for model in started:
        # Shown where the test fails.
        print(model.log)  # noqa: T201


@pytest.fixture
def driven(agent_home: AgentHome) -> Drive:
    def drive(agent: Provider, **settings: Any) -> AbstractAsyncContextManager[DrivenAgent]:
        return driven_agent(agent, agent_home, **settings)

    return drive
