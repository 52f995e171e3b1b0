"""A page that is reloaded, or whose Edge dies: nothing is doubled, nothing lost, and it says so.

What the page shows in the end is compared with what the Edge's journal says, character by
character.
"""

import re
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.client.edge_processes import TOKEN
from tests.workbench.browsers import Watched, watched_page
from tests.workbench.edges import WorkbenchEdge
from tests.workbench.loops import BROWSER
from tests.workbench.opening import KEEP_SOCKETS, badge, conversation, open_thread
from tests.workbench.seeding import client_of, fact, post

pytestmark = BROWSER

PIECES = [f"piece {number} of the answer, " for number in range(120)]
WHOLE = "".join(PIECES) + "and its end."
IS_TICKET = re.compile(r"/v1/tickets$")
LOST = ["ERR_CONNECTION", "WebSocket", "ERR_EMPTY_RESPONSE", "ERR_SOCKET"]
"""What a browser says of an Edge that is gone."""

NOTE_BADGES = """() => {
  const badge = document.querySelector("header [role=status]");
  window.__badges = [badge.textContent];
  new MutationObserver(() => {
    if (window.__badges.at(-1) !== badge.textContent) window.__badges.push(badge.textContent);
  }).observe(badge, { childList: true, characterData: true, subtree: true });
}"""


Said = tuple[str, dict[str, Any]]


