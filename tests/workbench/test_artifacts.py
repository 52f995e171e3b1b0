"""What was made, in a real browser: versions, changes, views by stated type, previews."""

import base64
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from msgspec import to_builtins
from playwright.async_api import expect

from tests.sources.recordings import FOLDER, facts_of
from tests.workbench.asking_fixtures import OpenPage, Start, rows_of
from tests.workbench.loops import BROWSER
from tests.workbench.seeding import fact, post

pytestmark = BROWSER

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
LONG = "\n".join(f"line {number}" for number in range(2_000))
HOSTILE = "# Report\n\n<img src=x onerror=window.__run=1>\n\n[x](javascript:window.__run=1)\n"


def _store_blob(requests: httpx.Client, content: bytes | str) -> str:
    data = content.encode() if isinstance(content, str) else content
    answer = requests.post("/v1/blobs", json={"content": base64.b64encode(data).decode()})
    assert answer.status_code == 201, answer.text
    return answer.json()["ref"]


def _make_artifacts(requests: httpx.Client, thread_id: str) -> list[dict[str, Any]]:
    """A thread on which one thing of every kind was made, the document in two versions."""
    later = LONG.replace("line 7\n", "line seven\n")
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("artifact.created", "doc", {"kind": "document", "title": "Notes", "versionId": "1"}),
        ("artifact.updated", "doc", {"versionId": "2", "title": "Notes"}),
        ("artifact.created", "report", {"kind": "report", "title": "A report"}),
        ("artifact.created", "data", {"kind": "data", "title": "Figures"}),
        ("artifact.created", "picture", {"kind": "image", "title": "A picture"}),
        ("artifact.created", "odd", {"title": "Something odd"}),
        ("artifact.deleted", "report", {}),
        ("artifact.failed", "data", {"message": "the disk was full", "failureCategory": "io"}),
    ]
    contents: list[tuple[str | None, bytes | str]] = [
        ("text/plain", LONG),
        ("text/plain", later),
        ("text/markdown", HOSTILE),
        ("application/json", '{"rows":[1,2,{"deep":true}]}'),
        ("image/png", PIXEL),
        ("application/x-odd", HOSTILE),
        (None, ""),
        (None, ""),
    ]
    facts = [
        fact(thread_id, 1, "thread.started", {"title": "Made things"}),
        fact(thread_id, 2, "turn.started", {}),
    ]
    for sequence, ((event_class, name, payload), (media, content)) in enumerate(
        zip(rows, contents, strict=True), 3
    ):
        kept = (
            {}
            if media is None
            else {"mediaType": media, "contentRef": _store_blob(requests, content)}
        )
        facts.append(
            fact(thread_id, sequence, event_class, payload | kept, artifactId=f"art_{name}")
        )
    return facts


@pytest.mark.requirement("workbench.artifacts.versions")
async def test_versions_are_shown_compared_and_saved(
    open_page: OpenPage, requests: httpx.Client, tmp_path: Path
):
    post(requests, _make_artifacts(requests, "versions"))
    async with open_page("/threads/versions") as watched:
        page = watched.page
        await page.get_by_role("link", name="Notes").first.click()
        viewer = page.get_by_role("article", name="Notes")
        await expect(viewer.get_by_text("line seven")).to_be_visible()
        await viewer.get_by_role("tab", name="Changes").click()
        await expect(viewer.get_by_text("removed: line 7")).to_be_attached()
        await expect(viewer.get_by_text("added: line seven")).to_be_attached()
        await expect(viewer.get_by_text("1989 unchanged lines")).to_be_visible()
        assert await watched.accessibility() == []
        await watched.screenshot("artifacts-changes-light-wide")
        await viewer.get_by_label("Version", exact=True).select_option("1")
        await viewer.get_by_role("tab", name="Content").click()
        async with page.expect_download() as download:
            await viewer.get_by_role("button", name="Download").click()
        await (await download.value).save_as(tmp_path / "saved")
        assert (tmp_path / "saved").read_text("utf-8") == LONG
        await viewer.get_by_role("tab", name="About").click()
        await expect(viewer.get_by_role("button", name="Copy content ref")).to_be_visible()


