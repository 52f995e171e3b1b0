"""Threads of a test's own on the shared Edge, and pages that look at them."""

from typing import Any

import httpx
from playwright.async_api import Locator, Page, expect

from tests.client.edge_processes import TOKEN

KEEP_SOCKETS = """
window.__sockets = [];
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    window.__sockets.push(this);
  }
};
"""
"""A script that lets a test get at the streams of a page."""


def start_run(http: httpx.Client, prompt: str, title: str) -> dict[str, Any]:
    """A run of the demo agent, on a thread of its own."""
    body = {"agentId": "demo", "prompt": prompt, "title": title}
    answer = http.post("/v1/runs", json=body)
    assert answer.is_success, answer.text
    return answer.json()


def state_of(http: httpx.Client, thread_id: str) -> dict[str, Any]:
    """What the Edge says of a thread now."""
    return http.get(f"/v1/threads/{thread_id}/projection").json()["state"]


def pending_approvals(http: httpx.Client, thread_id: str) -> list[dict[str, Any]]:
    """What waits for a decision on a thread."""
    wanted = {"threadId": thread_id, "status": "pending"}
    return http.get("/v1/approvals", params=wanted).json()["items"]


def decide(http: httpx.Client, run: dict[str, Any], approval_id: str, decision: str) -> None:
    card = http.get(f"/v1/approvals/{approval_id}/card").json()
    body = {"runId": run["runId"], "requestId": approval_id, "decision": decision}
    body["argsHash"] = card["argsHash"]
    answer = http.post("/v1/permissions/decide", json=body)
    assert answer.is_success, answer.text


async def open_thread(page: Page, thread_id: str, tab: str | None = None) -> None:
    """The page shows a thread, signed in and live."""
    query = "" if tab is None else f"?tab={tab}"
    await page.goto(f"/threads/{thread_id}{query}#token={TOKEN}")
    await expect(badge(page)).to_have_text("Live")


def badge(page: Page) -> Locator:
    """How the page says that it is connected."""
    return page.get_by_role("banner").get_by_role("status").first


def conversation(page: Page) -> Locator:
    return page.get_by_role("region", name="Conversation")


async def turned_to(page: Page, tab: str) -> Locator:
    """The panel of a tab, once it is there."""
    await page.get_by_role("tab", name=tab).click()
    panel = page.get_by_role("tabpanel", name=tab)
    await expect(panel).not_to_be_empty()
    await expect(page.get_by_role("img", name="Loading thread")).to_have_count(0)
    return panel
