"""The twelve acceptance scenarios of the projection contract, as somebody at the page sees them.

Each tells the facts of the scenario of that name, in its order, as another runtime would.
"""

from typing import Any

import httpx
import pytest
from playwright.async_api import Locator, Page, expect

from factwire.conformance.scenario import scenario
from tests.workbench.browsers import Watched
from tests.workbench.loops import BROWSER
from tests.workbench.opening import conversation, open_thread, turned_to
from tests.workbench.seeding import post

pytestmark = BROWSER


class Told:
    """A scenario whose facts come to an Edge, as many as a test wants to look at."""

    def __init__(self, name: str, http: httpx.Client) -> None:
        self._rest: list[Any] = [_make_own(event, name) for event in scenario(name).events]
        self._http = http
        self.thread_id = f"thr_{name}"

    def so_far(self, count: int) -> "Told":
        post(self._http, [self._rest.pop(0) for _ in range(count)])
        return self

    def whole(self) -> "Told":
        return self.so_far(len(self._rest))


def _make_own(event: dict[str, Any], name: str) -> dict[str, Any]:
    """An event whose request no other scenario of the same Edge has."""
    return {**event, "actionId": f"{name}-{event['actionId']}"} if "actionId" in event else event


async def text_of(where: Locator) -> str:
    return await where.inner_text()


def strip(page: Page) -> Locator:
    """Where the runtime says what it is at."""
    return page.get_by_role("tabpanel").get_by_role("status").last


@pytest.mark.requirement("workbench.scenario.status-before-text")
async def test_1_status_before_the_first_text_stands_outside_the_conversation(
    signed_in: Watched, http: httpx.Client
):
    page, messages = signed_in.page, Told("status-before-text", http).so_far(4)
    await open_thread(page, messages.thread_id)
    await expect(strip(page)).to_contain_text("Choosing a model")
    assert await text_of(conversation(page)) == "Why is it slow?"
    messages.whole()
    await expect(conversation(page)).to_contain_text("The cache is cold.")
    assert "Choosing a model" not in await text_of(conversation(page))


@pytest.mark.requirement("workbench.scenario.tool-artifact")
async def test_2_a_call_that_made_something_has_a_card_that_is_tied_to_it(
    signed_in: Watched, http: httpx.Client
):
    page, messages = signed_in.page, Told("tool-artifact", http).whole()
    await open_thread(page, messages.thread_id)
    card = conversation(page).get_by_role("group", name="Artifact")
    await expect(card).to_contain_text("art_1")
    await expect(card).to_contain_text("Created by write")
    await card.get_by_role("link").click()
    await expect(page.get_by_role("tabpanel", name="Artifacts")).to_contain_text("write")


@pytest.mark.requirement("workbench.scenario.final-reconciles")
async def test_3_the_final_text_takes_the_place_of_what_was_streamed(
    signed_in: Watched, http: httpx.Client
):
    page, messages = signed_in.page, Told("final-reconciles", http).so_far(6)
    await open_thread(page, messages.thread_id)
    await expect(conversation(page).get_by_text("Hello", exact=True)).to_be_visible()
    messages.whole()
    await expect(conversation(page).get_by_text("Hello!", exact=True)).to_be_visible()
    assert (await text_of(conversation(page))).count("Hel") == 1


@pytest.mark.requirement("workbench.scenario.action-severity")
async def test_4_a_request_with_a_severity_is_among_what_needs_somebody_and_on_its_card(
    signed_in: Watched, http: httpx.Client
):
    page, messages = signed_in.page, Told("action-severity", http).whole()
    await open_thread(page, messages.thread_id)
    card = page.get_by_role("group", name="Approval: ")
    await expect(card).to_contain_text("Drop the table?")
    await expect(card).to_contain_text("critical")
    needs = page.get_by_role("region", name="Needs you").get_by_role("link")
    await expect(needs.filter(has_text="Clean up.")).to_be_visible()
    await page.get_by_role("link", name="to decide").click()
    waiting = page.get_by_role("group", name="Approval: ").filter(has_text="Drop the table?")
    await expect(waiting).to_contain_text("critical")


@pytest.mark.requirement("workbench.scenario.unknown-artifact")
async def test_5_what_no_fact_says_of_an_artifact_is_unknown_whatever_prose_says(
    signed_in: Watched, http: httpx.Client
):
    page, messages = signed_in.page, Told("unknown-artifact", http).whole()
    await open_thread(page, messages.thread_id)
    card = conversation(page).get_by_role("group", name="Artifact")
    await expect(card).to_contain_text("unknown")
    panel = await turned_to(page, "Artifacts")
    await panel.get_by_role("button").first.click()
    await expect(panel).to_contain_text("unknown")
    for words in (await text_of(card) if await card.count() else "", await text_of(panel)):
        assert "budget" not in words
        assert "spreadsheet" not in words


