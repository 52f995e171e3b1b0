"""What a page holds on to, as its browser counts it."""

from typing import Any

from playwright.async_api import Page


async def heap_bytes(page: Page) -> int:
    """Bytes of the page's objects, after what nobody needs has gone."""
    session: Any = await page.context.new_cdp_session(page)
    await session.send("HeapProfiler.collectGarbage")
    used = await session.send("Runtime.getHeapUsage")
    await session.detach()
    return used["usedSize"]


async def elements(page: Page) -> int:
    return await page.evaluate("document.querySelectorAll('*').length")
