"""Stopping on the page: what waited is held in view, and goes on only by hand; and a thread whose
beginning was removed.
"""

import re
from typing import Any

import httpx
import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.workbench.conftest import NewPage
from tests.workbench.loops import BROWSER
from tests.workbench.opening import conversation, open_thread, start_run, state_of

pytestmark = BROWSER


async def say(page: Page, *texts: str) -> None:
    for text in texts:
        await page.get_by_label("Message", exact=True).fill(text)
        await page.get_by_role("button", name="Queue", exact=True).click()
        await expect(page.get_by_label("Message", exact=True)).to_have_value("")


def held_of(page: Page) -> Locator:
    return page.get_by_role("region", name="Held messages")


def row_of(page: Page, text: str) -> Locator:
    return held_of(page).get_by_role("listitem").filter(has_text=text)


def stop_run(http: httpx.Client, run_id: str) -> None:
    """Stop a run, so that nothing waits in the inbox of other tests."""
    assert http.post(f"/v1/runs/{run_id}:cancel").is_success


def health_of(http: httpx.Client) -> dict[str, Any]:
    return http.get("/v1/health").json()


@pytest.mark.requirement("workbench.stop.held")
@pytest.mark.parametrize("size", ["wide", "phone"])
async def test_after_a_stop_messages_are_continued_edited_and_discarded_one_by_one(
    new_page: NewPage, http: httpx.Client, size: str
):
    thread = start_run(http, "demo: approve", f"Stopped {size}")["threadId"]
    async with new_page(size=size) as watched, new_page() as other:
        page = watched.page
        await open_thread(page, thread)
        await open_thread(other.page, thread)
        await say(page, "demo: help one", "demo: help two", "demo: help three")
        waiting = page.get_by_role("list", name="Waiting").get_by_role("listitem")
        await expect(waiting).to_have_count(3)
        await page.get_by_role("button", name="Stop", exact=True).click()
        for screen in (page, other.page):
            await expect(held_of(screen).get_by_role("listitem")).to_have_count(3)
            await expect(held_of(screen)).to_contain_text("These 3 messages are held")
            await expect(conversation(screen)).to_contain_text(
                re.compile("Stopped.*by .+ via workbench")
            )
        await watched.screenshot(f"held-{size}")
        await page.reload()
        await expect(held_of(page).get_by_role("listitem")).to_have_count(3)

        await page.get_by_label("Message", exact=True).fill("draft")
        await row_of(page, "help two").get_by_role("button", name="Edit").click()
        await expect(page.get_by_label("Message", exact=True)).to_have_value(
            "draft\ndemo: help two"
        )
        await expect(held_of(page).get_by_role("listitem")).to_have_count(2)
        await row_of(page, "help three").get_by_role("button", name="Discard").click()
        await expect(held_of(page)).to_contain_text("This message is held")
        await row_of(page, "help one").get_by_role("button", name="Continue").click()
        for screen in (page, other.page):
            await expect(held_of(screen)).to_have_count(0)
            await expect(conversation(screen)).to_contain_text("demo: help one")
    prompts = [turn.get("prompt") for turn in state_of(http, thread)["turns"].values()]
    assert "demo: help two" not in str(prompts)
    assert "demo: help three" not in str(prompts)


@pytest.mark.requirement("workbench.approvals.times")
async def test_a_decision_shows_when_it_was_made_sent_and_applied(
    new_page: NewPage, http: httpx.Client
):
    run = start_run(http, "demo: approve", "Applied")
    async with new_page() as watched:
        page = watched.page
        await open_thread(page, run["threadId"])
        await page.get_by_role("button", name="Approve", exact=True).first.click()
        await page.reload()
        await conversation(page).get_by_role("button", name=re.compile("write")).first.click()
        caption = conversation(page).get_by_text(re.compile("Approved by"))
        await expect(caption).to_contain_text(
            re.compile("decided .+, sent to the agent .+, applied .+")
        )
        await page.goto("/inbox")
        card = page.locator("details", has_text="Write").first
        await card.locator("summary").click()
        for name in ("Decided", "Sent to the agent", "Applied"):
            await expect(
                card.get_by_role("term").filter(has_text=re.compile(f"^{name}$"))
            ).to_be_visible()
    stop_run(http, run["runId"])


@pytest.mark.requirement("workbench.health")
async def test_an_edge_that_cannot_record_says_so_at_the_top(new_page: NewPage, http: httpx.Client):
    thread = start_run(http, "demo: help", "Not well")["threadId"]
    health = health_of(http)
    reason = "the journal could not be written: database or disk is full"
    broken = health | {
        "status": "degraded",
        "code": "journal_unwritable",
        "details": health["details"] | {"reason": reason},
    }
    is_broken = True

    async def answer(route: Route) -> None:
        await route.fulfill(status=503 if is_broken else 200, json=broken if is_broken else health)

    async with new_page() as watched:
        page = watched.page
        watched.expected.append("503")
        await open_thread(page, thread)
        await page.route("**/v1/health", answer)
        await page.reload()
        badge = page.get_by_role("status").filter(has_text="Cannot save")
        await expect(badge).to_be_visible()
        await badge.hover()
        await expect(page.get_by_role("tooltip").first).to_contain_text(reason)
        await watched.screenshot("degraded")
        is_broken = False
        await expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible(
            timeout=60_000
        )


def remove_history(http: httpx.Client) -> None:
    """Remove every run that has ended."""
    removed = http.post("/v1/retention/runs", json={"keepDays": 1e-9})
    assert (removed.status_code, removed.json()["runs"] >= 1) == (200, True)


@pytest.mark.requirement("workbench.retention")
async def test_a_thread_says_that_its_beginning_was_removed(new_page: NewPage, http: httpx.Client):
    thread = start_run(http, "demo: help", "Long ago")["threadId"]
    async with new_page() as watched:
        page = watched.page
        await open_thread(page, thread)
        await expect(page.get_by_text("completed").first).to_be_visible()
        remove_history(http)
        notice = page.get_by_text(re.compile("Earlier history was removed on .* by retention"))
        await expect(notice).to_be_visible()
        await page.reload()
        await expect(notice).to_be_visible()
        await expect(page.get_by_role("heading", name="Long ago")).to_be_visible()
        await watched.screenshot("history-removed")
