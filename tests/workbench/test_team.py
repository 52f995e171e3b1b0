"""The team in a real browser: the roster, the board, lanes, and requests of teammates."""

import re

import httpx
import msgspec
import pytest
from playwright.async_api import Page, expect

from factwire.projection import TeamView, decode_state, team_view
from tests.workbench.asking_fixtures import OpenPage, Start
from tests.workbench.loops import BROWSER
from tests.workbench.seeding import message_facts, post
from tests.workbench.teams import TellTeam

pytestmark = BROWSER

COLUMNS = {"todo": "To do", "doing": "Doing", "waiting": "Waiting", "failed": "Failed"}
COLUMNS["done"] = "Done"


def _view(http: httpx.Client, thread_id: str) -> TeamView:
    state = http.get(f"/v1/threads/{thread_id}/projection").json()["state"]
    return team_view(decode_state(msgspec.json.encode(state)))


def _list_decisions(http: httpx.Client, thread_id: str) -> list[tuple[str, str]]:
    rows = http.get("/v1/approvals", params={"threadId": thread_id}).json()["items"]
    return [(row["status"], row["subagentId"]) for row in rows]


async def _ensure_same(page: Page, view: TeamView) -> None:
    """The page against the projection's own view of the team."""
    rows = page.get_by_role("rowheader")
    names = [member.node.name or member.node.member_id for member in view.members]
    await expect(rows).to_have_count(len(names))
    for name in names:
        await expect(page.get_by_role("rowheader", name=name)).to_be_visible()
    for column, title in COLUMNS.items():
        cards = page.get_by_role("group", name=title, exact=True).get_by_role("listitem")
        await expect(cards).to_have_count(len(view.board[column]))
        for item in view.board[column]:
            name = item.title or item.task_id
            await expect(cards.get_by_role("button", name=name)).to_have_count(1)


@pytest.mark.requirement("workbench.team.surfaces")
@pytest.mark.requirement("workbench.team.reports")
async def test_roster_board_and_lanes_show_what_the_projection_says_of_the_team(
    open_page: OpenPage, tell_team: TellTeam, requests: httpx.Client
):
    tell_team("thr_surfaces")
    async with open_page("/threads/thr_surfaces?tab=team") as watched:
        page = watched.page
        await _ensure_same(page, _view(requests, "thr_surfaces"))
        stray = page.get_by_role("row").filter(has_text="stray")
        await expect(stray).to_contain_text("unavailable")
        lanes = {
            "Handoffs": ["planner", "coder", "the plan is ready", "Accepted"],
            "Reviews": ["Requested", "Approved", "Small and clear."],
            "Worker reports": ["tester", "48 tests pass.", "output:tests"],
        }
        for name, words in lanes.items():
            for word in words:
                await expect(page.get_by_role("region", name=name)).to_contain_text(word)
        assert await watched.accessibility() == []
        await watched.screenshot("team-light-wide")
        await page.get_by_role("button", name="Test the grammar").click()
        panel = page.get_by_role("complementary", name="Test the grammar")
        await expect(panel).to_contain_text("Depends on")
        await page.get_by_role("button", name="Close").click()
        await page.get_by_role("button", name="deployer").click()
        panel = page.get_by_role("complementary", name="deployer")
        await expect(panel).to_contain_text("No transcript")
        await page.keyboard.press("Escape")
        await expect(panel).to_have_count(0)
        await page.get_by_role("tab", name="Conversation").click()
        await expect(page.get_by_text("Ship the parser as a team.")).to_be_visible()
        await expect(page.get_by_text("48 tests pass.")).to_have_count(0)


@pytest.mark.requirement("workbench.team.requests")
async def test_a_request_of_a_teammate_is_named_and_answered_from_the_team(
    open_page: OpenPage, start: Start, requests: httpx.Client
):
    thread = start("teammate", "asking")["threadId"]
    async with open_page(f"/threads/{thread}?tab=team", theme="dark", size="phone") as watched:
        page = watched.page
        card = page.get_by_role("group", name=re.compile("^Approval: "))
        await expect(card).to_contain_text("teammate reader")
        assert await watched.accessibility() == []
        await watched.screenshot("team-dark-phone")
        await card.get_by_role("button", name="Approve").click()
        await expect(card).to_have_count(0)
        await expect(page.get_by_role("rowheader", name="reader")).to_be_visible()
        await page.get_by_role("button", name="reader").click()
        panel = page.get_by_role("complementary", name="reader")
        await expect(panel.get_by_role("region", name="Transcript")).to_contain_text("true")
        assert await watched.accessibility() == []
    assert _list_decisions(requests, thread) == [("approved", "sub_reader")]


@pytest.mark.requirement("workbench.team.surfaces")
async def test_a_thread_without_a_team_says_so_and_what_would_change_that(
    open_page: OpenPage, requests: httpx.Client
):
    post(requests, message_facts("thr_alone", ["Only me."]))
    async with open_page("/threads/thr_alone?tab=team") as watched:
        await expect(watched.page.get_by_text("No team yet")).to_be_visible()
        assert await watched.accessibility() == []
