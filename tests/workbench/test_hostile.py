"""Hostile text wherever an agent can write some: it is shown, runs nothing, loads nothing and keeps
to its box.

Answers are held to the whole corpus by `test_xss`; here it is every other place: prompts, names and
arguments of tools, outputs, titles, artifacts, citations, agents, requests and remarks.
"""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect

from tests.workbench.conftest import NewPage
from tests.workbench.hostile import LINKS, VECTORS
from tests.workbench.loops import BROWSER
from tests.workbench.opening import open_thread, turned_to
from tests.workbench.seeding import fact, post
from tests.workbench.test_xss import FORBIDDEN

pytestmark = BROWSER

TABS = ("Conversation", "Timeline", "Graph", "Team", "Artifacts", "Evidence", "Diagnostics")
STRETCHING = [
    "ש" * 60 + " שלום world \u202eabc\u202c",
    "漢字" * 120,
    "👩‍👩‍👧‍👦" * 60,
    "a" * 900,
    "é" + "\u0301" * 200,
    "/very" * 120 + "/long/path.txt",
]
WIDER_THAN_THE_PAGE = "document.scrollingElement.scrollWidth - innerWidth"
BAD_LINKS = """() => [...document.querySelectorAll("main a[href]")].filter((link) => {
  const own = link.getAttribute("href").startsWith("/") || link.origin === location.origin;
  if (own && !/^[a-z]+:/i.test(link.getAttribute("href"))) return false;
  const rel = link.rel.split(" ");
  const shut = rel.includes("noopener") && rel.includes("noreferrer");
  return !shut || !/^(https?|mailto):/.test(link.href);
}).map((link) => link.outerHTML)"""


def everywhere(thread_id: str, texts: list[str]) -> Iterator[dict[str, Any]]:
    """A thread with one text in each place that an agent fills; the texts take turns."""
    messages = [*_opening_facts(texts[0])]
    for number, text in enumerate(texts):
        messages += _work(number, text)
    for sequence, (event_class, payload, ids) in enumerate(messages, 1):
        yield fact(
            thread_id, sequence, event_class, payload, **{**ids, "title": ids.get("title", "t")}
        )


Said = tuple[str, dict[str, Any], dict[str, str]]


def _opening_facts(text: str) -> Iterator[Said]:
    yield "thread.started", {"title": text}, {}
    yield "turn.submitted", {"prompt": text}, {"messageId": "asked"}
    yield "turn.started", {"agentId": text}, {"agentId": text}
    yield "run.status", {"status": "running", "message": text}, {}


def _work(number: int, text: str) -> Iterator[Said]:
    call, task = {"toolCallId": f"call-{number}"}, {"taskId": f"task-{number}"}
    member = {"subagentId": f"sub-{number}", **task}
    made, proof = {"artifactId": f"made-{number}"}, {"evidenceId": f"proof-{number}"}
    name = {"title": text}
    yield (
        "tool.started",
        {"toolName": text, "args": {"command": text, text[:80]: text}},
        call | name,
    )
    yield "tool.output.delta", {"delta": text}, call
    yield "tool.failed", {"message": text, "failureCategory": "timeout", "recoveryHint": text}, call
    yield "artifact.created", {"title": text, "path": text, "kind": text[:40]}, made | name
    yield "evidence.changed", {"title": text, "kind": "citation", "summary": text}, proof | name
    yield "task.started", {"title": text, "summary": text}, task | name
    yield "subagent.started", {"name": text, "role": text}, member | name
    yield "worker.notification", {"message": text}, task | {"workerId": f"w-{number}"} | name
    requests = {"actionType": "tool_approval", "prompt": text, "shown": text, "severity": text[:20]}
    yield "action.required", requests, {"actionId": f"act-{number}"} | member | name
    yield "runtime.warning", {"code": "odd", "message": text}, name
    yield "context.compaction.completed", {"summary": text}, name


async def shown_safely(page: Page, thread: str) -> None:
    """Open every screen of a thread; nothing on it may be more than text."""
    await open_thread(page, thread)
    for tab in TABS:
        await turned_to(page, tab)
        assert await page.evaluate(FORBIDDEN) == [], tab
        assert await page.evaluate(BAD_LINKS) == [], tab
        assert await page.evaluate("window.__run") is None, tab


@pytest.mark.requirement("workbench.hostile")
async def test_hostile_text_in_any_place_runs_loads_and_leads_nowhere(
    new_page: NewPage, http: httpx.Client
):
    texts = [*VECTORS, *LINKS]
    post(http, everywhere("hostile-places", texts))
    async with new_page() as watched:
        await shown_safely(watched.page, "hostile-places")
        await watched.page.goto("/inbox")
        await expect(watched.page.get_by_role("main")).to_contain_text("<script>")
        assert await watched.page.evaluate(FORBIDDEN) == []


@pytest.mark.requirement("workbench.layout")
async def test_words_of_any_length_and_script_keep_to_their_boxes_on_a_phone(
    new_page: NewPage, http: httpx.Client
):
    post(http, everywhere("stretching", STRETCHING))
    async with new_page(size="phone") as watched:
        page = watched.page
        await open_thread(page, "stretching")
        for tab in TABS:
            await turned_to(page, tab)
            await watched.screenshot(f"stretching-{tab.lower()}")
            assert await page.evaluate(WIDER_THAN_THE_PAGE) <= 0, tab
        for place in ("/", "/inbox"):
            await page.goto(place)
            await expect(page.get_by_role("main")).not_to_be_empty()
            assert await page.evaluate(WIDER_THAN_THE_PAGE) <= 0, place