@pytest.mark.requirement("workbench.artifacts.unknown")
async def test_each_kind_is_shown_as_what_it_is_said_to_be_and_an_unknown_one_is_not(
    open_page: OpenPage, requests: httpx.Client
):
    post(requests, _make_artifacts(requests, "kinds"))
    address = "/threads/kinds?tab=artifacts&item=art_"
    async with open_page(f"{address}odd", theme="dark", size="phone") as watched:
        page = watched.page
        await expect(page.get_by_text("cannot be shown here")).to_be_visible()
        await watched.screenshot("artifacts-unknown-dark-phone")
        await page.goto(f"{address}report")
        await expect(page.get_by_role("heading", name="Report", exact=True)).to_be_visible()
        await expect(page.get_by_text("This artifact was deleted.")).to_be_visible()
        await page.goto(f"{address}picture")
        shown = page.get_by_role("img", name="A picture")
        await expect(shown).to_have_attribute("src", re.compile("^data:image/png;base64,"))
        assert await shown.evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 1
        await page.goto(f"{address}data")
        await expect(page.get_by_text('"deep": true')).to_be_visible()
        await expect(page.get_by_text("the disk was full")).to_be_visible()
        assert await watched.accessibility() == []
        await watched.screenshot("artifacts-failed-dark-phone")
        assert await page.evaluate("window.__run") is None
        assert await page.evaluate("document.body.scrollWidth <= innerWidth")


@pytest.mark.requirement("workbench.artifacts.preview")
async def test_a_page_is_previewed_on_an_origin_of_its_own(
    open_page: OpenPage, start: Start, requests: httpx.Client
):
    run = start("page", "asking")
    async with open_page(f"/threads/{run['threadId']}", theme="dark") as watched:
        page = watched.page
        await page.get_by_role("button", name="Approve", exact=True).click()
        await expect(page.get_by_text("Changed.")).to_be_visible()
        await page.get_by_role("tab", name="Artifacts").click()
        await page.get_by_role("navigation", name="Artifacts").get_by_role("button").click()
        await page.get_by_role("tab", name="Preview").click()
        serve = page.get_by_role("button", name="Start preview")
        await expect(serve).to_be_visible()
        assert await watched.accessibility() == []
        await serve.click()
        frame = page.get_by_title("Preview")
        await expect(frame.content_frame.get_by_role("heading", name="Two")).to_be_visible()
        source = await frame.get_attribute("src") or ""
        assert not source.startswith(str(requests.base_url).rstrip("/"))
        await watched.screenshot("artifacts-preview-dark-wide")
        async with page.expect_response(re.compile(r"/v1/previews/.*:stop$")):
            await page.get_by_role("button", name="Stop preview").click()
        await expect(frame).to_have_count(0)
    [row] = rows_of(requests, "/v1/previews", runId=run["runId"])
    assert row["status"] == "stopped"


def _changed_path(path: str) -> str:
    return f"artifacts&item={quote(f'file:{path}', safe='')}"


@pytest.mark.requirement("workbench.artifacts.diffs")
async def test_an_edit_of_claude_code_and_a_patch_of_codex_are_shown_as_diffs(
    open_page: OpenPage, requests: httpx.Client
):
    post(requests, to_builtins(facts_of(FOLDER / "claude-code" / "edit.jsonl")))
    post(requests, to_builtins(facts_of(FOLDER / "codex-app-server" / "patch.jsonl")))
    a, notes = _changed_path("/home/dev/project/a.txt"), _changed_path("/home/dev/project/notes.md")
    async with open_page(f"/threads/edit?tab={a}") as watched:
        page = watched.page
        diff = page.get_by_role("tabpanel")
        for thread_id, added in (("edit", "first"), ("patch", "# Notes")):
            await page.goto(f"/threads/{thread_id}?tab={a}")
            await expect(diff.get_by_text("removed: one")).to_be_attached()
            await expect(diff.get_by_text("added: two")).to_be_attached()
            await page.goto(f"/threads/{thread_id}?tab={notes}")
            await expect(diff.get_by_text(f"added: {added}")).to_be_attached()
            await expect(page.get_by_text("No diff available.")).to_have_count(0)
        assert await watched.accessibility() == []
        await watched.screenshot("artifacts-codex-patch-light-wide")


@pytest.mark.requirement("workbench.artifacts.diffs")
async def test_a_spilled_diff_is_fetched_and_none_is_said_to_be_none(
    open_page: OpenPage, requests: httpx.Client
):
    lines = "".join(f"+line {number} of a long file\n" for number in range(3_000))
    long = f"--- /dev/null\n+++ b/long.txt\n@@ -0,0 +1,3000 @@\n{lines}"
    post(
        requests,
        [
            fact("spilled", 1, "thread.started", {"title": "Big changes"}),
            fact("spilled", 2, "turn.started", {}),
            fact(
                "spilled", 3, "file.changed", {"path": "long.txt", "diff": long}, artifactId="long"
            ),
            fact("spilled", 4, "file.changed", {"path": "bare.txt"}, artifactId="bare"),
        ],
    )
    async with open_page("/threads/spilled?tab=artifacts&item=long") as watched:
        page = watched.page
        diff = page.get_by_role("tabpanel")
        await expect(diff.get_by_text("added: line 0 of a long file")).to_be_attached()
        await page.goto("/threads/spilled?tab=artifacts&item=bare")
        await page.get_by_role("tab", name="Changes").click()
        await expect(page.get_by_text("No diff available.")).to_be_visible()
