"""The workbench in Chromium, with a real Edge behind it: what somebody at the page waits for.

Times are taken in the page, by its own clock, from a key or a navigation to the picture that shows
the answer. They depend on the machine and are asserted nowhere.
"""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

import httpx
from playwright.async_api import Page

from bench.measure import Row
from tests.workbench.browsers import chromium, watched_page
from tests.workbench.edges import WorkbenchEdge
from tests.workbench.memory import elements, heap_bytes
from tests.workbench.opening import open_thread, start_run
from tests.workbench.seeding import client_of, fact, post
from tests.workbench.working import work_facts

ROUNDS: Final = 5
OLD_TURNS, LONG_TURNS = 1_040, 5_200
PACE, SECONDS, BATCH = 200, 5, 10

_ASK: Final = """async ([prompt, marks]) => {
  const seen = {};
  const field = document.querySelector("textarea");
  const before = document.body.innerText.split(marks.text).length;
  const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(field, prompt);
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await drawn();
  const start = performance.now();
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  while (!seen.text && performance.now() - start < 20000) {
    await drawn();
    const strip = document.querySelector("[role=tabpanel] [role=status]:last-of-type");
    if (!seen.status && strip?.textContent) seen.status = performance.now() - start;
    const found = document.body.innerText.split(marks.text).length > before;
    if (found) seen.text = performance.now() - start;
  }
  return seen;
}"""
_OPENED: Final = """(text) => new Promise((done) => {
  const look = () => document.body.innerText.includes(text)
    ? requestAnimationFrame(() => setTimeout(() => done(performance.now())))
    : requestAnimationFrame(look);
  look();
})"""
_FRAMES: Final = """(seconds) => new Promise((done) => {
  const gaps = [];
  let last = performance.now();
  const end = last + seconds * 1000;
  const next = (now) => {
    gaps.push(now - last);
    last = now;
    if (now < end) requestAnimationFrame(next);
    else done(gaps.slice(1));
  };
  requestAnimationFrame(next);
})"""


def rows() -> list[Row]:
    """All figures, from one Edge and one browser."""
    with (
        tempfile.TemporaryDirectory() as folder,
        WorkbenchEdge(Path(folder)) as edge,
        client_of(edge.url) as http,
    ):
        return asyncio.run(_measure_page(edge.url, http))


async def _measure_page(url: str, http: httpx.Client) -> list[Row]:
    found: list[Row] = []
    async with chromium() as browser:
        for measure in (_answers, _old_thread, _frames, _memory):
            async with watched_page(browser, url) as watched:
                found += await measure(watched.page, http)
    return found


async def _answers(page: Page, http: httpx.Client) -> list[Row]:
    await open_thread(page, start_run(http, "demo: help", "Asked often")["threadId"])
    await page.get_by_text("I can show:").wait_for()
    seen: list[dict[str, float]] = []
    for _ in range(ROUNDS):
        await page.get_by_role("button", name="Send").wait_for()
        seen.append(await page.evaluate(_ASK, ["demo: help", {"text": "I can show:"}]))
    return [
        Row(name=f"submit to first {what}, on screen", value=_median(seen, what), unit="ms")
        for what in ("status", "text")
    ]


def _median(seen: list[dict[str, float]], what: str) -> float:
    """Where the text came with the status, there was no status to be seen before it."""
    return statistics.median(each.get(what, each["text"]) for each in seen)


async def _old_thread(page: Page, http: httpx.Client) -> list[Row]:
    post(http, work_facts("old", OLD_TURNS))
    await open_thread(page, "old")
    times: list[float] = []
    for _ in range(ROUNDS):
        await page.goto("/threads/old", wait_until="commit")
        times.append(await page.evaluate(_OPENED, f"Answer {OLD_TURNS} begins and ends"))
    name = "navigation to the end of a thread of 10,000 facts"
    return [Row(name=name, value=statistics.median(times), unit="ms")]


async def _frames(page: Page, http: httpx.Client) -> list[Row]:
    post(http, [fact("live", 1, "thread.started", {"title": "Live"})])
    await open_thread(page, "live")
    counting = asyncio.create_task(page.evaluate(_FRAMES, SECONDS))
    await asyncio.to_thread(_stream, http)
    gaps: list[float] = await counting
    late = sum(gap > 1000 / 30 for gap in gaps)
    return [
        Row(name=f"frames at {PACE} facts/s", value=1000 / statistics.mean(gaps), unit="1/s"),
        Row(name="frames that came later than 33 ms", value=100 * late / len(gaps), unit="%"),
        Row(name="longest wait for a frame", value=max(gaps), unit="ms"),
    ]


def _stream(http: httpx.Client) -> None:
    """Pieces of an answer, ten at a time, in as many batches a second as the pace says."""
    ids = {"messageId": "m", "partId": "p"}
    for first in range(2, 2 + PACE * SECONDS, BATCH):
        began = time.perf_counter()
        pieces = [{**ids, "delta": f"word {at} "} for at in range(first, first + BATCH)]
        numbered = enumerate(pieces, first)
        post(http, [fact("live", at, "text.delta", piece, messageId="m") for at, piece in numbered])
        time.sleep(max(0.0, BATCH / PACE - (time.perf_counter() - began)))


async def _memory(page: Page, http: httpx.Client) -> list[Row]:
    post(http, work_facts("long", LONG_TURNS))
    await open_thread(page, "long")
    await page.get_by_text(f"Answer {LONG_TURNS} begins and ends").wait_for()
    return [
        Row(name="heap after 50,000 facts", value=await heap_bytes(page) / 1e6, unit="MB"),
        Row(name="elements after 50,000 facts", value=await elements(page), unit=""),
    ]
