"""The graph in a real browser: drawn from facts, steady while they come, told in words as well."""

import httpx
import pytest
from playwright.async_api import Locator, Page, expect

from tests.workbench.asking_fixtures import OpenPage
from tests.workbench.loops import BROWSER
from tests.workbench.seeding import post
from tests.workbench.teams import GRAMMAR, OPENING, REST, TellTeam, facts_of, many_turns

pytestmark = BROWSER

MOST_DRAWN = 150
"""Boxes that exist at once; a screen has room for fewer, however many nodes there are."""

_PLACES = """() => Object.fromEntries(
  [...document.querySelectorAll(".react-flow__node")].map((node) => {
    const { x, y } = node.getBoundingClientRect();
    return [node.dataset.id, [x, y]];
  }),
)"""


def _box(page: Page, title: str) -> Locator:
    return page.locator(".react-flow__node").filter(has=page.get_by_text(title, exact=True))


def _node_count(http: httpx.Client, thread_id: str) -> int:
    state = http.get(f"/v1/threads/{thread_id}/projection").json()["state"]
    return len(state["graph"]["nodes"])


def _canvas(page: Page) -> Locator:
    return page.get_by_role("application")


@pytest.mark.requirement("workbench.graph.stated")
@pytest.mark.requirement("workbench.team.transcript")
async def test_what_facts_state_is_drawn_and_a_teammate_opens_with_its_transcript(
    open_page: OpenPage, tell_team: TellTeam
):
    tell_team("thr_graph")
    async with open_page("/threads/thr_graph?tab=graph") as watched:
        page = watched.page
        for title in ("Ship the parser", "planner", "coder", "Write the grammar", "stray"):
            await expect(_box(page, title)).to_be_visible()
        for kind in ("delegated", "handed_off", "depends_on"):
            await expect(page.locator(f".react-flow__edge.{kind}")).to_have_count(1)
        assert await watched.accessibility() == []
        await watched.screenshot("graph-light-wide")
        await _box(page, "planner").click()
        panel = page.get_by_role("complementary", name="planner")
        await expect(panel).to_contain_text("First the grammar, then tests.")
        await panel.get_by_role("tab", name="About").click()
        await expect(panel).to_contain_text("Ship the parser")
        assert await watched.accessibility() == []
        await page.keyboard.press("Escape")
        await expect(panel).to_have_count(0)
        await _box(page, "shell").click()
        await expect(page.get_by_role("complementary", name="shell")).to_contain_text("coder")
        await expect(_box(page, "shell")).to_be_in_viewport(ratio=1)
        await page.get_by_role("button", name="Close").click()
        await page.get_by_role("button", name="Teammates").click()
        await expect(_box(page, "coder")).to_have_count(0)
        await expect(_box(page, "shell")).to_be_visible()


@pytest.mark.requirement("workbench.graph.steady")
async def test_nodes_come_while_one_looks_and_those_that_were_there_stay(
    open_page: OpenPage, tell_team: TellTeam, requests: httpx.Client
):
    tell_team("thr_steady", OPENING)
    async with open_page("/threads/thr_steady?tab=graph") as watched:
        page = watched.page
        await expect(_box(page, "planner")).to_be_visible()
        before = await page.evaluate(_PLACES)
        assert len(before) == 4
        post(requests, facts_of("thr_steady", [*GRAMMAR, *REST], begin=len(OPENING) + 2))
        await expect(_box(page, "stray")).to_be_visible()
        after = await page.evaluate(_PLACES)
        assert {key: after[key] for key in before} == before
        assert len({tuple(place) for place in after.values()}) == len(after)
        await page.get_by_role("button", name="Reset layout").click()
        await expect(page.get_by_role("button", name="Reset layout")).to_be_disabled()


