"""`Pages`: a list of an Edge, read page by page while it is gone through."""

from collections.abc import Iterator
from typing import Generic, TypeVar

from factwire.client.call import Call
from factwire.client.resources import Page
from factwire.client.synchronous.sending import Sender

T = TypeVar("T")


class Pages(Generic[T]):
    """`for` goes through everything; `page` is the first page alone, with its cursor."""

    def __init__(self, sender: Sender, call: Call[Page[T]]) -> None:
        self._sender = sender
        self._call = call

    def __iter__(self) -> Iterator[T]:
        call: Call[Page[T]] | None = self._call
        while call is not None:
            page = self._sender.send(call)
            yield from page.items
            call = None if page.next is None else call.after(page.next)

    def page(self) -> Page[T]:
        return self._sender.send(self._call)
