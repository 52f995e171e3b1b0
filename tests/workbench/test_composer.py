"""Saying something: files that go with it as refs, drafts that stay, and finding a thread again."""

import asyncio
import re
from collections.abc import Generator
from typing import Any

import httpx
import pytest
from playwright.async_api import FilePayload, Page, Request, Route, expect

from tests.workbench.browsers import Watched
from tests.workbench.conftest import NewPage
from tests.workbench.loops import BROWSER
from tests.workbench.opening import conversation, open_thread, start_run, state_of

pytestmark = BROWSER

PICTURE = FilePayload(name="a <b>.png", mimeType="image/png", buffer=bytes(range(256)))
NOTES = FilePayload(name="notes.txt", mimeType="text/plain", buffer=b"some notes")


async def attach(page: Page, *files: FilePayload) -> None:
    await page.get_by_label("Files to attach").set_input_files(list(files))


def inputs_of(sent: list[Request], address: str) -> list[dict[str, Any]]:
    """What requests to an address name beside their text."""
    bodies: list[Any] = [each.post_data_json for each in sent if each.url.endswith(address)]
    return [part for body in bodies for part in body.get("input", [])]


def blob(http: httpx.Client, ref: str) -> bytes:
    return http.get(f"/v1/blobs/{ref}").content


@pytest.fixture
def haystack(http: httpx.Client) -> Generator[None]:
    """More threads than a page of the list has; other tests would be slower for them."""
    titles = ["The Needle of them all", *(f"Hay {number}" for number in range(120))]
    made = [http.post("/v1/threads", json={"title": title}).json() for title in titles]
    yield
    for thread in made:
        assert http.delete(f"/v1/threads/{thread['threadId']}").is_success


@pytest.mark.requirement("workbench.attachments")
async def test_files_are_stored_kept_with_the_draft_and_named_in_the_message(
    new_page: NewPage, http: httpx.Client
):
    thread = start_run(http, "demo: help", "Has attachments")["threadId"]
    async with new_page() as watched:
        page = watched.page
        sent: list[Request] = []

        def note(request: Request) -> None:
            sent.append(request)

        page.on("request", note)
        await open_thread(page, thread)
        await attach(page, PICTURE, NOTES)
        await page.get_by_label("Message").fill("demo: help with these")
        chips = page.get_by_role("list", name="Attachments").get_by_role("listitem")
        await expect(chips).to_have_count(2)
        await expect(chips.first).to_contain_text("a <b>.png")
        await expect(page.get_by_role("img", name="Uploading")).to_have_count(0)
        await page.reload()
        await expect(chips).to_have_count(2)
        await expect(page.get_by_label("Message")).to_have_value("demo: help with these")
        await page.get_by_role("button", name="Remove notes.txt").click()
        await expect(chips).to_have_count(1)
        await page.get_by_label("Message").press("Enter")
        attached = conversation(page).get_by_role("list", name="Attachments")
        await expect(attached.get_by_role("listitem")).to_have_count(1)
        await expect(chips).to_have_count(1)
    stored = [request.post_data_json for request in sent if request.url.endswith("/v1/blobs")]
    assert len(stored) == 2
    (part,) = inputs_of(sent, "/messages")
    assert part == {
        "type": "asset",
        "kind": "image",
        "name": "a <b>.png",
        "bytes": 256,
        "mediaType": "image/png",
        "ref": part["ref"],
    }
    refs = [message.get("inputRefs") for message in state_of(http, thread)["messages"]]
    assert [part["ref"]] in refs
    assert blob(http, part["ref"]) == PICTURE["buffer"]


@pytest.mark.requirement("workbench.attachments")
async def test_a_file_that_is_too_large_is_said_to_be_and_stays_out(signed_in: Watched):
    page = signed_in.page
    await expect(page.get_by_label("What should the agent do?")).to_be_visible()
    huge = FilePayload(name="huge.bin", mimeType="", buffer=bytes(6_000_001))
    await attach(page, huge, NOTES)
    chips = page.get_by_role("list", name="Attachments").get_by_role("listitem")
    await expect(chips.filter(has_text="huge.bin")).to_contain_text("Larger than 6.0 MB")
    await page.get_by_label("What should the agent do?").fill("demo: help")
    async with page.expect_request(re.compile(r"/v1/runs$")) as requests:
        await page.get_by_role("button", name="Start").click()
    assert [part["name"] for part in inputs_of([await requests.value], "/runs")] == ["notes.txt"]
    await expect(page).to_have_url(re.compile("/threads/"))


@pytest.mark.requirement("workbench.drafts")
async def test_what_is_typed_while_a_message_is_on_its_way_is_kept(
    new_page: NewPage, http: httpx.Client
):
    thread = start_run(http, "demo: help", "Typed on")["threadId"]
    async with new_page() as watched:
        page = watched.page
        typed = asyncio.Event()

        async def late(route: Route) -> None:
            await typed.wait()
            await route.continue_()

        await page.route("**/messages", late)
        await open_thread(page, thread)
        await expect(page.get_by_role("button", name="Send")).to_be_visible()
        await page.get_by_label("Message").fill("demo: help")
        await page.get_by_label("Message").press("Enter")
        await page.keyboard.type(" and the next")
        typed.set()
        await expect(page.get_by_label("Message")).to_have_value(" and the next")
        await expect(conversation(page).get_by_text("I can show:")).to_have_count(2)


@pytest.mark.requirement("workbench.finding")
@pytest.mark.usefixtures("haystack")
async def test_a_thread_is_found_by_the_edge_however_old_it_is(signed_in: Watched):
    page = signed_in.page
    await expect(page.get_by_role("link", name="Hay 119")).to_be_visible()
    needle = page.get_by_role("link", name="The Needle of them all")
    await expect(needle).to_have_count(0)
    await page.get_by_role("searchbox").fill("all NEEDLE")
    await expect(needle).to_be_visible()
    await expect(page.get_by_role("link", name="Hay")).to_have_count(0)
    await page.get_by_role("searchbox").fill("no such words")
    await expect(page.get_by_text("No thread titles match.")).to_be_visible()
    await page.get_by_role("searchbox").fill("")
    await expect(page.get_by_role("link", name="Hay 119")).to_be_visible()
