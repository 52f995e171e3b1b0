"""`Content`: bytes of any length, handed over in pieces and never held whole."""

from collections.abc import Iterator
from typing import Any, Self

from factwire.client.call import Call
from factwire.client.libraries import httpx
from factwire.client.limits import PIECE_BYTES
from factwire.client.synchronous.sending import Sender


class Content:
    """Opened by `with`; `for` brings its pieces."""

    def __init__(self, sender: Sender, call: Call[Any]) -> None:
        self._sender = sender
        self._call = call
        self._response: httpx.Response | None = None

    def __enter__(self) -> Self:
        self._response = self._sender.open(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        if self._response is not None:
            self._response.close()

    @property
    def length(self) -> int | None:
        """Bytes of the whole, where the Edge says so."""
        text = "" if self._response is None else self._response.headers.get("content-length", "")
        return int(text) if text.isdigit() else None

    def __iter__(self) -> Iterator[bytes]:
        if self._response is None:
            raise RuntimeError("content is opened by 'with' before it is read")
        try:
            yield from self._response.iter_bytes(PIECE_BYTES)
        except httpx.RequestError as error:
            raise self._sender.link.unreachable(error) from error

    def read(self) -> bytes:
        """All of it at once, for what is known to be small."""
        return b"".join(self)
