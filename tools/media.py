"""Make the pictures of the README anew: `python -m tools.media`.

A real Edge with the demo agent, a real browser, and somebody who clicks through the tour. Frames
are encoded by the browser, which knows WebP, and put into one file here: an animated WebP is the
same frames one after the other, each with its time.
"""

import asyncio
import base64
import struct
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from playwright.async_api import Browser, Page, expect

from tests.client.edge_processes import TOKEN
from tests.workbench.browsers import Watched, chromium, watched_page
from tests.workbench.edges import WorkbenchEdge
from tests.workbench.opening import badge

FOLDER: Final = Path(__file__).parents[1] / "docs" / "media"
WIDTH, HEIGHT = 1120, 700
MOST_BYTES: Final = 1_000_000
QUALITY: Final = 0.72
PROMPT: Final = "demo: tour"
STEPS_BACK: Final = 20
"""Facts between two frames of going back."""

_ENCODE: Final = """async ([source, quality]) => {
  const image = new Image();
  image.src = source;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", quality);
}"""


class Film:
    """Frames of a page, each shown for some milliseconds."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.frames: list[tuple[bytes, int]] = []

    async def take(self, milliseconds: int) -> None:
        self.frames.append((await self._page.screenshot(), milliseconds))


async def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, WorkbenchEdge(Path(folder)) as edge:
        async with chromium() as browser, watched_page(browser, edge.url) as watched:
            await watched.page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
            film = Film(watched.page)
            still = await _record_tour(watched, film)
            frames = await _encode_frames(browser, film.frames)
    (FOLDER / "workbench.png").write_bytes(still)
    moving = animation(WIDTH, HEIGHT, frames)
    if len(moving) > MOST_BYTES:
        raise SystemExit(f"the animation has {len(moving)} bytes, more than {MOST_BYTES}")
    (FOLDER / "workbench.webp").write_bytes(moving)
    print(f"{len(still)} and {len(moving)} bytes in {FOLDER.name}")


async def _record_tour(watched: Watched, film: Film) -> bytes:
    """Click through the tour; the picture of the moment in which somebody is asked comes back."""
    page = watched.page
    await page.goto(f"/#token={TOKEN}")
    await expect(badge(page)).to_have_text("Live")
    await page.get_by_label("What should the agent do?").fill(PROMPT)
    await film.take(900)
    await page.get_by_role("button", name="Start", exact=True).click()
    still = await _decide_approval(page, film)
    await expect(page.get_by_text("That was all.")).to_be_visible()
    await film.take(1_200)
    for tab in ("Graph", "Team", "Evidence", "Timeline"):
        await page.get_by_role("tab", name=tab).click()
        await page.wait_for_timeout(700)
        await film.take(1_100)
    for _ in range(6):
        for _ in range(STEPS_BACK):
            await page.get_by_role("slider").press("ArrowLeft")
        await page.wait_for_timeout(500)
        await film.take(450)
    await page.get_by_role("tab", name="Conversation").click()
    await page.wait_for_timeout(500)
    await film.take(1_600)
    return still


async def _decide_approval(page: Page, film: Film) -> bytes:
    """Approve whatever the tour asks for; the second request is the one with a diff to show."""
    stills: list[bytes] = []
    done = page.get_by_text("That was all.")
    approve = page.get_by_role("button", name="Approve", exact=True)
    while True:
        await expect(approve.or_(done).first).to_be_visible()
        if await done.is_visible():
            return stills[1]
        await page.wait_for_timeout(250)
        stills.append(await page.screenshot())
        await film.take(900)
        card = page.get_by_role("group", name="Approval: ").last
        label = await card.get_attribute("aria-label")
        await approve.last.click()
        await expect(page.get_by_role("group", name=label or "", exact=True)).to_have_count(0)


async def _encode_frames(
    browser: Browser, frames: list[tuple[bytes, int]]
) -> list[tuple[bytes, int]]:
    page = await browser.new_page()
    encoded: list[tuple[bytes, int]] = []
    for picture, milliseconds in frames:
        source = "data:image/png;base64," + base64.b64encode(picture).decode()
        text: str = await page.evaluate(_ENCODE, [source, QUALITY])
        encoded.append((base64.b64decode(text.partition(",")[2]), milliseconds))
    await page.close()
    return encoded


def animation(width: int, height: int, frames: Iterable[tuple[bytes, int]]) -> bytes:
    """One WebP of many: a header that says so, then the picture data of each with its duration."""
    has_animation = 1 << 1
    size = _three(width - 1) + _three(height - 1)
    body = _chunk(b"VP8X", struct.pack("<I", has_animation) + size)
    body += _chunk(b"ANIM", struct.pack("<IH", 0, 0))
    for picture, milliseconds in frames:
        head = _three(0) + _three(0) + size + _three(milliseconds) + b"\x00"
        body += _chunk(b"ANMF", head + _picture_data(picture))
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def _picture_data(webp: bytes) -> bytes:
    """The chunks of a single picture that hold its pixels."""
    kept, at = b"", 12
    while at < len(webp):
        name, length = webp[at : at + 4], int(struct.unpack_from("<I", webp, at + 4)[0])
        if name in (b"VP8 ", b"VP8L", b"ALPH"):
            kept += _chunk(name, webp[at + 8 : at + 8 + length])
        at += 8 + length + length % 2
    return kept


def _chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + b"\x00" * (len(data) % 2)


def _three(number: int) -> bytes:
    return number.to_bytes(3, "little")


if __name__ == "__main__":
    asyncio.run(main())
