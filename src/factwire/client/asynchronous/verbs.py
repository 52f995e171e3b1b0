"""Verbs: a function that makes a call, as a method that sends it.

The signature of a method is that of the function it is made of, for people and for type checkers.
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from factwire.client.asynchronous.content import AsyncContent
from factwire.client.asynchronous.pages import AsyncPages
from factwire.client.asynchronous.sending import Sender
from factwire.client.call import Call
from factwire.client.resources import Page

P = ParamSpec("P")
T = TypeVar("T")


class Sending(Protocol):
    """Whoever has a sender."""

    @property
    def sender(self) -> Sender: ...


class Verb(Generic[P, T]):
    """Awaits one answer."""

    def __init__(self, make: Callable[P, Call[T]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Sending, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(
        self, client: Sending | None, owner: type
    ) -> "Self | Callable[P, Coroutine[Any, Any, T]]":
        if client is None:
            return self
        make, sender = self._make, client.sender

        @wraps(make)
        async def send(*args: P.args, **kwargs: P.kwargs) -> T:
            return await sender.send(make(*args, **kwargs))

        return send


class Listing(Generic[P, T]):
    """Goes through a list."""

    def __init__(self, make: Callable[P, Call[Page[T]]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Sending, owner: type) -> Callable[P, AsyncPages[T]]: ...
    def __get__(self, client: Sending | None, owner: type) -> "Self | Callable[P, AsyncPages[T]]":
        if client is None:
            return self
        make, sender = self._make, client.sender

        @wraps(make)
        def pages(*args: P.args, **kwargs: P.kwargs) -> AsyncPages[T]:
            return AsyncPages(sender, make(*args, **kwargs))

        return pages


class Fetching(Generic[P]):
    """Opens content."""

    def __init__(self, make: Callable[P, Call[None]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Sending, owner: type) -> Callable[P, AsyncContent]: ...
    def __get__(self, client: Sending | None, owner: type) -> "Self | Callable[P, AsyncContent]":
        if client is None:
            return self
        make, sender = self._make, client.sender

        @wraps(make)
        def content(*args: P.args, **kwargs: P.kwargs) -> AsyncContent:
            return AsyncContent(sender, make(*args, **kwargs))

        return content
