"""A page with the browser's `EventSource`: it comes back by itself, and misses nothing."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.edge.edges import TOKEN, RunningEdge, running_edge
from tests.workbench.browsers import WAIT_MILLISECONDS, watched_page
from tests.workbench.loops import BROWSER

pytestmark = BROWSER

FOLLOW = """async (token) => {
  const answer = await fetch("/v1/tickets", {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify({ renewable: true }),
  });
  const { ticket } = await answer.json();
  const seen = [];
  let opened = 0;
  const show = () => (document.body.dataset.seen = `${opened} ${seen.join(",")}`);
  const events = new EventSource(`/v1/events?since=now&types=project&ticket=${ticket}`);
  events.addEventListener("open", () => show((opened += 1)));
  events.addEventListener("project.created", ({ data }) => {
    show(seen.push(JSON.parse(data).payload.name));
  });
  events.addEventListener("stream.error", ({ data }) => show(seen.push(data)));
}"""


async def create_projects(edge: RunningEdge, *names: str) -> None:
    for name in names:
        await edge.post("/v1/projects", {"name": name}, status=201)


async def wait_for(page: Page, opened: int, names: list[str]) -> None:
    """Until the page was connected so often, and has seen these and nothing else."""
    await expect(page.locator("body")).to_have_attribute(
        "data-seen", f"{opened} {','.join(names)}", timeout=WAIT_MILLISECONDS
    )


@pytest.mark.requirement("edge.access.stream-tickets")
async def test_an_event_source_that_was_cut_off_comes_back_where_it_was(
    browser: Browser, tmp_path: Path
):
    async with running_edge(tmp_path) as edge, watched_page(browser, edge.url) as watched:
        page = watched.page
        await page.goto("/")
        await page.evaluate(FOLLOW, TOKEN)
        await wait_for(page, 1, [])
        names = [f"project {number}" for number in range(6)]
        await create_projects(edge, *names[:2])
        await wait_for(page, 1, names[:2])
        for opened, count in ((2, 4), (3, 6)):
            edge.edge.streams.readers.close()
            await create_projects(edge, *names[count - 2 : count])
            await wait_for(page, opened, names[:count])
