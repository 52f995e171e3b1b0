"""Requests to addresses that somebody else chose: webhooks, push endpoints, identity providers.

Whoever names an address must not reach through this server what only the server can reach. So a
name is resolved once, each of its addresses must be one of the public internet, and the connection
goes to an address that was checked, never to the name again: a name that resolves otherwise a
moment later gains nothing. No redirect is followed, no proxy of the environment is used, a
connection is never shared by two names, and time and size are bounded. What the operator allows by
name is exempt from the check of its addresses.
"""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import httpx
import msgspec

from factwire.serving.limits import OUTGOING_ANSWER_BYTES, OUTGOING_SECONDS

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""The addresses of a host name, as text; raises `OSError` where there is none."""

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_SCHEME_PORTS: Final = {"https": 443, "http": 80}
_FREE_PORTS: Final = 1_024
"""From here on, ports belong to no well-known service that speaks another protocol."""

_MOST_PORT: Final = 65_535
_URL_CHARACTERS: Final = 2_048

_REFUSED_NETWORKS: Final = tuple(
    ipaddress.ip_network(network)
    for network in """
        0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
        192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24
        198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32
        2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20
        """.strip().split()
)
"""What is no host of the public internet: private, shared, loopback, link-local with the metadata
services of clouds, reserved, multicast; of IPv6, also what wraps an IPv4 address."""

_GLOBAL_IPV6: Final = ipaddress.ip_network("2000::/3")
"""Whatever is outside, mapped and translated IPv4 addresses among it, is not public."""


class OutgoingError(Exception):
    """Nothing was sent, or no answer came; `code` is stable.

    OutgoingError
    ├── OutgoingRefused  the target is none that this server may reach; trying again is useless
    └── OutgoingFailed   the target did not answer
    """

    def __init__(self, code: str, detail: str) -> None:
        self.code = code
        super().__init__(detail)


class OutgoingRefused(OutgoingError):
    pass


class OutgoingFailed(OutgoingError):
    pass


OUTGOING_CODES: Final[dict[str, str]] = {
    "target_address": "the host has an address that is not on the public internet",
    "target_host": "the host is none that requests of this kind may go to",
    "target_invalid": "the address is not a URL with a host, or has a user name in it",
    "target_port": "the port belongs to another service than HTTP",
    "target_scheme": "the address does not begin with https",
    "target_failed": "the connection failed",
    "target_timeout": "no answer came in time",
    "target_unresolved": "the host name has no address",
}
"""Code → why a request to somebody else's address was refused or failed."""


class OutgoingRules(msgspec.Struct, frozen=True, kw_only=True):
    """Where requests of one kind may go. `hosts`, if there are any, are all that is allowed;
    `*.example.com` stands for what is below it. `trusted` are those that the operator named, as
    `host` or `host:port`: their addresses are not checked, and they may be plain http.
    """

    hosts: frozenset[str] = frozenset()
    trusted: frozenset[str] = frozenset()

    def trusts(self, url: httpx.URL) -> bool:
        host = _host_of(url)
        return host in self.trusted or f"{host}:{_port_of(url)}" in self.trusted

    def check(self, text: str) -> httpx.URL:
        """The target of a request, as far as it can be judged by its text; raises
        `OutgoingRefused`.
        """
        url = _parse_url(text)
        if self.trusts(url):
            return url
        if url.scheme != "https":
            raise OutgoingRefused("target_scheme", "the address must begin with https://")
        port = _port_of(url)
        if port != _SCHEME_PORTS["https"] and port < _FREE_PORTS:
            raise OutgoingRefused("target_port", f"port {port} belongs to another service")
        if self.hosts and not self._lists(_host_of(url)):
            raise OutgoingRefused("target_host", "requests of this kind do not go to this host")
        literal = _to_address(_host_of(url))
        if literal is not None and not is_public(literal):
            raise _not_public()
        return url

    def _lists(self, host: str) -> bool:
        labels = host.split(".")
        parents = (".".join(labels[cut:]) for cut in range(1, len(labels)))
        return host in self.hosts or any(f"*.{parent}" in self.hosts for parent in parents)


def is_public(address: IpAddress) -> bool:
    """Whether an address is one of a host on the public internet."""
    if isinstance(address, ipaddress.IPv6Address) and (
        address.scope_id is not None or address not in _GLOBAL_IPV6
    ):
        return False
    return not any(
        address in network for network in _REFUSED_NETWORKS if network.version == address.version
    )


