"""Time travel in a real browser: every way to a moment, what is shown there, and what it costs."""

import re
from time import monotonic
from typing import Any

import httpx
import pytest
from playwright.async_api import Locator, Page, Request, expect

from tests.client.edge_processes import PATIENCE, TOKEN
from tests.workbench.browsers import Size, Theme, Watched
from tests.workbench.conftest import NewPage
from tests.workbench.loops import BROWSER
from tests.workbench.seeding import message_facts, post
from tests.workbench.working import work_facts

pytestmark = BROWSER

LONG = 3_000
MANY_ROWS = 80
"""Rows of a list that are drawn at once, at most; far fewer than there are."""


@pytest.fixture(scope="session")
def facts() -> list[dict[str, Any]]:
    return list(work_facts("travelled", 6))


@pytest.fixture
def six_turns(http: httpx.Client, facts: list[dict[str, Any]]) -> str:
    """A thread of six turns; sending it again is no news."""
    post(http, facts)
    return "travelled"


def sequence_of(facts: list[dict[str, Any]], event_class: str, which: int) -> int:
    """The number of a fact: the first, second, … of its class."""
    return [fact["sequence"] for fact in facts if fact["eventClass"] == event_class][which - 1]


def wait_for_approval(http: httpx.Client) -> dict[str, Any]:
    """What a run of the demo asks before it does anything."""
    body = {"agentId": "demo", "prompt": "approve"}
    wanted = {"status": "pending", "runId": http.post("/v1/runs", json=body).json()["runId"]}
    end = monotonic() + PATIENCE
    while not (rows := http.get("/v1/approvals", params=wanted).json()["items"]):
        assert monotonic() < end, "the demo asks nothing"
    return rows[0]


def give_up(http: httpx.Client, approval: dict[str, Any]) -> None:
    """Stop the run that asked, so that nothing waits in the inbox of other tests."""
    assert http.post(f"/v1/runs/{approval['runId']}:cancel", json={}).is_success
    end = monotonic() + PATIENCE
    while http.get(
        "/v1/approvals", params={"runId": approval["runId"], "status": "pending"}
    ).json()["items"]:
        assert monotonic() < end, "what was asked still waits"


def parents(http: httpx.Client, title: str) -> list[str]:
    """The threads that those of a title were forked from."""
    found = http.get("/v1/threads", params={"search": title}).json()["items"]
    return [row["parentThreadId"] for row in found]


def banner(page: Page) -> Locator:
    return page.get_by_role("region", name=re.compile("^Viewing "))


def strip(page: Page) -> Locator:
    return page.get_by_role("slider", name="Moment")


def fact_options(page: Page) -> Locator:
    return page.get_by_role("listbox", name="Facts").get_by_role("option")


async def ensure_at(page: Page, sequence: int) -> None:
    """The page shows this moment, and its address names it."""
    await expect(banner(page)).to_contain_text(f"fact {sequence} of")
    await expect(page).to_have_url(re.compile(rf"[?&]at={sequence}\b"))


@pytest.mark.requirement("workbench.travel")
@pytest.mark.requirement("workbench.travel-reading")
async def test_a_link_shows_its_moment_in_every_panel_and_nothing_can_be_said_there(
    signed_in: Watched, six_turns: str, facts: list[dict[str, Any]]
):
    page, at = signed_in.page, sequence_of(facts, "turn.completed", 2)
    await page.goto(f"/threads/{six_turns}?at={at}")
    await ensure_at(page, at)
    await expect(page.get_by_text("Answer 2 begins and ends")).to_be_visible()
    await expect(page.get_by_text("Question 3")).to_have_count(0)
    await expect(page.get_by_role("textbox", name="Message")).to_have_count(0)
    await expect(page.get_by_text("owns this thread")).to_have_count(0)
    await page.get_by_role("tab", name="Timeline").click()
    await expect(strip(page)).to_have_attribute("aria-valuenow", str(at))
    await expect(page.get_by_label("Fact as JSON")).to_contain_text(f'"sequence": {at}')
    await page.get_by_role("tab", name="Diagnostics").click()
    await expect(page.get_by_text("Complete up to fact").locator("..")).to_contain_text(f"{at}")
    await ensure_at(page, at)
    await page.get_by_role("tab", name="Conversation").click()
    await page.get_by_role("button", name="Back to live").click()
    await expect(banner(page)).to_have_count(0)
    await expect(page.get_by_text("Question 6")).to_be_visible()
    await expect(page.get_by_text("elsewhere owns this thread")).to_be_visible()
    await expect(page).not_to_have_url(re.compile("at="))
    await page.go_back()
    await ensure_at(page, at)


