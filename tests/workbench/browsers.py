"""A real browser, watched: what a page says, runs or asks for that it must not fails the test.

Chromium is the system's own. Nothing but loopback can be reached: a request to anywhere else is cut
and counted, so a page that phones home fails wherever the tests run.
"""

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    Route,
    async_playwright,
    expect,
)

SCREENSHOTS = Path(__file__).parent / "screenshots"
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--no-first-run"),
    # A name that a page asks for is looked up nowhere.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]
WAIT_MILLISECONDS = 60_000
"""Only a bound: a machine that is busy with other things draws late, and that is no fault."""
SIZES = {"wide": (1280, 800), "phone": (360, 740)}
AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"

Theme = Literal["light", "dark"]
Size = Literal["wide", "phone"]

_LOOPBACK = ("127.0.0.1", "localhost")
_OWN_SCHEMES = ("data", "blob", "about", "file")
_TELL_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) => {
  window.__tellViolation(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`);
});
"""


class Watched:
    """A page and what it did wrong so far."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.faults: list[str] = []
        self.expected: list[str] = []
        """Parts of faults that a test brings about on purpose."""
        page.on("console", self._note_console)
        page.on("pageerror", lambda error: self.faults.append(f"uncaught: {error}"))
        page.on("dialog", self._note_dialog)
        page.on("request", self._note_request)

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            place: Any = message.location
            self.faults.append(f"console {message.type}: {message.text} at {place.get('url')}")

    async def _note_dialog(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _note_request(self, request: Request) -> None:
        if not is_own(request.url):
            self.faults.append(f"request: {request.url}")

    async def watch_policy(self) -> None:
        """Hear from now on, on every document, what the content security policy kept it from."""

        def note(violation: str) -> None:
            self.faults.append(f"policy {violation}")

        telling: Any = self.page
        await telling.expose_function("__tellViolation", note)
        await self.page.add_init_script(_TELL_VIOLATIONS)

    def wrong(self) -> list[str]:
        """Whatever the page did wrong and no test expects."""
        return [each for each in self.faults if not any(part in each for part in self.expected)]

    def ensure_clean(self) -> None:
        """Fail for whatever the page did wrong and no test expects."""
        assert self.wrong() == []

    async def screenshot(self, name: str) -> Path:
        """The page as it looks, in a folder that is not kept."""
        SCREENSHOTS.mkdir(exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        await self.page.screenshot(path=path, full_page=False)
        return path

    async def accessibility(self) -> list[str]:
        """Serious findings of axe, each with the element that it is about."""
        assert AXE.exists(), f"{AXE} is missing: run `python -m tools.web`"
        await self.page.evaluate(AXE.read_text("utf-8"))
        report: Any = await self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{found['impact']} {found['id']}: {node['html'][:200]}"
            for found in report["violations"]
            if found["impact"] in ("serious", "critical")
            for node in found["nodes"]
        ]


def is_own(url: str) -> bool:
    """Whether an address leads nowhere but to this machine."""
    parts = urlsplit(url)
    return parts.scheme in _OWN_SCHEMES or parts.hostname in _LOOPBACK


@asynccontextmanager
async def chromium() -> AsyncGenerator[Browser]:
    """The system's Chromium, without a window."""
    program = shutil.which("chromium")
    assert program is not None, "the tests need chromium: run tools/system_packages.py"
    expect.set_options(timeout=WAIT_MILLISECONDS)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=FLAGS)
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def watched_page(
    browser: Browser, url: str, *, theme: Theme = "light", size: Size = "wide"
) -> AsyncGenerator[Watched]:
    """A fresh page, as of somebody who was never here; it must be clean in the end."""
    width, height = SIZES[size]
    context = await browser.new_context(
        base_url=url,
        color_scheme=theme,
        viewport={"width": width, "height": height},
        has_touch=size == "phone",
        reduced_motion="reduce",
    )
    try:
        context.set_default_timeout(WAIT_MILLISECONDS)
        await _keep_in(context)
        watched = Watched(await context.new_page())
        await watched.watch_policy()
        yield watched
        watched.ensure_clean()
    finally:
        await context.close()


async def _keep_in(context: BrowserContext) -> None:
    async def abort_route(route: Route) -> None:
        await route.abort()

    await context.route(lambda url: not is_own(url), abort_route)
