"""The marks of every test that drives a browser."""

import pytest

BROWSER = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
"""A browser is started once for a worker, on a loop that lasts as long as the session."""
