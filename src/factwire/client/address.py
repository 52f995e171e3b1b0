"""`Address`: where an Edge is, as a URL that carries neither a secret nor a question."""

import ipaddress
from collections.abc import Iterable
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from factwire.client.errors import AddressInvalid

Query = tuple[tuple[str, str], ...]


class Address(msgspec.Struct, frozen=True):
    """`url` has a scheme, a host, perhaps a port and a path, and no slash at its end."""

    url: str

    @property
    def is_local(self) -> bool:
        """Whether only this machine is meant."""
        host = urlsplit(self.url).hostname or ""
        try:
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def http(self, path: str, query: Query = ()) -> str:
        return f"{self.url}{path}{_asked(query)}"

    def socket(self, path: str, query: Query = ()) -> str:
        """The same place for a WebSocket."""
        return f"ws{self.http(path, query).removeprefix('http')}"


def read_address(text: str) -> Address:
    """The address that a text names; raises `AddressInvalid`, which never repeats a password."""
    try:
        parts = urlsplit(text.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise AddressInvalid("the address of an Edge cannot be read; expected http://…") from None
    if parts.scheme not in ("http", "https") or not host:
        raise AddressInvalid("expected the address of an Edge, like http://127.0.0.1:8787")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise AddressInvalid(
            "the address of an Edge holds no user, password or query; a token is given apart from "
            "it"
        )
    shown = f"[{host}]" if ":" in host else host
    place = shown if port is None else f"{shown}:{port}"
    return Address(f"{parts.scheme}://{place}{parts.path.rstrip('/')}")


def path_of(*steps: str) -> str:
    """A path of the interface; each step is taken literally, slashes and colons included."""
    return "/v1/" + "/".join(quote(step, safe="") for step in steps)


def query_of(**given: str | float | bool | Iterable[str] | None) -> Query:
    """A query without what was not given; names become camelCase, several names go by commas."""
    return tuple((_camel(name), _text(value)) for name, value in given.items() if value is not None)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))


def _text(value: str | float | bool | Iterable[str]) -> str:  # noqa: FBT001 - a value to be shown
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else ",".join(value)


def _asked(query: Query) -> str:
    return f"?{urlencode(query, quote_via=quote)}" if query else ""
