"""Fixtures of tests in which agents ask: an Edge with the asking agent, runs, and pages of it."""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser

from tests.client.edge_processes import TOKEN
from tests.workbench.asking import AskingEdge
from tests.workbench.browsers import Watched, watched_page
from tests.workbench.seeding import client_of

ENDED = ("finished", "failed", "cancelled")

OpenPage = Callable[..., AbstractAsyncContextManager[Watched]]
Start = Callable[..., dict[str, Any]]


def rows_of(client: httpx.Client, address: str, **wanted: str) -> list[dict[str, Any]]:
    """What a list of the Edge holds, newest first."""
    return client.get(address, params=wanted).json()["items"]


def say(client: httpx.Client, thread_id: str, text: str, agent: str = "demo") -> None:
    """Say something to an agent on a thread that there is."""
    body = {"text": text, "agentId": agent}
    answer = client.post(f"/v1/threads/{thread_id}/messages", json=body)
    assert answer.is_success, answer.text


@pytest.fixture(scope="session")
def asking_edge(tmp_path_factory: pytest.TempPathFactory) -> Generator[AskingEdge]:
    with AskingEdge(tmp_path_factory.mktemp("asking")) as running:
        yield running


@pytest.fixture
def requests(asking_edge: AskingEdge) -> Generator[httpx.Client]:
    """Asks that Edge, with its token."""
    with client_of(asking_edge.url) as client:
        yield client


@pytest.fixture
def start(requests: httpx.Client) -> Generator[Start]:
    """`start("approve")`: a run, of the demo unless another agent is named. What is left of it in
    the end is cancelled, so that nothing waits in the inbox of the next test.
    """
    threads: list[str] = []

    def start_run(prompt: str, agent: str = "demo") -> dict[str, Any]:
        answer = requests.post("/v1/runs", json={"agentId": agent, "prompt": prompt})
        assert answer.status_code == 202, answer.text
        threads.append(answer.json()["threadId"])
        return answer.json()

    yield start_run
    for thread in threads:
        for row in rows_of(requests, "/v1/runs", threadId=thread):
            if row["status"] not in ENDED:
                requests.post(f"/v1/runs/{row['runId']}:cancel", json={})


@pytest.fixture
def open_page(browser: Browser, asking_edge: AskingEdge) -> OpenPage:
    """`async with open_page("/inbox", theme="dark")`: a page of somebody who is signed in."""

    @asynccontextmanager
    async def open_signed_in(address: str = "/", **wanted: Any) -> AsyncGenerator[Watched]:
        async with watched_page(browser, asking_edge.url, **wanted) as watched:
            await watched.page.goto(f"{address}#token={TOKEN}")
            yield watched

    return open_signed_in