@pytest.mark.requirement("workbench.travel-reading")
async def test_what_waits_for_a_decision_cannot_be_decided_in_the_past(
    signed_in: Watched, http: httpx.Client
):
    page = signed_in.page
    approval = wait_for_approval(http)
    try:
        await page.goto(f"/threads/{approval['threadId']}")
        decide = page.get_by_role("button", name=re.compile("^Deny"))
        await expect(decide.first).to_be_visible()
        await page.get_by_role("tab", name="Timeline").click()
        await strip(page).press("ArrowLeft")
        await expect(banner(page)).to_be_visible()
        await page.get_by_role("tab", name="Conversation").click()
        await expect(page.get_by_role("group", name=re.compile("^Approval"))).to_be_visible()
        await expect(decide).to_have_count(0)
    finally:
        give_up(http, approval)


@pytest.mark.requirement("workbench.travel")
async def test_keys_step_by_fact_and_by_turn_to_the_first_and_back_to_live(
    signed_in: Watched, six_turns: str, facts: list[dict[str, Any]]
):
    page, last = signed_in.page, facts[-1]["sequence"]
    await page.goto(f"/threads/{six_turns}?tab=timeline")
    await expect(strip(page)).to_have_attribute("aria-valuetext", "Live")
    await strip(page).press("ArrowLeft")
    await ensure_at(page, last)
    await strip(page).press("ArrowLeft")
    await ensure_at(page, last - 1)
    await strip(page).press("Shift+ArrowLeft")
    await ensure_at(page, sequence_of(facts, "turn.started", 6))
    await strip(page).press("Shift+ArrowRight")
    await ensure_at(page, last)
    await strip(page).press("Home")
    await ensure_at(page, 1)
    await strip(page).press("ArrowRight")
    await ensure_at(page, 2)
    await page.get_by_role("listbox", name="Facts").press("ArrowDown")
    await ensure_at(page, 3)
    await strip(page).press("End")
    await expect(banner(page)).to_have_count(0)
    await expect(strip(page)).to_have_attribute("aria-valuetext", "Live")


@pytest.mark.requirement("workbench.travel")
@pytest.mark.requirement("workbench.travel-cost")
async def test_a_drag_across_a_long_thread_waits_for_one_moment_at_a_time(
    signed_in: Watched, http: httpx.Client
):
    page = signed_in.page
    post(http, message_facts("dragged", (f"words {number}" for number in range(LONG)), "Long"))
    asking = Asking(page)
    await page.goto("/threads/dragged?tab=timeline")
    await expect(page.get_by_text(f"{LONG + 2:,} facts ·")).to_be_visible()
    assert await fact_options(page).count() < MANY_ROWS
    box = await strip(page).bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 20)
    await page.mouse.down()
    await expect(strip(page)).not_to_have_attribute("aria-valuetext", "Live")
    box = await strip(page).bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20, steps=60)
    await page.mouse.up()
    # Less than one step of the drag away: the page has drawn the last one.
    await page.wait_for_function(
        "([strip, middle, slack]) => Math.abs(strip.ariaValueNow - middle) < slack",
        arg=[await strip(page).element_handle(), LONG / 2, LONG / 250],
    )
    place = int(await strip(page).get_attribute("aria-valuenow") or 0)
    await ensure_at(page, place)
    await page.get_by_role("tab", name="Conversation").click()
    await expect(page.get_by_text(f"words {place - 3}", exact=True)).to_be_visible()
    await expect(page.get_by_text(f"words {place - 2}", exact=True)).to_have_count(0)
    assert asking.at_once == 1
    assert asking.answered >= 1


class Asking:
    """How many moments a page waits for at the same time; those it gave up do not count."""

    def __init__(self, page: Page) -> None:
        self.open: set[str] = set()
        self.at_once = self.answered = 0
        page.on("request", self._on_request)
        page.on("requestfinished", self._on_finished)
        page.on("requestfailed", self._on_end)

    def _on_request(self, request: Request) -> None:
        if "/projection?at=" in request.url:
            self.open.add(request.url)
            self.at_once = max(self.at_once, len(self.open))

    def _on_finished(self, request: Request) -> None:
        self.answered += request.url in self.open
        self._on_end(request)

    def _on_end(self, request: Request) -> None:
        self.open.discard(request.url)


