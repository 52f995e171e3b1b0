"""Deciding, in a real browser: the inbox, cards in threads, forms, and what waits for attention."""

import json
import re
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from playwright.async_api import Locator, Page, expect

from factwire.runtime.action_cards import UNAVAILABLE
from tests.workbench.asking import SECRET
from tests.workbench.asking_fixtures import OpenPage, Start, rows_of, say
from tests.workbench.browsers import Watched
from tests.workbench.loops import BROWSER
from tests.workbench.seeding import fact, post

pytestmark = BROWSER

LISTEN = """
window.__told = [];
window.Notification = class extends EventTarget {
  static permission = "default";
  static asked = 0;
  static async requestPermission() {
    this.asked += 1;
    return (this.permission = "granted");
  }
  constructor(title, options) {
    super();
    window.__told.push({ title, ...options });
  }
  close() {}
};
document.hasFocus = () => false;
"""


def _card(page: Page, title: str | None = None) -> Locator:
    named = page.get_by_role("group", name=re.compile("^Approval: "))
    return named if title is None else named.filter(has_text=title)


def _requests(thread_id: str, **more: Any) -> list[dict[str, Any]]:
    """A thread of another runtime, in which something is asked."""
    payload = {
        "actionType": "tool_approval",
        "severity": "high",
        "prompt": f"May I, {thread_id}?",
        "shown": "command:\n| make all",
        "argsHash": f"sha256:{'1' * 64}",
        "requestedBy": "somebody",
        **more,
    }
    ids = {"actionId": f"{thread_id}-action", "runId": f"{thread_id}-run"}
    return [
        fact(thread_id, 1, "thread.started", {"title": f"Thread {thread_id}"}),
        fact(thread_id, 2, "turn.started", {}),
        fact(thread_id, 3, "action.required", payload, **ids),
    ]


def _action_fact(thread_id: str, sequence: int, event_class: str, **payload: Any) -> dict[str, Any]:
    ids = {"actionId": f"{thread_id}-action", "runId": f"{thread_id}-run"}
    return fact(thread_id, sequence, event_class, payload, **ids)


@pytest.mark.requirement("workbench.approvals.everywhere")
@pytest.mark.requirement("workbench.approvals.shown")
async def test_what_one_browser_decides_the_other_shows(
    open_page: OpenPage, start: Start, requests: httpx.Client
):
    thread = start("approve")["threadId"]
    async with open_page("/inbox") as inbox, open_page(f"/threads/{thread}") as other:
        card = _card(inbox.page)
        await expect(card).to_contain_text("cksum")
        for word in ("Requested by", "Folder", "Expires"):
            await expect(card).to_contain_text(word)
        await expect(_card(other.page)).to_contain_text("cksum")
        assert await inbox.accessibility() == []
        await inbox.screenshot("inbox-light-wide")
        await expect(card.get_by_role("button", name="Approve", exact=True)).to_be_visible()
        await card.focus()
        await inbox.page.keyboard.press("a")
        await expect(_card(other.page)).to_have_count(0)
        await expect(other.page.get_by_text("You approved it, so I ran it")).to_be_visible()
        await expect(inbox.page.get_by_text("confirmed by the runtime")).to_be_visible()
        await _deny(requests, thread, inbox, other)


async def _deny(requests: httpx.Client, thread: str, inbox: Watched, other: Watched) -> None:
    """The other way round: denied in the thread, with a reason, while the inbox is looked at."""
    say(requests, thread, "approve")
    card = _card(other.page)
    await expect(card).to_be_visible()
    await expect(_card(inbox.page)).to_be_visible()
    await card.focus()
    await other.page.keyboard.press("d")
    await expect(other.page.get_by_label("Reason")).to_be_focused()
    await other.page.keyboard.type("not a today")
    await other.page.keyboard.press("Enter")
    await expect(other.page.get_by_text("That was not allowed")).to_be_visible()
    news = re.compile("decided elsewhere by .+ via workbench")
    await expect(inbox.page.get_by_text(news)).to_be_visible()
    [newest, *_] = rows_of(requests, "/v1/approvals", threadId=thread)
    assert (newest["status"], newest["reason"]) == ("denied", "not a today")


