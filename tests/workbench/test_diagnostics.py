"""What lies behind the panels, in a real browser: remarks, gaps, figures, and the facts."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, expect

from tests.client.edge_processes import TOKEN
from tests.runtime.trusted_files import write_trusted
from tests.workbench.browsers import Size, Theme, Watched, watched_page
from tests.workbench.conftest import NewPage
from tests.workbench.edges import WorkbenchEdge
from tests.workbench.loops import BROWSER
from tests.workbench.seeding import fact, post
from tests.workbench.working import work_facts

pytestmark = BROWSER

TURNS = 120


@pytest.fixture(scope="session")
def facts() -> list[dict[str, Any]]:
    return list(work_facts("looked-into", TURNS))


@pytest.fixture
def looked_into(http: httpx.Client, facts: list[dict[str, Any]]) -> str:
    """A thread of more facts than a page has; sending it again is no news."""
    post(http, facts)
    return "looked-into"


@pytest.mark.requirement("workbench.remarks")
async def test_remarks_have_codes_with_their_meaning_and_lead_to_their_fact(
    signed_in: Watched, looked_into: str, facts: list[dict[str, Any]]
):
    page = signed_in.page
    await page.goto(f"/threads/{looked_into}?tab=diagnostics")
    remark = page.get_by_label("Issues").get_by_role("listitem").first
    await expect(remark).to_contain_text("timeout")
    await expect(remark).to_contain_text(
        "Meaning: the program or the server exceeded its time limit"
    )
    await expect(remark).to_contain_text("it took too long")
    failed = [each["sequence"] for each in facts if each["eventClass"] == "tool.failed"]
    await remark.get_by_role("button", name=f"Go to fact {failed[-1]}").click()
    past = page.get_by_role("region", name=re.compile("^Viewing "))
    await expect(past).to_contain_text(f"fact {failed[-1]} of")


@pytest.mark.requirement("workbench.remarks")
async def test_a_gap_that_the_source_reports_is_shown_and_leads_to_its_fact(
    signed_in: Watched, http: httpx.Client
):
    page = signed_in.page
    post(
        http,
        [
            fact("holed", 1, "thread.started", {"title": "Holed"}),
            fact("holed", 2, "turn.started", {}),
            fact("holed", 3, "stream.gap.detected", {"fromSequence": 90, "toSequence": 95}),
            fact("holed", 4, "stream.repair.started", {}),
        ],
    )
    await page.goto("/threads/holed?tab=diagnostics")
    whole = page.get_by_label("Completeness")
    await expect(whole).to_contain_text("repairing")
    await expect(whole).to_contain_text("The source reports that it is repairing the stream.")
    await expect(whole.get_by_role("listitem")).to_contain_text(
        ["stream.gap.detected", "stream.repair.started"]
    )
    await expect(page.get_by_label("Issues")).to_contain_text("stream_gap_reported")
    await whole.get_by_role("button", name="Go to fact 3").click()
    await expect(whole).to_contain_text("stale")
    await expect(whole).to_contain_text("Reason: gap_reported")


@pytest.mark.requirement("workbench.figures")
async def test_times_and_costs_are_those_of_the_facts_and_else_unknown(
    signed_in: Watched, looked_into: str, http: httpx.Client
):
    page = signed_in.page
    await page.goto(f"/threads/{looked_into}?tab=diagnostics")
    cost = page.get_by_label("Cost and limits")
    await expect(cost).to_contain_text(f"{TURNS * 100:,}")
    await expect(cost).to_contain_text(f"{TURNS * 0.01:.4f} USD")
    charts = page.get_by_label("Latency").get_by_role("figure")
    await expect(charts.nth(0)).to_contain_text("median 1.0 s, longest 1.0 s")
    await expect(charts.nth(1)).to_contain_text("median 5.0 s, longest 6.0 s")
    await expect(charts.nth(3)).to_contain_text(f"{TURNS} measured")
    post(http, [fact("silent", 1, "thread.started", {"title": "Silent"})])
    await page.goto("/threads/silent?tab=diagnostics")
    await expect(cost.get_by_text("unknown", exact=True)).to_have_count(6)
    await expect(charts.nth(0)).to_contain_text("No data.")


@pytest.mark.requirement("workbench.raw-facts")
async def test_facts_are_found_by_class_id_and_words_and_exported_as_found(
    signed_in: Watched, looked_into: str, facts: list[dict[str, Any]], tmp_path: Path
):
    page = signed_in.page
    await page.goto(f"/threads/{looked_into}?tab=diagnostics")
    await page.get_by_role("tab", name="Raw facts").click()
    await expect(page.get_by_text(f"{len(facts):,} of {len(facts):,} facts.")).to_be_visible()
    await page.get_by_label("Class").fill("tool.")
    tools = [each for each in facts if each["eventClass"].startswith("tool.")]
    await expect(page.get_by_text(f"{len(tools):,} of {len(facts):,} facts.")).to_be_visible()
    await page.get_by_role("searchbox", name="Id", exact=True).fill("looked-into-call-117")
    await expect(page.get_by_role("option")).to_have_count(2)
    await page.get_by_role("option").last.click()
    await expect(page.get_by_label("Fact as JSON")).to_contain_text("it took too long")
    await page.get_by_role("searchbox", name="Id", exact=True).fill("")
    await page.get_by_label("Contains text").fill("Make 11")
    await page.get_by_label("Contains text").press("Enter")
    found = [each for each in tools if "make 11" in str(each["payload"])]
    await expect(page.get_by_role("option")).to_have_count(len(found))
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name="Export as NDJSON").click()
    download = await downloading.value
    assert download.suggested_filename == "facts-looked-into.ndjson"
    saved = tmp_path / "facts.ndjson"
    await download.save_as(saved)
    lines = [json.loads(line) for line in saved.read_text("utf-8").splitlines()]
    assert [line["id"] for line in lines] == [each["id"] for each in found]
    assert [line["payload"] for line in lines] == [each["payload"] for each in found]


@pytest.mark.requirement("workbench.remarks")
@pytest.mark.parametrize(("theme", "size"), [("light", "wide"), ("dark", "phone")])
async def test_diagnostics_read_well_in_both_themes_and_on_a_phone(
    new_page: NewPage, looked_into: str, theme: Theme, size: Size
):
    async with new_page(theme=theme, size=size) as watched:
        page = watched.page
        await page.goto(f"/#token={TOKEN}")
        await page.wait_for_function("!location.href.includes('token')")
        await page.goto(f"/threads/{looked_into}?tab=diagnostics")
        await expect(page.get_by_label("Latency").get_by_role("figure").first).to_be_visible()
        assert await watched.accessibility() == []
        await watched.screenshot(f"diagnostics-{theme}-{size}")
        await page.get_by_role("tab", name="Raw facts").click()
        await page.get_by_role("option").nth(3).click()
        await expect(page.get_by_label("Fact as JSON")).to_be_visible()
        assert await watched.accessibility() == []
        assert await page.evaluate("document.body.scrollWidth <= window.innerWidth")
        await watched.screenshot(f"raw-facts-{theme}-{size}")


@pytest.mark.requirement("runtime.configuration.trust")
async def test_settings_of_a_project_that_nobody_trusts_are_named_until_they_are_trusted(
    browser: Browser, tmp_path: Path
):
    edge = WorkbenchEdge(tmp_path)
    own = edge.work / "factwire.toml"
    text = own.read_text()
    own.write_text(f"{text}# changed\n")
    for is_trusted in (False, True):
        if is_trusted:
            write_trusted(own, text, {"HOME": str(tmp_path / "home")})
        with edge:
            async with watched_page(browser, edge.url) as watched:
                await watched.page.goto(f"/#token={TOKEN}")
                await expect(watched.page.get_by_role("navigation").first).to_be_visible()
                notice = watched.page.get_by_role("status").filter(has_text="project_untrusted")
                await expect(notice).to_have_count(0 if is_trusted else 1)
                if not is_trusted:
                    await expect(notice).to_contain_text(f"{own} was changed since it was trusted")
                    await expect(notice).to_contain_text("factwire trust")
