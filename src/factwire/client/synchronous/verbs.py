"""Verbs: a function that makes a call, as a method that sends it.

The signature of a method is that of the function it is made of, for people and for type checkers.
"""

from collections.abc import Callable
from functools import wraps
from typing import Generic, ParamSpec, Protocol, Self, TypeVar, overload

from factwire.client.call import Call
from factwire.client.resources import Page
from factwire.client.synchronous.content import Content
from factwire.client.synchronous.pages import Pages
from factwire.client.synchronous.sending import Sender

P = ParamSpec("P")
T = TypeVar("T")


class Sending(Protocol):
    """Whoever has a sender."""

    @property
    def sender(self) -> Sender: ...


class Verb(Generic[P, T]):
    """Gives one answer."""

    def __init__(self, make: Callable[P, Call[T]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Sending, owner: type) -> Callable[P, T]: ...
    def __get__(self, client: Sending | None, owner: type) -> "Self | Callable[P, T]":
        if client is None:
            return self
        make, sender = self._make, client.sender

        @wraps(make)
        def send(*args: P.args, **kwargs: P.kwargs) -> T:
            return sender.send(make(*args, **kwargs))

        return send


class Listing(Generic[P, T]):
    """Goes through a list."""

    def __init__(self, make: Callable[P, Call[Page[T]]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Sending, owner: type) -> Callable[P, Pages[T]]: ...
    def __get__(self, client: Sending | None, owner: type) -> "Self | Callable[P, Pages[T]]":
        if client is None:
            return self
        make, sender = self._make, client.sender

        @wraps(make)
        def pages(*args: P.args, **kwargs: P.kwargs) -> Pages[T]:
            return Pages(sender, make(*args, **kwargs))

        return pages


class Fetching(Generic[P]):
    """Opens content."""

    def __init__(self, make: Callable[P, Call[None]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Sending, owner: type) -> Callable[P, Content]: ...
    def __get__(self, client: Sending | None, owner: type) -> "Self | Callable[P, Content]":
        if client is None:
            return self
        make, sender = self._make, client.sender

        @wraps(make)
        def content(*args: P.args, **kwargs: P.kwargs) -> Content:
            return Content(sender, make(*args, **kwargs))

        return content
