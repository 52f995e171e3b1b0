"""What agents write is shown, and never becomes anything but text."""

import httpx
import pytest
from playwright.async_api import expect

from tests.workbench.browsers import Watched
from tests.workbench.hostile import payloads
from tests.workbench.loops import BROWSER
from tests.workbench.seeding import message_facts, post

pytestmark = BROWSER

IN_A_MESSAGE = 30
FORBIDDEN = """() => [
  ...document.querySelectorAll(
    "body script, iframe, object, embed, form[action], base, meta[http-equiv], body style, template"
  ),
  ...[...document.querySelectorAll("body *")].filter((element) =>
    [...element.attributes].some((attribute) =>
      /^on/i.test(attribute.name) ||
      (/^(href|src|action|formaction|xlink:href)$/i.test(attribute.name) &&
        /^\\s*(javascript|vbscript|file|data:text)/i.test(attribute.value)),
    ),
  ),
].map((element) => element.outerHTML.slice(0, 200))"""


@pytest.mark.requirement("workbench.xss")
async def test_nothing_that_an_agent_wrote_runs_loads_or_leads_out(
    signed_in: Watched, http: httpx.Client
):
    corpus = payloads()
    assert len(corpus) >= 200
    page = signed_in.page
    for number, at in enumerate(range(0, len(corpus), IN_A_MESSAGE)):
        thread = f"hostile-{number}"
        chunk = corpus[at : at + IN_A_MESSAGE]
        text = "\n\n".join([*chunk, f"the end of {thread}"])
        post(http, message_facts(thread, [text], title=chunk[0]))
        await page.goto(f"/threads/{thread}")
        await expect(page.get_by_text(f"the end of {thread}")).to_be_visible()
        assert await page.evaluate(FORBIDDEN) == [], thread
        assert await page.evaluate("window.__run") is None, thread
        signed_in.ensure_clean()
