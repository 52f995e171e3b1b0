"""The pages of a Hub, in a real browser and without one."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect
from sqlalchemy import select, update

from factwire.edge.hub_access import HubTarget, remove_target, write_target
from factwire.hub.approvals.approval_link import note_loss
from factwire.hub.approvals.approval_states import LOST
from factwire.hub.limits import ACCESS_TOKEN_SECONDS
from factwire.hub.records.link_tables import deliveries
from factwire.hub.request_rates import RequestRates
from factwire.runtime.configuration import ProviderSettings
from tests.edge.edges import RunningEdge, running_edge
from tests.hub.hubs import PASSWORD, SteppedClock, running_hub
from tests.hub.identity_server import CLIENT, SECRET, identity_server
from tests.hub.served_hubs import ServedHub, served_hub
from tests.workbench.browsers import chromium, watched_page

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.requirement("hub.join-page"),
]


async def test_a_page_is_whole_in_itself_and_allows_nothing_else(tmp_path: Path):
    async with running_hub(tmp_path) as hub:
        for path in ("/", "/join", "/pair", "/device", "/sign-in", "/sign-in/corp"):
            page = await hub.http.get(path)
            assert page.headers["content-type"] == "text/html; charset=utf-8"
            policy = page.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert re.findall(r'(?:src|href)="(?!/[#a-z])', page.text) == []
            assert (await hub.http.head(path)).content == b""
            assert (await hub.http.post(path, json={})).status_code == 401
            framed = await hub.http.get(path, headers={"sec-fetch-site": "cross-site"})
            assert framed.json()["code"] == "cross_site_request"
            followed = {
                "sec-fetch-site": "cross-site",
                "sec-fetch-mode": "navigate",
                "sec-fetch-dest": "document",
            }
            assert (await hub.http.get(path, headers=followed)).status_code == 200
            assert (await hub.http.get(f"{path.rstrip('/')}/x/y")).status_code == 401


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def browser() -> AsyncGenerator[Browser]:
    # All of these screens have one address, and how often it may ask has tests of its own.
    with patch.object(RequestRates, "spend"):
        async with chromium() as started:
            yield started


class Walk:
    """A Hub that nobody has an account at yet, and a machine that has not joined it."""

    def __init__(self, hub: ServedHub, edge: RunningEdge) -> None:
        self.hub = hub
        self.edge = edge
        self.url = f"http://127.0.0.1:{hub.port}"
        self.target: HubTarget | None = None

    async def ask(self) -> dict[str, Any]:
        """The codes by which the machine asks to join."""
        return await self.hub.ask_to_join(self.edge.machine.edge_id, agents=["demo", "shell"])

    async def collect(self, codes: dict[str, Any]) -> None:
        """Join with the machine, which somebody has confirmed."""
        joined = (await self.hub.collect(codes["device_code"])).json()
        token, device_id = joined["deviceToken"], joined["deviceId"]
        self.target = HubTarget(url=self.url, token=token, device_id=device_id)
        write_target(self.edge.machine.data, self.target)

    async def ensure_joined(self) -> None:
        """What a new user does first, where no test has done it."""
        if self.target is None:
            ada, codes = await self.hub.first_admin(), await self.ask()
            path = f"/v1/device-authorizations/{codes['user_code']}/decision"
            await ada.post(path, {"decision": "confirm"}, status=200)
            await self.collect(codes)

    async def confirm(self, page: Page) -> None:
        """Join with the machine, by a code that the page confirms."""
        codes = await self.ask()
        await page.goto(f"/device#{codes['user_code'].lower()}")
        assert page.url == f"{self.url}/device"
        await page.get_by_role("button", name="Look up").click()
        await page.get_by_role("heading", name="This machine asks to join").wait_for()
        await page.get_by_text("demo, shell").wait_for()
        await page.get_by_role("button", name="Confirm").click()
        await page.get_by_role("status").filter(has_text="It comes in now").wait_for()
        await self.collect(codes)

    @asynccontextmanager
    async def lid_closed(self) -> AsyncGenerator[None]:
        """The machine is away meanwhile."""
        assert self.target is not None
        remove_target(self.edge.machine.data)
        yield
        write_target(self.edge.machine.data, self.target)

    async def lose_decision(self, code: str) -> None:
        """The Hub gives up carrying the one decision that is on its way."""
        async with self.hub.hub.services.events.change() as change:
            waiting = deliveries.c.kind == "control", deliveries.c.state == "pending"
            found = await change.connection.execute(select(deliveries).where(*waiting))
            lost = found.mappings().one()
            await change.connection.execute(
                update(deliveries).where(*waiting).values(state="dead", code=code)
            )
            await note_loss(change, lost, code)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def walk(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Walk]:
    folder: Path = tmp_path_factory.mktemp("walk")
    async with served_hub(folder) as hub, running_edge(folder) as edge:
        yield Walk(hub, edge)


async def sign_in(page: Page, name: str = "Ada", password: str = PASSWORD) -> None:
    await page.get_by_label("Name", exact=True).fill(name)
    await page.get_by_label("Password").fill(password)
    await page.get_by_role("button", name="Sign in", exact=True).click()


@pytest.mark.browser
@pytest.mark.requirement("hub.joining")
@pytest.mark.requirement("hub.pages")
async def test_a_new_user_creates_the_account_and_confirms_a_machine(walk: Walk, browser: Browser):
    async with watched_page(browser, walk.url) as watched:
        watched.expected += ["400", "401"]
        page, status = watched.page, watched.page.get_by_role("status")
        await page.goto(f"/join#{walk.hub.first_token}")
        assert page.url == f"{walk.url}/join"
        await page.get_by_label("Name").fill("Ada")
        await page.get_by_label("Password").fill("aaaaaaaaaaaaa")
        await page.get_by_role("button", name="Create account", exact=True).click()
        await status.filter(has_text="password_weak").wait_for()
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_role("button", name="Create account", exact=True).click()
        await page.get_by_text(f"factwire join {walk.url}").wait_for()
        await walk.confirm(page)
        await page.get_by_role("link", name="Home").click()
        laptop = page.get_by_role("listitem").filter(has_text="laptop")
        await laptop.filter(has_text="online").wait_for()
        assert await watched.accessibility() == []
        await page.get_by_role("link", name="Account").click()
        await page.get_by_text("Signed in as Ada (admin)").wait_for()
        await page.get_by_role("button", name="Sign out").click()
        await status.filter(has_text="You are signed out.").wait_for()
        # Whoever asks for something goes on to it after signing in.
        await page.goto("/#/devices")
        await sign_in(page, password="not this one")
        await status.filter(has_text="sign_in_failed").wait_for()
        await sign_in(page)
        await page.get_by_role("heading", name="Devices").wait_for()
        assert page.url == f"{walk.url}/#/devices"


async def pair(screen: Page, phone: Page, other: Page) -> None:
    """Sign in on a phone by the code of a screen; whoever has the code too comes too late."""
    await screen.get_by_role("button", name="Show a code").click()
    await screen.get_by_role("img", name="QR code").wait_for()
    link = await screen.locator("details pre").text_content()
    assert link is not None
    await phone.goto(link)
    assert phone.url == link.partition("#")[0]
    await phone.get_by_label("What to call this device").fill("My phone")
    await phone.get_by_role("button", name="Ask to sign in").click()
    await phone.get_by_role("heading", name="Now confirm").wait_for()
    await other.goto(link)
    await other.get_by_role("button", name="Ask to sign in").click()
    await other.get_by_role("status").filter(has_text="used or has expired").wait_for()
    await screen.get_by_role("definition").filter(has_text="My phone").wait_for()
    confirm = screen.get_by_role("button", name="Confirm")
    await confirm.click()
    await confirm.wait_for(state="detached")
    await phone.clock.fast_forward(5_000)
    await screen.get_by_text("My phone is signed in.").wait_for()


@pytest.mark.browser
@pytest.mark.requirement("hub.pairing")
@pytest.mark.requirement("hub.pages")
async def test_a_paired_phone_starts_an_agent_and_decides_also_while_the_machine_is_away(
    walk: Walk, browser: Browser
):
    async with (
        watched_page(browser, walk.url) as desk,
        watched_page(browser, walk.url, size="phone", theme="dark") as hand,
        watched_page(browser, walk.url, size="phone") as other,
    ):
        await walk.ensure_joined()
        screen, phone = desk.page, hand.page
        hand.expected += ["400", "401"]
        other.expected.append("404")
        await phone.clock.install()
        await screen.goto("/#/devices")
        await sign_in(screen)
        await pair(screen, phone, other.page)
        # A phone stays signed in when its tab is closed.
        assert await phone.evaluate("sessionStorage.length") == 0
        await phone.get_by_label("What should the agent do?").fill("Take notes <b>")
        await phone.get_by_label("With").select_option("demo")
        await phone.get_by_role("button", name="Start").click()
        await phone.get_by_role("heading", name="Take notes <b>").wait_for()
        request = phone.get_by_role("link", name="Write factwire-demo")
        await request.wait_for()
        async with walk.lid_closed():
            await phone.get_by_text("laptop is offline").wait_for()
            await request.click()
            await phone.get_by_text("+# Notes of a demo").wait_for()
            await phone.get_by_role("button", name="Allow").click()
            await phone.get_by_text("decided; will be sent when laptop is back").wait_for()
            for code in LOST:
                await walk.lose_decision(code)
                await phone.get_by_text("the decision did not reach laptop").wait_for()
                await phone.get_by_role("button", name="Allow").click()
                await phone.get_by_text("decided; will be sent when laptop is back").wait_for()
            await phone.get_by_role("heading", name="Progress").wait_for()
            assert re.search(r":\d\d:\d\d", await phone.locator("dd").first.inner_text())
            assert await hand.accessibility() == []
            reversed_text = "verbatim('a\\u202eb').map((each) => each.textContent ?? each)"
            assert await phone.evaluate(reversed_text) == ["a", "U+202E", "b"]
            await phone.get_by_role("link", name="Open its thread").click()
            await phone.get_by_text("My words are scripted").wait_for()
            await phone.get_by_label("Tell the agent").fill("And then?")
            await phone.get_by_role("button", name="Send").click()
            queued = phone.get_by_role("listitem").filter(has_text="And then?")
            await queued.filter(has_text="queued").wait_for()
        # The machine is back: it takes the decision, does what was allowed, and asks the next.
        await phone.get_by_text("I wrote").wait_for()
        await phone.get_by_text("1 message will follow").wait_for()
        await phone.get_by_role("button", name="Stop").click()
        await screen.get_by_role("button", name="Sign out My phone").click()
        await phone.get_by_role("heading", name="Sign in to this Hub").wait_for()
        assert await phone.evaluate("localStorage.length") == 0


@pytest.mark.browser
@pytest.mark.requirement("hub.devices")
@pytest.mark.requirement("hub.pages")
async def test_a_machine_is_revoked_in_the_browser_and_stays_readable(walk: Walk, browser: Browser):
    await walk.ensure_joined()
    async with watched_page(browser, walk.url) as watched:
        page = watched.page
        await page.goto("/#/devices")
        await sign_in(page)
        await page.get_by_role("link", name="laptop").click()
        await page.get_by_role("button", name="Revoke …").click()
        await page.get_by_role("button", name="Revoke", exact=True).click()
        await page.get_by_text(f"factwire join {walk.url}").wait_for()
        await page.get_by_role("link", name="laptop").click()
        await page.get_by_text("It has left this Hub").wait_for()
        # The parts of a view find at once that their token has expired, and refresh it once.
        watched.expected.append("401")
        paths: list[str] = []
        page.on("request", lambda request: paths.append(urlsplit(request.url).path))
        walk.hub.clock.advance(ACCESS_TOKEN_SECONDS + 1)
        await page.get_by_role("link", name="Home").click()
        await page.get_by_text("Nothing is waiting for a decision.").wait_for()
        await expect(page.get_by_text("Loading …")).to_have_count(0)
        assert paths.count("/v1/auth/refresh") == 1


@pytest.mark.browser
@pytest.mark.requirement("hub.passkeys")
@pytest.mark.requirement("hub.providers")
async def test_somebody_joins_with_a_passkey_and_signs_in_by_each_method(
    tmp_path: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch
):
    """Chromium with an authenticator of its own, and a provider that runs."""
    monkeypatch.setenv("CORP_SECRET", SECRET)
    clock = SteppedClock()
    with identity_server(clock) as idp:
        corp = ProviderSettings(
            issuer=idp.issuer,
            client_id=CLIENT,
            client_secret_env="CORP_SECRET",
            title="Corp",
            private_network=True,
        )
        # A browser binds passkeys to a name, so this Hub is opened by one.
        async with (
            served_hub(tmp_path, clock, name="localhost", oidc={"corp": corp}) as hub,
            watched_page(browser, url := f"http://localhost:{hub.port}") as watched,
        ):
            page, status = watched.page, watched.page.get_by_role("status")
            devtools: Any = await page.context.new_cdp_session(page)
            await devtools.send("WebAuthn.enable")
            options = {
                "protocol": "ctap2",
                "transport": "internal",
                "hasResidentKey": True,
                "hasUserVerification": True,
                "isUserVerified": True,
                "automaticPresenceSimulation": True,
            }
            await devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})
            await page.goto(f"{url}/join#{hub.first_token}")
            await page.get_by_label("Name").fill("Ada")
            await page.get_by_role("button", name="Create account with a passkey").click()
            home = page.get_by_role("heading", name="Hello, Ada")
            await home.wait_for()
            await page.get_by_role("link", name="Account").click()
            await page.get_by_role("button", name="Link Corp").click()
            await page.get_by_text("corp: subject-1").wait_for()
            assert page.url == f"{url}/sign-in"
            for method in ("a passkey", "Corp"):
                await page.get_by_role("button", name="Sign out").click()
                await status.filter(has_text="You are signed out.").wait_for()
                await page.get_by_role("button", name=f"Sign in with {method}").click()
                await home.wait_for()
                await page.get_by_role("link", name="Account").click()
            await page.get_by_role("button", name="Remove Passkey: Passkey").click()
            await page.get_by_role("button", name="Remove Passkey: Passkey").wait_for(
                state="detached"
            )
            watched.expected.append("409")
            await page.get_by_role("button", name="Remove corp: subject-1").click()
            await status.filter(has_text="last_method").wait_for()
            assert await watched.accessibility() == []
            # What another browser began is not finished in this one.
            back = f"{url}/sign-in/corp?code=stolen&state=of-another"
            await page.goto(back)
            await status.filter(has_text="was not begun in this tab").wait_for()
            assert page.url == f"{url}/sign-in"
