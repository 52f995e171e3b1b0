"""`Sender`: sends calls to an Edge, again where that may help."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from factwire.client.call import Answer, Call
from factwire.client.libraries import httpx
from factwire.client.link import Link, lower
from factwire.client.retrying import Tries

T = TypeVar("T")

_Try = Callable[["httpx.Request"], Awaitable["httpx.Response"]]


class Sender:
    """One pool of connections."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._http = httpx.AsyncClient(**link.http_settings())

    async def send(self, call: Call[T]) -> T:
        """What the Edge answers; raises `ClientError`."""
        response = await self._tried(call, self._http.send)
        answer = Answer(response.status_code, lower(response.headers), response.content)
        return call.result(answer)

    async def open(self, call: Call[Any]) -> "httpx.Response":
        """An answer whose body is still to be read; raises `ClientError`."""
        response = await self._tried(call, lambda request: self._http.send(request, stream=True))
        if not response.is_success:
            body = await response.aread()
            call.result(Answer(response.status_code, lower(response.headers), body))
        return response

    async def close(self) -> None:
        await self._http.aclose()

    async def _tried(self, call: Call[Any], send: _Try) -> "httpx.Response":
        tries = Tries(self.link.retry_seconds)
        url = self.link.address.http(call.path, call.query)
        while True:
            request = self._http.build_request(
                call.method, url, content=call.body, headers=call.headers
            )
            try:
                response = await send(request)
            except httpx.RequestError as error:
                pause = self.link.after_failure(tries, call, error)
            else:
                asked = self.link.after_answer(tries, call, response)
                if asked is None:
                    return response
                await response.aclose()
                pause = asked
            await asyncio.sleep(pause)
