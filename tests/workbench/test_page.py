"""The page in a real browser: how it lets somebody in, and that it keeps to its policy."""

import re

import pytest
from playwright.async_api import expect

from tests.client.edge_processes import TOKEN
from tests.workbench.browsers import Watched
from tests.workbench.conftest import NewPage
from tests.workbench.loops import BROWSER

pytestmark = BROWSER

SIGN_IN = re.compile(r"/sign-in(\?.*)?$")


@pytest.mark.requirement("workbench.sign-in")
async def test_without_a_token_the_page_asks_for_one_and_a_wrong_one_is_not_kept(
    new_page: NewPage,
):
    async with new_page() as watched:
        watched.expected = ["401"]
        page = watched.page
        await page.goto("/threads/thr_unknown")
        await expect(page).to_have_url(SIGN_IN)
        assert await watched.accessibility() == []
        await page.get_by_label("Token").fill("a-token-that-is-not-the-right-one")
        await page.get_by_label("Token").press("Enter")
        await expect(page.get_by_role("alert")).not_to_be_empty()
        await expect(page).to_have_url(SIGN_IN)
        stored = await page.evaluate("JSON.stringify({...sessionStorage, ...localStorage})")
        assert "not-the-right-one" not in stored
        await page.get_by_label("Token").fill(TOKEN)
        await page.get_by_label("Token").press("Enter")
        await expect(page).not_to_have_url(SIGN_IN)


@pytest.mark.requirement("workbench.entrance")
@pytest.mark.requirement("workbench.policy")
async def test_the_link_signs_in_and_leaves_no_token_in_the_address(signed_in: Watched):
    page = signed_in.page
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    await expect(page.get_by_role("main")).to_be_visible()
    await page.wait_for_function("!location.href.includes('token')")
    await page.reload()
    await expect(page).not_to_have_url(SIGN_IN)
    await expect(page.get_by_role("main")).to_be_visible()
    assert [url for url in sent if TOKEN in url] == []
    kept = await page.evaluate("JSON.stringify(localStorage) + document.cookie")
    assert TOKEN not in kept
    assert await signed_in.accessibility() == []


@pytest.mark.requirement("workbench.policy")
async def test_the_browser_enforces_the_policy(signed_in: Watched):
    signed_in.expected = ["script-src", "img-src", "connect-src", "Content Security Policy"]
    signed_in.expected += ["evil.example", "trusted-types", "TrustedHTML", "TrustedScript"]
    refused = await signed_in.page.evaluate(
        """async () => {
            const image = document.createElement("img");
            const tries = {
                text: () => setTimeout("window.__run = 1"),
                request: () => fetch("http://evil.example/"),
                markup: () => { document.body.innerHTML = "<img onerror='__run = 1' src=x>"; },
                handler: () => image.setAttribute("onerror", "window.__run = 1"),
                worker: () => new Worker("/v1/health"),
                policy: () => trustedTypes.createPolicy("another", {}),
            };
            const refused = {};
            for (const [name, attempt] of Object.entries(tries)) {
                refused[name] = await Promise.resolve().then(attempt).then(() => false, () => true);
            }
            const script = document.createElement("script");
            script.append("window.__run = 1");
            document.body.append(script);
            const failed = new Promise((done) => image.addEventListener("error", done));
            image.src = "http://evil.example/";
            await failed;
            return refused;
        }"""
    )
    assert refused == dict.fromkeys(refused, True)
    assert await signed_in.page.evaluate("window.__run") is None
    policies = {fault.split()[1] for fault in signed_in.faults if fault.startswith("policy ")}
    wanted = {"connect-src:", "img-src:", "require-trusted-types-for:", "trusted-types:"}
    assert wanted <= policies