def _parse_url(text: str) -> httpx.URL:
    if len(text) > _URL_CHARACTERS or not text.isprintable() or "\\" in text or " " in text:
        raise OutgoingRefused("target_invalid", "the address has characters that no URL has")
    try:
        url = httpx.URL(text)
        # A name that is encoded badly is found out when it is decoded.
        host = url.host
    except (httpx.InvalidURL, ValueError) as error:
        raise OutgoingRefused("target_invalid", "the address is not a URL") from error
    if url.scheme not in _SCHEME_PORTS or not host or url.userinfo or not _is_port(url):
        raise OutgoingRefused(
            "target_invalid", "the address must be https://HOST/PATH, without a user name"
        )
    return url


def _is_port(url: httpx.URL) -> bool:
    return url.port is None or 0 < url.port <= _MOST_PORT


def _host_of(url: httpx.URL) -> str:
    """The host as it is looked up: letters of other scripts are encoded."""
    return url.raw_host.decode("ascii")


def _port_of(url: httpx.URL) -> int:
    return url.port or _SCHEME_PORTS[url.scheme]


def _to_address(text: str) -> IpAddress | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _not_public() -> OutgoingRefused:
    return OutgoingRefused(
        "target_address", "the host has an address that is not on the public internet"
    )


class OutgoingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back; of a body, as much as the bound allows."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def resolve_name(host: str, port: int) -> list[str]:
    """The addresses of a name, by the resolver of the machine."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class OutgoingHttp:
    """Sends requests by the rules; `resolve` and `transport` are for tests with their own."""

    def __init__(
        self,
        *,
        resolve: Resolve = resolve_name,
        transport: httpx.AsyncBaseTransport | None = None,
        seconds: float = OUTGOING_SECONDS,
    ) -> None:
        self._resolve = resolve
        self._transport = transport
        self._seconds = seconds

    async def request(
        self,
        method: str,
        target: str,
        rules: OutgoingRules,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes = b"",
        answer_bytes: int = OUTGOING_ANSWER_BYTES,
    ) -> OutgoingAnswer:
        """Send a request and return the answer, whatever its status; raises `OutgoingError`."""
        url = rules.check(target)
        try:
            async with asyncio.timeout(self._seconds):
                addresses = await self._find_addresses(url, rules)
                host = {"host": url.netloc.decode("ascii"), "accept-encoding": "identity"}
                request = httpx.Request(
                    method,
                    url,
                    headers={**(headers or {}), **host},
                    content=content,
                    # The certificate is checked against the name, although only its address is
                    # connected to.
                    extensions={"sni_hostname": _host_of(url), "timeout": self._timeouts()},
                )
                return await self._send_to_first(addresses, request, answer_bytes)
        except TimeoutError as error:
            raise OutgoingFailed(
                "target_timeout", f"no answer came within {self._seconds:g} s"
            ) from error

    async def _find_addresses(self, url: httpx.URL, rules: OutgoingRules) -> list[IpAddress]:
        try:
            found = await self._resolve(_host_of(url), _port_of(url))
        except (OSError, UnicodeError) as error:
            raise OutgoingFailed("target_unresolved", "the host name has no address") from error
        addresses = [each for each in map(_to_address, found) if each is not None]
        if not addresses:
            raise OutgoingFailed("target_unresolved", "the host name has no address")
        # One address that is not public is enough: which one is used is not for others to choose.
        if not rules.trusts(url) and not all(map(is_public, addresses)):
            raise _not_public()
        return addresses

    async def _send_to_first(
        self, addresses: list[IpAddress], request: httpx.Request, answer_bytes: int
    ) -> OutgoingAnswer:
        """Send to the first address that takes the connection."""
        url = request.url
        last: Exception | None = None
        for address in addresses:
            request.url = url.copy_with(host=str(address))
            try:
                return await self._exchange(request, answer_bytes)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                last = error
            except (httpx.HTTPError, OSError) as error:
                last = error
                break
        detail = type(last).__name__
        raise OutgoingFailed("target_failed", f"the connection failed: {detail}") from last

    def _timeouts(self) -> dict[str, float]:
        return dict.fromkeys(("connect", "read", "write", "pool"), self._seconds)

    async def _exchange(self, request: httpx.Request, answer_bytes: int) -> OutgoingAnswer:
        # A transport for each request: two names at one address never share a connection.
        transport = self._transport or httpx.AsyncHTTPTransport(
            verify=ssl.create_default_context(),
            trust_env=False,
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        try:
            response = await transport.handle_async_request(request)
            try:
                body = bytearray()
                async for piece in response.aiter_raw():
                    body += piece
                    if len(body) >= answer_bytes:
                        break
            finally:
                await response.aclose()
        finally:
            if self._transport is None:
                await transport.aclose()
        return OutgoingAnswer(
            status=response.status_code,
            headers=response.headers,
            body=bytes(body[:answer_bytes]),
        )