@pytest.mark.requirement("workbench.graph.keyboard")
async def test_keys_lead_from_node_to_node_open_them_and_fold_them(
    open_page: OpenPage, tell_team: TellTeam
):
    tell_team("thr_keys")
    async with open_page("/threads/thr_keys?tab=graph", theme="dark") as watched:
        page = watched.page
        await expect(_box(page, "planner")).to_be_visible()
        await _canvas(page).focus()
        heard = page.get_by_role("status").filter(has_text="Task Ship the parser, Running")
        await page.keyboard.press("ArrowRight")
        await page.keyboard.press("ArrowRight")
        await expect(heard).to_have_count(1)
        await page.keyboard.press("Space")
        await expect(_box(page, "planner")).to_have_count(0)
        await page.keyboard.press("Space")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        panel = page.get_by_role("complementary", name="delegate")
        await expect(panel).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(_canvas(page)).to_be_focused()
        assert await watched.accessibility() == []
        await watched.screenshot("graph-dark-wide")


@pytest.mark.requirement("workbench.graph.words")
async def test_a_phone_shows_the_same_as_a_tree_in_words(
    open_page: OpenPage, tell_team: TellTeam, requests: httpx.Client
):
    tell_team("thr_words")
    address = "/threads/thr_words?tab=graph"
    async with open_page(address, theme="dark", size="phone") as watched:
        page = watched.page
        tree = page.get_by_role("tree")
        rows = tree.get_by_role("treeitem")
        await expect(rows).to_have_count(_node_count(requests, "thr_words"))
        assert await watched.accessibility() == []
        await watched.screenshot("outline-dark-phone")
        await tree.focus()
        for key in ("ArrowDown", "ArrowLeft"):
            await page.keyboard.press(key)
        parser = rows.filter(has=page.get_by_text("Ship the parser", exact=True))
        await expect(parser).to_have_attribute("aria-expanded", "false")
        await expect(rows.filter(has_text="planner")).to_have_count(0)
        await rows.filter(has_text="Publish").click()
        await expect(page.get_by_role("complementary", name="Publish")).to_contain_text("timeout")
        assert await watched.accessibility() == []


@pytest.mark.requirement("workbench.graph.many")
async def test_two_thousand_nodes_are_grouped_and_only_those_on_screen_exist(
    open_page: OpenPage, requests: httpx.Client
):
    post(requests, many_turns("thr_many", 100, 20))
    async with open_page("/threads/thr_many?tab=graph") as watched:
        page = watched.page
        groups = page.locator(".react-flow__node").filter(has_text="20 tool calls")
        await expect(groups.last).to_be_visible()
        assert await page.locator(".react-flow__node").count() < MOST_DRAWN
        await groups.last.click()
        panel = page.get_by_role("complementary", name="20 tool calls")
        await panel.get_by_role("button", name="search 99.3").click()
        await expect(page.get_by_role("complementary", name="search 99.3")).to_contain_text("found")
        await groups.last.locator("[data-fold]").click()
        await expect(_box(page, "search 99.0")).to_be_visible()
        assert await page.locator(".react-flow__node").count() < MOST_DRAWN
        await page.get_by_role("button", name="Outline").click()
        await page.get_by_role("tree").focus()
        await page.keyboard.press("End")
        await expect(page.get_by_role("treeitem").filter(has_text="search 99.19")).to_be_visible()
        assert await page.get_by_role("treeitem").count() < MOST_DRAWN
        await watched.screenshot("graph-many")


@pytest.mark.requirement("workbench.graph.moment")
async def test_at_a_moment_of_the_past_only_what_was_is_drawn(
    open_page: OpenPage, tell_team: TellTeam
):
    facts = tell_team("thr_then")
    last = facts[len(OPENING)]["id"]
    async with open_page(f"/threads/thr_then?tab=graph&at={last}") as watched:
        page = watched.page
        await expect(_box(page, "planner")).to_be_visible()
        await expect(_box(page, "coder")).to_have_count(0)
        await page.goto("/threads/thr_then?tab=graph")
        await expect(_box(page, "coder")).to_be_visible()
