"""A thread of fifty thousand facts: it opens at its end, scrolls, goes to any moment, and what the
page holds of it is bounded by what is on screen.
"""

import httpx
import pytest
from playwright.async_api import expect

from tests.workbench.conftest import NewPage
from tests.workbench.loops import BROWSER
from tests.workbench.memory import elements, heap_bytes
from tests.workbench.opening import conversation, open_thread
from tests.workbench.seeding import post
from tests.workbench.working import work_facts

pytestmark = BROWSER

TURNS = 5_200
FACTS = 50_000
MOST_ELEMENTS = 3_000
DRAWN = {
    "Timeline": "[role=slider]",
    "Graph": ".react-flow__node",
    "Diagnostics": "section",
    "Conversation": "[data-index]",
}
"""What each screen has drawn once it is there."""
MOST_HEAP_BYTES = 200_000_000
"""Several times of what it takes, and a small part of what would hold everything as elements."""


@pytest.mark.timeout(900)
@pytest.mark.requirement("workbench.long")
async def test_fifty_thousand_facts_open_scroll_and_scrub_within_bounds(
    new_page: NewPage, http: httpx.Client
):
    facts = list(work_facts("long", TURNS))
    assert len(facts) >= FACTS
    post(http, facts)
    async with new_page() as watched:
        page = watched.page
        await open_thread(page, "long")
        last = page.get_by_text(f"Answer {TURNS} begins and ends")
        await expect(last).to_be_in_viewport()
        await conversation(page).evaluate("(rows) => (rows.scrollTop = 0)")
        await expect(page.get_by_text("Question 1", exact=True)).to_be_in_viewport()
        await page.get_by_role("button", name="Latest").click()
        await expect(last).to_be_in_viewport()
        for tab, drawn in DRAWN.items():
            await page.get_by_role("tab", name=tab).click()
            await expect(
                page.get_by_role("tabpanel", name=tab).locator(drawn).first
            ).to_be_visible()
            assert await elements(page) < MOST_ELEMENTS, tab
        assert await heap_bytes(page) < MOST_HEAP_BYTES
        middle = facts[FACTS // 2]
        answered = next(
            fact for fact in facts[FACTS // 2 :: -1] if fact["eventClass"] == "text.final"
        )
        await page.goto(f"/threads/long?at={middle['id']}")
        await expect(page.get_by_text(answered["payload"]["text"])).to_be_in_viewport()
        await expect(page.get_by_text("owns this thread")).to_have_count(0)
        assert await elements(page) < MOST_ELEMENTS
