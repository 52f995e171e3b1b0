"""The page behind an invitation's link, in a real browser and without one."""

import re
from pathlib import Path

import httpx
import pytest

from tests.hub.hub_process import hub_process
from tests.hub.hubs import PASSWORD, running_hub
from tests.workbench.browsers import chromium, watched_page

pytestmark = [pytest.mark.asyncio, pytest.mark.requirement("hub.join-page")]


async def test_the_page_is_whole_in_itself_and_allows_nothing_else(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        page = await hub.http.get("/join")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert re.findall(r'(?:src|href)="', page.text) == []
        assert (await hub.http.head("/join")).content == b""
        assert (await hub.http.post("/join", json={})).status_code == 401
        framed = await hub.http.get("/join", headers={"sec-fetch-site": "cross-site"})
        assert framed.json()["code"] == "cross_site_request"
        followed = {
            "sec-fetch-site": "cross-site",
            "sec-fetch-mode": "navigate",
            "sec-fetch-dest": "document",
        }
        assert (await hub.http.get("/join", headers=followed)).status_code == 200


@pytest.mark.browser
async def test_the_first_link_opens_a_form_that_creates_the_account(tmp_path: Path):
    with hub_process(tmp_path) as hub:
        link = f"{hub.url}/join#{hub.first_token}"
        async with chromium() as browser, watched_page(browser, hub.url) as watched:
            watched.expected.append("400")
            page = watched.page
            await page.goto(link)
            assert page.url == f"{hub.url}/join"
            await page.get_by_label("Name").fill("Ada")
            await page.get_by_label("Password").fill("aaaaaaaaaaaaa")
            await page.get_by_role("button").click()
            status = page.get_by_role("status")
            await status.filter(has_text="password_weak").wait_for()
            await page.get_by_label("Password").fill(PASSWORD)
            await page.get_by_role("button").click()
            await status.filter(has_text="The account Ada was created").wait_for()
        body = {"name": "Ada", "password": PASSWORD}
        async with httpx.AsyncClient(trust_env=False) as http:
            answer = await http.post(f"{hub.url}/v1/auth/login", json=body)
        assert answer.json()["person"]["role"] == "admin"
