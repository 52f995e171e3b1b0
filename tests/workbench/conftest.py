"""One browser and one Edge for all tests of a worker, one fresh page for each test.

Tests run on one event loop for the whole session, since that is where the browser's pipe lives:
`pytestmark = BROWSER`, of `tests.workbench.loops`.
"""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.client.edge_processes import TOKEN
from tests.workbench import asking_fixtures, teams
from tests.workbench.browsers import Watched, chromium, watched_page
from tests.workbench.edges import WorkbenchEdge
from tests.workbench.seeding import client_of

requests, asking_edge = asking_fixtures.requests, asking_fixtures.asking_edge
open_page, start = asking_fixtures.open_page, asking_fixtures.start
tell_team = teams.tell_team

NewPage = Callable[..., AbstractAsyncContextManager[Watched]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncGenerator[Browser]:
    async with chromium() as running:
        yield running


@pytest.fixture(scope="session")
def workbench_edge(tmp_path_factory: pytest.TempPathFactory) -> Generator[WorkbenchEdge]:
    """A real Edge as a process of its own, with the demo agent, which does not dawdle."""
    with WorkbenchEdge(tmp_path_factory.mktemp("edge")) as running:
        yield running


@pytest.fixture
def http(workbench_edge: WorkbenchEdge) -> Generator[httpx.Client]:
    """Asks that Edge, with its token."""
    with client_of(workbench_edge.url) as client:
        yield client


@pytest.fixture
def new_page(browser: Browser, workbench_edge: WorkbenchEdge) -> NewPage:
    """`async with new_page(theme="dark", size="phone") as watched`: a page of that Edge's."""

    def open_new_page(**wanted: Any) -> AbstractAsyncContextManager[Watched]:
        return watched_page(browser, workbench_edge.url, **wanted)

    return open_new_page


@pytest_asyncio.fixture(loop_scope="session")
async def signed_in(new_page: NewPage) -> AsyncGenerator[Watched]:
    """A page on its home screen, as of somebody who followed the link of a start."""
    async with new_page() as watched:
        await watched.page.goto(f"/#token={TOKEN}")
        yield watched
