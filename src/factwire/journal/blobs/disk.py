"""Blocking file work on a thread, never abandoned half-way.

A task that is cancelled in the middle of a write would go on to close the file under the thread
that writes to it; so a cancellation waits until the thread is done.
"""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
Result = TypeVar("Result")


async def on_disk(work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """What `work` returns; when this is cancelled, it ends only after `work` has."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