@pytest.mark.requirement("workbench.travel")
async def test_the_strip_is_seen_closer_and_by_time_and_its_marks_are_listed(
    signed_in: Watched, six_turns: str, facts: list[dict[str, Any]]
):
    page = signed_in.page
    await page.goto(f"/threads/{six_turns}?tab=timeline&at=20")
    await ensure_at(page, 20)
    before = await strip(page).locator("path").first.get_attribute("d")
    await strip(page).press("+")
    assert await strip(page).locator("path").first.get_attribute("d") != before
    await page.get_by_role("button", name="Fit").click()
    assert await strip(page).locator("path").first.get_attribute("d") == before
    await page.get_by_label("Scale").select_option("By time")
    await strip(page).press("ArrowRight")
    await ensure_at(page, 21)
    await page.get_by_role("button", name="Failures").click()
    failed = [fact["sequence"] for fact in facts if fact["eventClass"].endswith(".failed")]
    await expect(fact_options(page)).to_have_count(len(failed))
    await fact_options(page).first.click()
    await ensure_at(page, failed[0])


@pytest.mark.requirement("workbench.travel-play")
async def test_a_thread_is_played_to_its_end_and_paused_by_a_step(
    signed_in: Watched, six_turns: str, facts: list[dict[str, Any]]
):
    page, last = signed_in.page, facts[-1]["sequence"]
    await page.goto(f"/threads/{six_turns}?at={last - 3}")
    await ensure_at(page, last - 3)
    await page.get_by_label("Speed").select_option("By fact")
    await page.get_by_role("button", name="Play").click()
    await expect(page.get_by_role("button", name="Pause")).to_be_visible()
    await ensure_at(page, last)
    await expect(page.get_by_role("button", name="Play")).to_be_visible()
    await page.get_by_label("Speed").select_option("16×")
    await page.get_by_role("button", name="Play").click()
    await expect(banner(page)).to_contain_text(re.compile(r"fact [5-9] of"))
    await page.get_by_role("button", name="Pause").click()
    await expect(page.get_by_role("button", name="Play")).to_be_visible()
    place = int(await strip(page).get_attribute("aria-valuenow") or 0)
    assert place < last
    await ensure_at(page, place)


@pytest.mark.requirement("workbench.travel-fork")
@pytest.mark.requirement("workbench.travel")
async def test_a_moment_is_linked_to_and_forked_from(
    signed_in: Watched, six_turns: str, facts: list[dict[str, Any]], http: httpx.Client
):
    page, at = signed_in.page, sequence_of(facts, "turn.completed", 1)
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.goto(f"/threads/{six_turns}?tab=timeline&at={at}")
    await ensure_at(page, at)
    await page.get_by_role("button", name="Copy link").click()
    await expect(page.get_by_text("Link to this moment copied")).to_be_visible()
    link = await page.evaluate("navigator.clipboard.readText()")
    assert link.endswith(f"/threads/{six_turns}?tab=timeline&at={at}")
    await page.get_by_role("button", name="Fork from here").click()
    await page.get_by_label("Title").fill("Another way")
    await page.get_by_role("button", name="Create thread").click()
    await expect(page.get_by_role("heading", name="Another way")).to_be_visible()
    await expect(page.get_by_text("Answer 1 begins and ends")).to_be_visible()
    await expect(page.get_by_text("Answer 2 begins and ends")).to_have_count(0)
    await expect(banner(page)).to_have_count(0)
    await expect(page.get_by_text(re.compile("^Forked by .+ via workbench$"))).to_be_visible()
    await signed_in.screenshot("forked")
    await page.get_by_role("link", name="Forked").click()
    await expect(page).to_have_url(re.compile(six_turns))
    assert parents(http, "Another way") == [six_turns]


@pytest.mark.requirement("workbench.travel")
@pytest.mark.parametrize("at", ["4711", "no-such-event"])
async def test_a_moment_that_is_none_is_said_to_be_so_and_leads_back(
    signed_in: Watched, six_turns: str, at: str
):
    signed_in.expected = ["400"]
    page = signed_in.page
    await page.goto(f"/threads/{six_turns}?at={at}")
    await expect(page.get_by_text("This moment cannot be shown")).to_be_visible()
    await page.get_by_role("button", name="Back to live").click()
    await expect(page.get_by_text("Question 6")).to_be_visible()


@pytest.mark.requirement("workbench.travel")
@pytest.mark.parametrize(("theme", "size"), [("dark", "wide"), ("light", "phone")])
async def test_the_past_reads_well_in_both_themes_and_on_a_phone(
    new_page: NewPage, six_turns: str, theme: Theme, size: Size
):
    async with new_page(theme=theme, size=size) as watched:
        page = watched.page
        await page.goto(f"/#token={TOKEN}")
        await page.wait_for_function("!location.href.includes('token')")
        for tab in ("timeline", "conversation"):
            await page.goto(f"/threads/{six_turns}?tab={tab}&at=20")
            await ensure_at(page, 20)
            assert await watched.accessibility() == []
            assert await page.evaluate("document.body.scrollWidth <= window.innerWidth")
            await watched.screenshot(f"past-{tab}-{theme}-{size}")
