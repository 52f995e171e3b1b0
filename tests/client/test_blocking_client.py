"""The blocking client is what the asynchronous one says, without waiting by `await`."""

import pytest

from tools.blocking_client import HEADER, SOURCE, TARGET, translate_client


def test_the_blocking_client_is_written_from_the_asynchronous_one():
    assert TARGET.read_text("utf-8") == translate_client(SOURCE.read_text("utf-8")), (
        "run `make schemas`"
    )


@pytest.mark.parametrize(
    ("asynchronous", "blocking"),
    [
        ("async def f(a):\n    await a.aclose()\n", "def f(a):\n    a.close()\n"),
        ("class AsyncA(AsyncB): ...\n", "class A(B): ...\n"),
        (
            "async def f(a):\n    async for b in a:\n        yield b\n",
            "def f(a):\n    yield from a\n",
        ),
        ("async def f(a):\n    return [b async for b in a]\n", "def f(a):\n    return list(a)\n"),
        (
            'def f(a) -> "Callable[P, Coroutine[Any, Any, T]]": ...\n',
            'def f(a) -> "Callable[P, T]": ...\n',
        ),
        (
            "async def f(a):\n    return await asyncio.sleep(await a)  # after `async with`\n",
            "def f(a):\n    return time.sleep(a)  # after `with`\n",
        ),
        (
            'async def f():\n    """Read by `async for`,\n    awaiting."""\n',
            'def f():\n    """Read by `for`,\n    awaiting."""\n',
        ),
    ],
)
def test_words_of_asynchronous_python_are_translated(asynchronous: str, blocking: str):
    text = translate_client(f'"""Says what it is."""\n\n\n{asynchronous}')
    assert text.removeprefix(HEADER).lstrip("\n") == blocking
