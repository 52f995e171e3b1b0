"""`AsyncPages`: a list of an Edge, read page by page while it is gone through."""

from collections.abc import AsyncIterator
from typing import Generic, TypeVar

from factwire.client.asynchronous.sending import Sender
from factwire.client.call import Call
from factwire.client.resources import Page

T = TypeVar("T")


class AsyncPages(Generic[T]):
    """`async for` goes through everything; `page` is the first page alone, with its cursor."""

    def __init__(self, sender: Sender, call: Call[Page[T]]) -> None:
        self._sender = sender
        self._call = call

    async def __aiter__(self) -> AsyncIterator[T]:
        call: Call[Page[T]] | None = self._call
        while call is not None:
            page = await self._sender.send(call)
            for item in page.items:
                yield item
            call = None if page.next is None else call.after(page.next)

    async def page(self) -> Page[T]:
        return await self._sender.send(self._call)
