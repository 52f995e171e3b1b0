"""Saying something: files that go with it as refs, drafts that stay, and finding a thread again."""

import re

import httpx
import pytest
from playwright.async_api import FilePayload, Page, Request, expect

from tests.workbench.browsers import Watched
from tests.workbench.conftest import NewPage
from tests.workbench.loops import BROWSER
from tests.workbench.opening import begun, conversation, opened, state_of

pytestmark = BROWSER

PICTURE = FilePayload(name="a <b>.png", mimeType="image/png", buffer=bytes(range(256)))
NOTES = FilePayload(name="notes.txt", mimeType="text/plain", buffer=b"some notes")


async def attach(page: Page, *files: FilePayload) -> None:
    await page.get_by_label("Files to attach").set_input_files(list(files))


@pytest.mark.requirement("workbench.attachments")
async def test_files_are_stored_kept_with_the_draft_and_named_in_the_message(
    new_page: NewPage, http: httpx.Client
):
    thread = begun(http, "demo: help", "Has attachments")["threadId"]
    async with new_page() as watched:
        page = watched.page
        sent: list[Request] = []
        page.on("request", lambda request: sent.append(request))
        await opened(page, thread)
        await attach(page, PICTURE, NOTES)
        await page.get_by_label("Message").fill("demo: help with these")
        chips = page.get_by_role("list", name="Attachments").get_by_role("listitem")
        await expect(chips).to_have_count(2)
        await expect(chips.first).to_contain_text("a <b>.png")
        await expect(page.get_by_role("img", name="Storing")).to_have_count(0)
        await page.reload()
        await expect(chips).to_have_count(2)
        await expect(page.get_by_label("Message")).to_have_value("demo: help with these")
        await page.get_by_role("button", name="Leave out notes.txt").click()
        await expect(chips).to_have_count(1)
        await page.get_by_label("Message").press("Enter")
        attached = conversation(page).get_by_role("list", name="Attachments")
        await expect(attached.get_by_role("listitem")).to_have_count(1)
        await expect(chips).to_have_count(1)
    stored = [request.post_data_json for request in sent if request.url.endswith("/v1/blobs")]
    assert len(stored) == 2
    messages = [request.post_data_json for request in sent if request.url.endswith("/messages")]
    (part,) = messages[0]["input"]
    assert {**part, "ref": ""} == {
        **{"type": "asset", "kind": "image", "name": "a <b>.png", "bytes": 256},
        **{"mediaType": "image/png", "ref": ""},
    }
    refs = [message.get("inputRefs") for message in state_of(http, thread)["messages"]]
    assert [part["ref"]] in refs
    assert http.get(f"/v1/blobs/{part['ref']}").content == PICTURE["buffer"]


@pytest.mark.requirement("workbench.attachments")
async def test_a_file_that_is_too_large_is_said_to_be_and_stays_out(signed_in: Watched):
    page = signed_in.page
    await expect(page.get_by_label("What should be done?")).to_be_visible()
    huge = FilePayload(name="huge.bin", mimeType="", buffer=bytes(6_000_001))
    await attach(page, huge, NOTES)
    chips = page.get_by_role("list", name="Attachments").get_by_role("listitem")
    await expect(chips.filter(has_text="huge.bin")).to_contain_text("Larger than 6.0 MB")
    await page.get_by_label("What should be done?").fill("demo: help")
    async with page.expect_request(re.compile(r"/v1/runs$")) as asked:
        await page.get_by_role("button", name="Start").click()
    body = (await asked.value).post_data_json
    assert [part["name"] for part in body["input"]] == ["notes.txt"]
    await expect(page).to_have_url(re.compile("/threads/"))


@pytest.mark.requirement("workbench.finding")
async def test_a_thread_is_found_by_the_edge_however_old_it_is(
    signed_in: Watched, http: httpx.Client
):
    assert http.post("/v1/threads", json={"title": "The Needle of them all"}).is_success
    for number in range(120):
        assert http.post("/v1/threads", json={"title": f"Hay {number}"}).is_success
    page = signed_in.page
    await expect(page.get_by_role("link", name="Hay 119")).to_be_visible()
    needle = page.get_by_role("link", name="The Needle of them all")
    await expect(needle).to_have_count(0)
    await page.get_by_role("searchbox").fill("all NEEDLE")
    await expect(needle).to_be_visible()
    await expect(page.get_by_role("link", name="Hay")).to_have_count(0)
    await page.get_by_role("searchbox").fill("no such words")
    await expect(page.get_by_text("No thread has these words in its title.")).to_be_visible()
    await page.get_by_role("searchbox").fill("")
    await expect(page.get_by_role("link", name="Hay 119")).to_be_visible()
