"""The event loop of an Edge: uvloop where it is to be had, asyncio's own elsewhere."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

if sys.platform == "win32":

    def run(work: Coroutine[Any, Any, None]) -> None:
        """Run the server to its end."""
        asyncio.run(work)
else:
    import uvloop

    def run(work: Coroutine[Any, Any, None]) -> None:
        """Run the server to its end."""
        uvloop.run(work)
