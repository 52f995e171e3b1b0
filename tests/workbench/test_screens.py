"""Every screen, in both themes, wide and on a phone: no serious finding of axe, nothing wider than
the page, and a picture of each in a folder that is not kept.
"""

from collections.abc import Awaitable, Callable

import httpx
import pytest
from playwright.async_api import Page, expect

from tests.client.edge_processes import TOKEN
from tests.workbench.browsers import SIZES, Watched
from tests.workbench.conftest import NewPage
from tests.workbench.loops import BROWSER
from tests.workbench.opening import open_thread, start_run, turned_to
from tests.workbench.tours import run_tour

pytestmark = BROWSER

TABS = ("Conversation", "Timeline", "Graph", "Team", "Artifacts", "Evidence", "Diagnostics")
WIDER_THAN_THE_PAGE = "document.scrollingElement.scrollWidth - innerWidth"


async def in_every_look(watched: Watched, name: str) -> None:
    """The same screen in all themes and sizes, without loading it anew."""
    page = watched.page
    for size, (width, height) in SIZES.items():
        await page.set_viewport_size({"width": width, "height": height})
        for theme in ("light", "dark"):
            await page.emulate_media(color_scheme=theme)
            await watched.screenshot(f"screen-{name}-{theme}-{size}")
            assert await watched.accessibility() == [], (name, theme, size)
        assert await page.evaluate(WIDER_THAN_THE_PAGE) <= 0, (name, size)


@pytest.mark.requirement("workbench.accessible")
async def test_no_screen_of_a_thread_has_a_serious_finding_in_any_look(
    new_page: NewPage, http: httpx.Client
):
    thread = run_tour(http)
    async with new_page() as watched:
        page = watched.page
        await open_thread(page, thread)
        for tab in TABS:
            await turned_to(page, tab)
            await in_every_look(watched, tab.lower())


@pytest.mark.requirement("workbench.accessible")
async def test_no_page_around_threads_has_a_serious_finding_in_any_look(
    new_page: NewPage, http: httpx.Client
):
    start_run(http, "demo: approve", "Waits in the inbox")
    async with new_page() as watched:
        page = watched.page
        await page.goto("/")
        await expect(page.get_by_label("Token")).to_be_visible()
        await in_every_look(watched, "sign-in")
        await page.goto(f"/#token={TOKEN}")
        for name, arrive in PLACES.items():
            await arrive(page)
            await in_every_look(watched, name)


async def _home(page: Page) -> None:
    await page.goto("/")
    await expect(page.get_by_label("What should the agent do?")).to_be_visible()


async def _inbox(page: Page) -> None:
    await page.goto("/inbox")
    await expect(page.get_by_role("group", name="Approval: ").first).to_be_visible()


async def _keys(page: Page) -> None:
    await page.get_by_role("main").press("?")
    await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


async def _nowhere(page: Page) -> None:
    await page.goto("/no/such/place")
    await expect(page.get_by_text("Page not found")).to_be_visible()


PLACES: dict[str, Callable[[Page], Awaitable[None]]] = {
    "home": _home,
    "inbox": _inbox,
    "keys": _keys,
    "nowhere": _nowhere,
}
