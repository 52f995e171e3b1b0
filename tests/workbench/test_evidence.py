"""Evidence, in a real browser: verdicts as facts state them, and packs that verify."""

from pathlib import Path

import httpx
import pytest
from playwright.async_api import expect

from factwire.evidence import verify_pack
from tests.workbench.asking_fixtures import OpenPage
from tests.workbench.loops import BROWSER
from tests.workbench.seeding import fact, post

pytestmark = BROWSER


def _post_evidence(requests: httpx.Client, thread_id: str) -> None:
    """A thread with a check that passed, a citation, a review, and evidence without a verdict."""
    fields = [
        ("evidence.changed", {"kind": "verification", "title": "Tests", "verdict": "passed"}, "t"),
        ("evidence.changed", {"kind": "review", "title": "No word yet"}, "silent"),
        ("evidence.changed", {"kind": "trace", "title": "A page", "url": "javascript:1"}, "page"),
        ("review.requested", {"reviewId": "rev_1", "reviewer": "ann"}, "page"),
        ("review.completed", {"reviewId": "rev_1", "verdict": "rejected", "summary": "No"}, "page"),
    ]
    facts = [
        fact(thread_id, 1, "thread.started", {"title": "Vouched for"}),
        fact(thread_id, 2, "turn.started", {}),
        *(
            fact(thread_id, sequence, event_class, payload, evidenceId=f"evd_{name}")
            for sequence, (event_class, payload, name) in enumerate(fields, 3)
        ),
    ]
    post(requests, facts)


@pytest.mark.requirement("workbench.evidence.verdicts")
async def test_a_verdict_is_what_a_fact_says_and_else_unknown(
    open_page: OpenPage, requests: httpx.Client
):
    _post_evidence(requests, "vouched")
    async with open_page("/threads/vouched?tab=evidence", theme="dark", size="phone") as watched:
        page = watched.page
        words = {"Tests": "verdict: passed", "No word yet": "verdict: unknown"}
        for title, verdict in words.items():
            await expect(page.get_by_role("group", name=title)).to_contain_text(verdict)
        await expect(page.get_by_role("group", name="Review rev_1")).to_contain_text("rejected")
        await expect(page.get_by_text("Review by ann")).to_be_visible()
        await expect(page.get_by_role("link", name="javascript")).to_have_count(0)
        assert await watched.accessibility() == []
        await watched.screenshot("evidence-dark-phone")


@pytest.mark.requirement("workbench.evidence.packs")
async def test_a_pack_is_made_verified_and_saved(
    open_page: OpenPage, requests: httpx.Client, tmp_path: Path
):
    _post_evidence(requests, "packed")
    async with open_page("/threads/packed?tab=evidence") as watched:
        page = watched.page
        await page.get_by_role("button", name="Create pack").click()
        await page.get_by_role("button", name="Verify").click()
        found = page.get_by_role("status", name="Verification")
        await expect(found).to_contain_text("7 facts, every byte unchanged")
        await expect(found).to_contain_text("signed by this Edge")
        await expect(found).to_contain_text("same facts and hash chain")
        assert await watched.accessibility() == []
        await watched.screenshot("evidence-pack-light-wide")
        async with page.expect_download() as download:
            await page.get_by_role("button", name="Download").click()
        path = tmp_path / "pack.zip"
        await (await download.value).save_as(path)
    report = verify_pack(path)
    assert report.ok
    assert report.facts == 7
