"""Tests on both event loops: the standard one, and the one that an Edge runs on."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any

import pytest
import uvloop

_RUN: dict[str, Callable[[Coroutine[Any, Any, None]], None]] = {
    "asyncio": asyncio.run,
    "uvloop": uvloop.run,
}


def on_both_loops(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """An asynchronous test as two synchronous ones."""
    return _on(test, "asyncio", "uvloop")


def on_the_edges_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """An asynchronous test, which costs enough to be run once only."""
    return _on(test, "uvloop")


def _on(test: Callable[..., Awaitable[None]], *names: str) -> Callable[..., None]:

    @wraps(test)
    def run(*, loop: str, **arguments: Any) -> None:
        async def main() -> None:
            await test(**arguments)

        _RUN[loop](main())

    own = inspect.signature(test)
    extra = inspect.Parameter("loop", inspect.Parameter.KEYWORD_ONLY, annotation=str)
    run.__signature__ = own.replace(  # pyright: ignore[reportAttributeAccessIssue]
        parameters=[*own.parameters.values(), extra], return_annotation=None
    )
    return pytest.mark.parametrize("loop", names)(run)
