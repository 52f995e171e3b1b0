"""Everything by keyboard: from signing in to deciding and stopping, without a pointer.

Focus is moved by Tab alone, so whatever a test reaches can be reached; wherever it is, it shows.
"""

import re
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.client.edge_processes import TOKEN
from tests.workbench.browsers import Watched
from tests.workbench.conftest import NewPage
from tests.workbench.loops import BROWSER

pytestmark = BROWSER

MOST_STEPS = 80
FOCUSED = """() => {
  const element = document.activeElement;
  const { outlineStyle, boxShadow } = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  const frame = element.closest("[class*=box], [class*=search]");
  return {
    tag: element.tagName,
    name: element.getAttribute("aria-label") ?? element.textContent.trim(),
    ringed: outlineStyle !== "none" || boxShadow !== "none" || frame !== null,
    seen: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight,
    inDialog: element.closest("dialog") !== null,
  };
}"""


async def read_focus(page: Page) -> dict[str, Any]:
    return await page.evaluate(FOCUSED)


async def tab_to(page: Page, name: str) -> dict[str, Any]:
    """Press Tab until what is called so has the focus; each stop on the way must show."""
    for _ in range(MOST_STEPS):
        await page.keyboard.press("Tab")
        here = await read_focus(page)
        assert here["tag"] == "BODY" or (here["ringed"] and here["seen"]), here
        if re.fullmatch(name, here["name"]):
            return here
    raise AssertionError(f"Tab never came to {name}")


@pytest.mark.requirement("workbench.keyboard")
async def test_from_signing_in_to_deciding_and_stopping_without_a_pointer(new_page: NewPage):
    async with new_page() as watched:
        page = watched.page
        await page.goto("/")
        await expect(page.get_by_label("Token")).to_be_focused()
        await page.keyboard.type(TOKEN)
        await page.keyboard.press("Enter")
        await expect(page.get_by_label("What should the agent do?")).to_be_focused()
        await page.keyboard.type("demo: approve, then g h and / and ?")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("group", name="Approval: Write")).to_be_visible()
        await tab_to(page, "Approve")
        await page.keyboard.press("Enter")
        command = page.get_by_role("group", name="Approval: Run this command?")
        await expect(command).to_be_visible()
        await tab_to(page, "Approval: Run this command.*")
        await page.keyboard.press("d")
        await expect(page.get_by_label("Reason")).to_be_focused()
        await page.keyboard.type("a d g h, not now")
        await expect(page.get_by_label("Reason")).to_have_value("a d g h, not now")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Send")).to_be_visible()
        await tab_to(page, "Message")
        await page.keyboard.type("demo: slow")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
        await tab_to(page, "Stop")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
        await expect(page.get_by_text("Stopped").first).to_be_visible()


@pytest.mark.requirement("workbench.keyboard")
async def test_only_dialogs_keep_the_focus_and_it_goes_back_to_where_it_was(signed_in: Watched):
    page = signed_in.page
    await expect(page.get_by_label("What should the agent do?")).to_be_focused()
    await tab_to(page, "Start|Skip to content")
    await page.get_by_role("button", name="Keyboard shortcuts").focus()
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(dialog).to_be_visible()
    for _ in range(4):
        await page.keyboard.press("Tab")
        here = await read_focus(page)
        # A browser's own dialog lets the focus out to the browser, which the page sees as BODY.
        assert here["inDialog"] or here["tag"] == "BODY", here
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("button", name="Keyboard shortcuts")).to_be_focused()
    await tab_to(page, "Skip to content")


@pytest.mark.requirement("workbench.keyboard")
async def test_shortcuts_go_places_and_never_take_what_is_typed(signed_in: Watched):
    page = signed_in.page
    prompt = page.get_by_label("What should the agent do?")
    await expect(prompt).to_be_focused()
    await page.keyboard.type("g i/?g h")
    await expect(prompt).to_have_value("g i/?g h")
    await expect(page).to_have_url(re.compile(r"/$"))
    await page.get_by_role("main").focus()
    await page.keyboard.type("gi")
    await expect(page).to_have_url(re.compile(r"/inbox$"))
    await page.keyboard.press("/")
    search = page.get_by_role("searchbox")
    await expect(search).to_be_focused()
    await page.keyboard.type("gh?")
    await expect(search).to_have_value("gh?")
    await page.get_by_role("main").focus()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    await page.keyboard.type("gh")
    await expect(page).to_have_url(re.compile(r"/inbox$"))
