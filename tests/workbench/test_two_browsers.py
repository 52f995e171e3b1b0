"""Two people, one thread: both see the same, and what one decides is decided for the other."""

from contextlib import AsyncExitStack

import httpx
import pytest
from playwright.async_api import expect

from tests.workbench.conftest import NewPage
from tests.workbench.loops import BROWSER
from tests.workbench.opening import (
    KEEP_SOCKETS,
    conversation,
    decide,
    open_thread,
    pending_approvals,
    start_run,
)

pytestmark = BROWSER


@pytest.mark.requirement("workbench.together")
async def test_what_one_browser_decides_resolves_in_the_other_and_both_show_the_same(
    new_page: NewPage, http: httpx.Client
):
    thread = start_run(http, "demo: approve", "Decided together")["threadId"]
    async with AsyncExitStack() as stack:
        pages = [(await stack.enter_async_context(new_page())).page for _ in range(2)]
        for page in pages:
            await open_thread(page, thread)
            await expect(page.get_by_role("button", name="Approve")).to_be_visible()
        here, there = pages
        for requests, page in zip(("Write ", "Run this command?"), pages, strict=True):
            card = page.get_by_role("group", name=f"Approval: {requests}")
            await card.get_by_role("button", name="Approve").click()
            for each in pages:
                await expect(each.get_by_role("group", name=f"Approval: {requests}")).to_have_count(
                    0
                )
        for page in pages:
            await expect(page.get_by_text("That was all.")).to_be_visible()
        shown = [await conversation(page).inner_text() for page in pages]
        assert shown[0] == shown[1]
        await here.get_by_label("Message").fill("demo: help")
        await here.get_by_label("Message").press("Enter")
        for page in pages:
            await expect(page.get_by_text("I can show:")).to_be_visible()
        await expect(there.get_by_text("demo: help", exact=True).first).to_be_visible()


@pytest.mark.requirement("workbench.together")
async def test_a_decision_that_came_too_late_is_refused_and_says_who_was_first(
    new_page: NewPage, http: httpx.Client
):
    run = start_run(http, "demo: approve", "Decided first elsewhere")
    async with new_page() as watched:
        watched.expected = ["409"]
        page = watched.page
        await page.add_init_script(KEEP_SOCKETS)
        await open_thread(page, run["threadId"])
        await expect(page.get_by_role("button", name="Approve")).to_be_visible()
        # Nothing that happens reaches the page any more, as with a stream that is slow.
        await page.evaluate("window.__sockets.forEach((socket) => (socket.onmessage = null))")
        (requests,) = pending_approvals(http, run["threadId"])
        decide(http, run, requests["approvalId"], "deny")
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_role("alert")).to_contain_text("decided first")