@pytest.mark.requirement("workbench.approvals.form")
async def test_a_question_is_answered_by_a_form_with_values_of_its_types(
    open_page: OpenPage, start: Start, requests: httpx.Client
):
    thread = start("form", "asking")["threadId"]
    async with open_page("/inbox", theme="dark", size="phone") as watched:
        card = _card(watched.page)
        await card.get_by_role("button", name="Answer").click()
        await expect(card.get_by_role("alert")).to_have_text(["This field is required."] * 2)
        await card.get_by_label("Name of the branch").fill("fix/שלום")
        await card.get_by_role("radio", name="large").check()
        for check in ("types", "docs"):
            await card.get_by_role("checkbox", name=check).check()
        await card.get_by_label("Tries").fill("9")
        await expect(card.get_by_role("alert")).to_contain_text("from 1 to 5")
        await card.get_by_label("Tries").fill("3")
        assert await watched.accessibility() == []
        await watched.screenshot("inbox-form-dark-phone")
        await card.get_by_label("Name of the branch").press("Enter")
        await expect(_card(watched.page)).to_have_count(0)
        await watched.page.goto(f"/threads/{thread}")
        await expect(watched.page.get_by_text("Answered:")).to_be_visible()
    [action] = _actions(requests, thread)
    wanted = {"name": "fix/שלום", "size": "large", "checks": ["types", "docs"], "tries": 3}
    assert action["response"] == {**wanted, "push": False}


def _actions(requests: httpx.Client, thread: str) -> list[dict[str, Any]]:
    return list(_state(requests, thread)["actions"].values())


def _approval(requests: httpx.Client, approval_id: str) -> dict[str, Any]:
    return requests.get(f"/v1/approvals/{approval_id}").json()


def _state(requests: httpx.Client, thread: str) -> dict[str, Any]:
    return requests.get(f"/v1/threads/{thread}/projection").json()["state"]


@pytest.mark.requirement("workbench.approvals.shown")
async def test_a_plan_a_patch_and_a_teammate_are_told_apart(
    open_page: OpenPage, start: Start, requests: httpx.Client
):
    plan, patch = start("plan"), start("page", "asking")
    teammate = start("teammate", "asking")
    async with open_page("/inbox", theme="dark") as watched:
        await expect(_card(watched.page).get_by_role("button", name="Deny")).to_have_count(3)
        removed = _card(watched.page).get_by_text("| -<h1 id=word>One</h1>")
        await expect(removed).to_be_visible()
        await expect(_card(watched.page, "teammate sub_reader")).to_have_count(1)
        assert await watched.accessibility() == []
        await watched.screenshot("inbox-kinds-dark-wide")
        approve_plan = _card(watched.page).get_by_role("button", name="Approve plan")
        await approve_plan.click()
        await expect(approve_plan).to_have_count(0)
        await watched.page.goto(f"/threads/{teammate['threadId']}")
        await expect(_card(watched.page)).to_contain_text("teammate reader")
        await _card(watched.page).get_by_role("button", name="Approve", exact=True).click()
        await expect(watched.page.get_by_text("Ran.")).to_be_visible()
        await watched.page.goto(f"/threads/{patch['threadId']}")
        await _card(watched.page).get_by_role("button", name="Deny").click()
        await watched.page.get_by_role("button", name="Deny", exact=True).click()
        await expect(watched.page.get_by_text("Left.")).to_be_visible()
    assert _actions(requests, plan["threadId"])[0]["decision"] == "approved"


@pytest.mark.requirement("workbench.approvals.rule")
async def test_a_rule_is_on_screen_before_it_is_granted_and_then_nobody_is_asked(
    open_page: OpenPage, start: Start, requests: httpx.Client
):
    thread, patch = start("teammate", "asking")["threadId"], start("page", "asking")["threadId"]
    async with open_page(f"/threads/{thread}", size="phone") as watched:
        card = _card(watched.page)
        offer = card.get_by_role("button", name="Always allow Bash(true)")
        await offer.click()
        await expect(card.get_by_role("group", name="Rule")).to_have_text("Bash(true)")
        await expect(card).to_contain_text("It holds only in the folder")
        await expect(card).to_contain_text("It would have allowed")
        assert await watched.accessibility() == []
        await watched.screenshot("approval-rule-light-phone")
        await watched.page.keyboard.press("Escape")
        await offer.click()
        await card.get_by_label("It holds").select_option("for an hour")
        await card.get_by_role("button", name="Always in this thread").click()
        await expect(watched.page.get_by_text("Ran.")).to_be_visible()
        say(requests, thread, "teammate", "asking")
        await expect(watched.page.get_by_text("Ran.")).to_have_count(2)
        await watched.page.goto(f"/threads/{patch}")
        await expect(card.get_by_role("button", name="Deny")).to_be_visible()
        await expect(card.get_by_role("button", name="Always")).to_have_count(0)
    standing = _state(requests, thread)["permissions"]["policy"]["standing"]
    assert (standing["rule"], standing["lasts"]) == ("Bash(true)", "thread")
    rules = rows_of(requests, "/v1/standing-rules")
    [expires_at] = [rule["expiresAt"] for rule in rules if rule["threadId"] == thread]
    granted_at = datetime.fromisoformat(_actions(requests, thread)[0]["resolvedAt"])
    lasts = datetime.fromisoformat(expires_at) - granted_at
    assert timedelta(minutes=59) < lasts <= timedelta(hours=1)
    deciders = [action["decidedBy"] for action in _actions(requests, thread)]
    assert [each if isinstance(each, str) else each["via"] for each in deciders] == [
        "workbench",
        "policy",
    ]