@pytest.mark.requirement("workbench.scenario.export")
async def test_6_an_export_changes_the_state_of_the_export_and_copies_no_content(
    signed_in: Watched, http: httpx.Client
):
    page, messages = signed_in.page, Told("export-without-content", http).so_far(6)
    await open_thread(page, messages.thread_id)
    card = conversation(page).get_by_role("group", name="Artifact")
    await expect(card).to_contain_text("Export: running")
    messages.whole()
    await expect(card).to_contain_text("Export: completed")
    assert "BINARY-BYTES" not in await text_of(page.locator("body"))
    assert "BINARY-BYTES" not in await text_of(await turned_to(page, "Artifacts"))


@pytest.mark.requirement("workbench.scenario.queued-turn")
async def test_7_a_queued_turn_waits_beside_the_conversation_and_is_no_prose(
    signed_in: Watched, http: httpx.Client
):
    # The queue of another runtime cannot be asked for, only what its facts tell of it.
    signed_in.expected = ["409"]
    page, messages = signed_in.page, Told("queued-turn", http).so_far(5)
    await open_thread(page, messages.thread_id)
    waiting = page.get_by_role("list", name="Waiting")
    await expect(waiting).to_contain_text("And the printer?")
    assert "printer" not in await text_of(conversation(page))
    messages.whole()
    await expect(conversation(page)).to_contain_text("And the printer?")
    await expect(waiting).to_have_count(0)


@pytest.mark.requirement("workbench.scenario.subagent")
async def test_8_a_subagent_shows_as_a_teammate_and_not_in_the_answer(
    signed_in: Watched, http: httpx.Client
):
    page, messages = signed_in.page, Told("subagent-apart", http).whole()
    await open_thread(page, messages.thread_id)
    await expect(conversation(page)).to_contain_text("I am on it.")
    assert "Found it." not in await text_of(conversation(page))
    await expect(await turned_to(page, "Team")).to_contain_text("scout")


@pytest.mark.requirement("workbench.scenario.notification")
async def test_9_a_workers_notification_is_no_message_and_leads_to_its_results(
    signed_in: Watched, http: httpx.Client
):
    page, messages = signed_in.page, Told("notification-apart", http).whole()
    await open_thread(page, messages.thread_id)
    await expect(conversation(page)).to_contain_text("Go on.")
    assert "All tests pass." not in await text_of(conversation(page))
    team = await turned_to(page, "Team")
    await expect(team).to_contain_text("All tests pass.")
    await expect(team).to_contain_text("output:tests")
    await expect(team).to_contain_text("trace:worker")


@pytest.mark.requirement("workbench.scenario.delegated-approval")
async def test_10_a_delegated_approval_names_the_teammate_that_asks(
    signed_in: Watched, http: httpx.Client
):
    page, messages = signed_in.page, Told("delegated-approval", http).whole()
    await open_thread(page, messages.thread_id)
    card = page.get_by_role("group", name="Approval: ")
    await expect(card).to_contain_text("May I read the logs?")
    await expect(card).to_contain_text("scout")
    team = await turned_to(page, "Team")
    await expect(team.get_by_role("group", name="Approval: ")).to_contain_text("scout")


@pytest.mark.requirement("workbench.scenario.compaction")
async def test_11_a_compaction_is_a_boundary_with_a_summary_and_repeats_no_thoughts(
    signed_in: Watched, http: httpx.Client
):
    page, messages = signed_in.page, Told("compaction-boundary", http).whole()
    await open_thread(page, messages.thread_id)
    await expect(conversation(page)).to_contain_text("only a summary")
    await expect(conversation(page)).to_contain_text("We agreed on a plan.")
    for thought in await conversation(page).get_by_role("button", expanded=False).all():
        await thought.click()
    assert "OLD-THOUGHT" not in await text_of(page.locator("body"))


@pytest.mark.requirement("workbench.scenario.diagnostics")
async def test_12_diagnostics_are_there_to_be_read_and_not_in_the_conversation(
    signed_in: Watched, http: httpx.Client
):
    page, messages = signed_in.page, Told("diagnostics-apart", http).whole()
    await open_thread(page, messages.thread_id)
    await expect(conversation(page)).to_contain_text("Fine.")
    assert "40 seconds" not in await text_of(conversation(page))
    panel = await turned_to(page, "Diagnostics")
    await expect(panel).to_contain_text("It took 40 seconds.")
    await expect(panel).to_contain_text("slow_provider")
