"""The watch itself: what a page does wrong is seen, or every other test here proves nothing."""

import asyncio

import pytest

from tests.client.edge_processes import PATIENCE
from tests.workbench.browsers import Watched
from tests.workbench.loops import BROWSER

pytestmark = BROWSER


@pytest.mark.parametrize(
    ("wrong", "seen"),
    [
        ("console.error('something broke')", "something broke"),
        ("setTimeout(() => { throw new Error('nobody caught it'); })", "nobody caught it"),
        ("alert('gotcha')", "gotcha"),
        ("fetch('http://evil.example/').catch(() => null)", "policy connect-src"),
        ("document.body.append(Object.assign(new Image(), {src: 'http://evil.example/x'}))", "img"),
        ("open('http://evil.example/', '_self')", "request: http://evil.example/"),
    ],
)
async def test_what_a_page_does_wrong_fails_its_test(signed_in: Watched, wrong: str, seen: str):
    await signed_in.page.evaluate(f"() => {{ {wrong} }}")
    async with asyncio.timeout(PATIENCE):
        while not any(seen in each for each in signed_in.wrong()):
            await signed_in.page.context.cookies()
    with pytest.raises(AssertionError):
        signed_in.ensure_clean()
    signed_in.expected = [""]