class Streaming:
    """An agent elsewhere that answers in pieces, as far as it is told to."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        self._facts = self._stream_facts()

    def next(self, count: int) -> list[dict[str, Any]]:
        return [next(self._facts) for _ in range(count)]

    def rest(self) -> list[dict[str, Any]]:
        return list(self._facts)

    def _stream_facts(self) -> Iterator[dict[str, Any]]:
        fields = {"messageId": f"{self.thread_id}-m", "partId": f"{self.thread_id}-p"}
        ids = {"messageId": fields["messageId"]}
        opening: list[Said] = [("thread.started", {"title": "Streamed"}), ("turn.started", {})]
        pieces: list[Said] = [("text.delta", {**fields, "delta": piece}) for piece in PIECES]
        ending: list[Said] = [("text.final", {**fields, "text": WHOLE}), ("turn.completed", {})]
        for sequence, (name, payload) in enumerate([*opening, *pieces, *ending], 1):
            yield fact(self.thread_id, sequence, name, payload, **ids if "text" in name else {})


@pytest.fixture(scope="module")
def own_edge(tmp_path_factory: pytest.TempPathFactory) -> Generator[WorkbenchEdge]:
    """An Edge that only tests of this module kill."""
    with WorkbenchEdge(tmp_path_factory.mktemp("killed")) as running:
        yield running


@pytest.fixture
def messages(own_edge: WorkbenchEdge) -> Generator[httpx.Client]:
    with client_of(own_edge.url) as client:
        yield client


@asynccontextmanager
async def page_of(browser: Browser, edge: WorkbenchEdge, thread: str) -> AsyncGenerator[Watched]:
    async with watched_page(browser, edge.url) as watched:
        await open_thread(watched.page, thread)
        yield watched


def is_ticket(url: str) -> bool:
    return IS_TICKET.search(url) is not None


async def abort_route(route: Route) -> None:
    await route.abort()


async def read_conversation(page: Page) -> str:
    return await conversation(page).inner_text()


def read_final_text(http: httpx.Client, thread: str) -> str:
    """The answer, put together from the facts that the Edge keeps."""
    rows = http.get("/v1/facts", params={"threadId": thread, "limit": 1000}).json()["items"]
    finals = [row["fact"] for row in rows if row["fact"]["eventClass"] == "text.final"]
    return finals[-1]["payload"]["text"]


@pytest.mark.requirement("workbench.reload")
async def test_a_reload_amid_an_answer_doubles_nothing_and_loses_nothing(
    browser: Browser, own_edge: WorkbenchEdge, messages: httpx.Client
):
    agent = Streaming("reloaded")
    post(messages, agent.next(42))
    async with page_of(browser, own_edge, agent.thread_id) as watched:
        page = watched.page
        await expect(page.get_by_text("piece 39 of the answer")).to_be_visible()
        for _ in range(3):
            post(messages, agent.next(10))
            await page.reload(wait_until="commit")
            post(messages, agent.next(10))
        await expect(page.get_by_text("piece 99 of the answer")).to_be_visible()
        assert await read_conversation(page) == "".join(PIECES[:100]).rstrip()
        post(messages, agent.rest())
        await expect(page.get_by_text("and its end.")).to_be_visible()
        assert await read_conversation(page) == read_final_text(messages, agent.thread_id)


@pytest.mark.fault
@pytest.mark.requirement("workbench.restart")
async def test_an_edge_that_is_killed_and_comes_back_is_found_again_exactly(
    browser: Browser, own_edge: WorkbenchEdge, messages: httpx.Client
):
    agent = Streaming("killed")
    post(messages, agent.next(42))
    async with page_of(browser, own_edge, agent.thread_id) as watched:
        watched.expected = [*LOST, "ERR_FAILED"]
        page = watched.page
        await expect(page.get_by_text("piece 39 of the answer")).to_be_visible()
        await page.evaluate(NOTE_BADGES)
        own_edge.kill()
        await expect(badge(page)).to_have_text("Reconnecting")
        await expect(badge(page)).to_have_text("Stale")
        assert await read_conversation(page) == "".join(PIECES[:40]).rstrip()
        # As long as the page cannot come again, nothing that happens is shown: it is coming again
        # that makes the state exact.
        await page.route(IS_TICKET, abort_route)
        own_edge.start()
        post(messages, agent.next(40))
        async with page.expect_event("requestfailed", lambda request: is_ticket(request.url)):
            await page.evaluate("dispatchEvent(new Event('online'))")
        await expect(badge(page)).to_have_text("Stale")
        assert await read_conversation(page) == "".join(PIECES[:40]).rstrip()
        await page.unroute(IS_TICKET, abort_route)
        await expect(badge(page)).to_have_text("Live")
        await expect(page.get_by_text("piece 79 of the answer")).to_be_visible()
        assert await read_conversation(page) == "".join(PIECES[:80]).rstrip()
        post(messages, agent.rest())
        await expect(page.get_by_text("and its end.")).to_be_visible()
        assert await read_conversation(page) == read_final_text(messages, agent.thread_id)
        badges = await page.evaluate("window.__badges")
        assert badges == ["Live", "Reconnecting", "Stale", "Live"]


@pytest.mark.requirement("workbench.restart")
async def test_a_socket_that_is_cut_goes_on_at_its_cursor_without_a_snapshot(
    browser: Browser, own_edge: WorkbenchEdge, messages: httpx.Client
):
    agent = Streaming("cut")
    post(messages, agent.next(42))
    async with watched_page(browser, own_edge.url) as watched:
        page = watched.page
        frames: list[str] = []

        def keep(frame: bytes | str) -> None:
            frames.append(str(frame))

        page.on("websocket", lambda socket: socket.on("framereceived", keep))
        await page.add_init_script(KEEP_SOCKETS)
        await page.goto(f"/threads/{agent.thread_id}#token={TOKEN}")
        await expect(page.get_by_text("piece 39 of the answer")).to_be_visible()
        frames.clear()
        await page.evaluate("window.__sockets.forEach((socket) => socket.close())")
        post(messages, agent.rest())
        await expect(page.get_by_text("and its end.")).to_be_visible()
        assert await read_conversation(page) == read_final_text(messages, agent.thread_id)
        assert [frame for frame in frames if "projection.snapshot" in frame] == []
        assert [frame for frame in frames if "projection.delta" in frame] != []


@pytest.mark.requirement("workbench.parts")
async def test_a_part_of_the_page_that_does_not_come_fails_alone_and_comes_later(
    browser: Browser, own_edge: WorkbenchEdge, messages: httpx.Client
):
    agent = Streaming("in-parts")
    post(messages, agent.next(42))
    async with watched_page(browser, own_edge.url) as watched:
        watched.expected = ["ERR_FAILED", "NotLoaded", "could not be loaded"]
        page = watched.page

        async def cut_some(route: Route) -> None:
            if route.request.method == "HEAD" or "/assets/conversation" in route.request.url:
                await route.abort()
            else:
                await route.continue_()

        await page.route("**/*", cut_some)
        await page.goto(f"/threads/{agent.thread_id}#token={TOKEN}")
        await expect(page.get_by_text("This part of the page has not loaded")).to_be_visible()
        await expect(badge(page)).to_have_text("Live")
        await page.unroute("**/*", cut_some)
        await expect(page.get_by_text("piece 39 of the answer")).to_be_visible()