@pytest.mark.requirement("workbench.approvals.shown")
async def test_a_masked_secret_and_a_text_that_is_gone_are_marked_on_the_card(
    open_page: OpenPage, start: Start, requests: httpx.Client
):
    thread = start("secret", "asking")["threadId"]
    post(requests, _requests("gone"))
    card_of_gone = {"requestId": "gone-action", "argsHash": f"sha256:{'1' * 64}"}
    restarted = json.dumps({**card_of_gone, "reason": UNAVAILABLE})
    async with open_page(f"/threads/{thread}") as watched:
        card = _card(watched.page)
        await expect(card).to_contain_text("⟦masked⟧")
        await expect(card).to_contain_text("Secrets masked: 1, each within one word.")
        await expect(card.get_by_role("button", name="Approve", exact=True)).to_be_visible()
        assert SECRET not in await watched.page.content()
        assert await watched.accessibility() == []
        await watched.screenshot("approval-masked-light")
        # As the Edge answers after a restart.
        await watched.page.route(
            "**/v1/approvals/gone~gone-action/card",
            lambda route: route.fulfill(content_type="application/json", body=restarted),
        )
        await watched.page.goto("/inbox")
        card = _card(watched.page, "gone")
        await expect(card.get_by_role("alert")).to_contain_text("no longer in memory")
        await expect(card.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
        await expect(card.get_by_role("button", name="Deny")).to_be_visible()
        assert SECRET not in await watched.page.content()
        assert await watched.accessibility() == []
        await watched.screenshot("approval-gone-light")
    post(requests, [_action_fact("gone", 4, "action.cancelled")])


@pytest.mark.requirement("workbench.approvals.changed")
async def test_a_request_that_changes_under_ones_eyes_must_be_read_again(
    open_page: OpenPage, requests: httpx.Client
):
    post(requests, _requests("turning"))
    async with open_page("/inbox") as watched:
        card = _card(watched.page, "turning")
        await expect(card.get_by_role("button", name="Approve", exact=True)).to_be_visible()
        again = {"shown": "command:\n| rm -rf /", "argsHash": f"sha256:{'2' * 64}"}
        post(requests, [_action_fact("turning", 4, "action.updated", **again)])
        await expect(card).to_contain_text("rm -rf /")
        await expect(card.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
        await card.focus()
        await watched.page.keyboard.press("a")
        await card.get_by_role("button", name="I have read it again").click()
        async with watched.page.expect_request("**/v1/permissions/decide") as sent:
            await card.get_by_role("button", name="Approve", exact=True).click()
        body = json.loads((await sent.value).post_data or "")
        assert (body["argsHash"], body["decision"]) == (again["argsHash"], "allow")
        await expect(card).to_have_count(0)
    decided = _approval(requests, "turning-action")
    assert (decided["status"], decided["argsHash"]) == ("approved", again["argsHash"])


@pytest.mark.requirement("workbench.approvals.attention")
async def test_what_waits_is_in_the_title_on_the_icon_and_told_without_details(
    open_page: OpenPage, requests: httpx.Client
):
    async with open_page("/", size="phone") as watched:
        page = watched.page
        await page.add_init_script(LISTEN)
        await page.reload()
        bell = page.get_by_role("button", name="Notify me when a decision is needed")
        await expect(bell).to_be_visible()
        assert await page.evaluate("Notification.asked") == 0
        await bell.click()
        await expect(page.get_by_role("button", name="Notifications are on")).to_be_visible()
        post(requests, _requests("calling", shown="command:\n| echo s3cret"))
        await expect(page).to_have_title("(1) Factwire")
        icon = page.locator("link[rel=icon]")
        await expect(icon).to_have_attribute("href", re.compile("^data:image/svg"))
        await page.wait_for_function("() => window.__told.length === 1")
        messages = await page.evaluate("window.__told")
        assert messages == [
            {
                "title": "Factwire: a decision is needed",
                "body": "Thread calling",
                "tag": "calling-action",
            }
        ]
        post(requests, [_action_fact("calling", 4, "action.resolved", decision="denied")])
        await expect(page).to_have_title("Factwire")
        await expect(icon).not_to_have_attribute("href", re.compile("^data:"))
