"""Where an Edge is and the token for it; neither is ever printed with a secret.

An address is a URL that carries no user, password or query. A token that is given comes first, then
the one in a data folder, then the environment's; one that would not fit into a header is refused
here, because a library's message about it would repeat it.
"""

import ipaddress
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from factwire.client.errors import AddressInvalid, TokenUnusable
from factwire.client.limits import TOKEN_BYTES

Query = tuple[tuple[str, str], ...]


class Address(msgspec.Struct, frozen=True):
    """`url` has a scheme, a host, perhaps a port and a path, and no slash at its end. With an
    `edge_id`, that of a Hub, and what an Edge has is where the Hub has it.
    """

    url: str
    edge_id: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether only this machine is meant."""
        host = urlsplit(self.url).hostname or ""
        try:
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def http(self, path: str, query: Query = ()) -> str:
        if self.edge_id is not None:
            path = f"{path_of('edges', self.edge_id)}{path.removeprefix('/v1')}"
        return f"{self.url}{path}{_encode_query(query)}"

    def socket(self, path: str, query: Query = ()) -> str:
        """The same place for a WebSocket."""
        return f"ws{self.http(path, query).removeprefix('http')}"


def read_address(text: str) -> Address:
    """The address that a text names; raises `AddressInvalid`, which never repeats a password."""
    try:
        parts = urlsplit(text.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise AddressInvalid("the address of the Edge is invalid; expected http://…") from None
    if parts.scheme not in ("http", "https") or not host:
        raise AddressInvalid("expected the address of an Edge, such as http://127.0.0.1:8787")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise AddressInvalid(
            "the address of an Edge cannot contain a user, a password or a query; pass the token "
            "separately"
        )
    host_text = f"[{host}]" if ":" in host else host
    place = host_text if port is None else f"{host_text}:{port}"
    return Address(f"{parts.scheme}://{place}{parts.path.rstrip('/')}")


def require_secure(address: Address) -> Address:
    """The address of a Hub, which gets secrets; raises `AddressInvalid` for one that would get them
    in the clear over a network.
    """
    if address.url.startswith("https:") or address.is_local:
        return address
    raise AddressInvalid(f"{address.url} is not on this machine; use https:// for a Hub")


def path_of(*steps: str) -> str:
    """A path of the interface; each step is taken literally, slashes and colons included."""
    return "/v1/" + "/".join(quote(step, safe="") for step in steps)


def query_of(**values: str | float | bool | Iterable[str] | None) -> Query:
    """A query without what was not given; names become camelCase, several names go by commas."""
    return tuple(
        (_camel(name), _text(value)) for name, value in values.items() if value is not None
    )


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))


def _text(value: str | float | bool | Iterable[str]) -> str:  # noqa: FBT001 - a value to be shown
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else ",".join(value)


def _encode_query(query: Query) -> str:
    return f"?{urlencode(query, quote_via=quote)}" if query else ""


VARIABLE: Final = "FACTWIRE_TOKEN"
FILE_NAME: Final = "edge-token"


class EdgeToken(msgspec.Struct, frozen=True):
    """A secret that is shown to nobody but its Edge."""

    value: str

    def __repr__(self) -> str:
        return "Token(…)"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.value}"}


def find_token(token: str | None = None, data: str | os.PathLike[str] | None = None) -> EdgeToken:
    """The token to use; raises `TokenUnusable`."""
    if token is not None:
        return _check_token(token, "the token argument")
    if data is not None:
        return _check_token(_read_token_file(Path(data)), f"{FILE_NAME} in the data folder")
    from_environment = os.environ.get(VARIABLE)
    if from_environment:
        return _check_token(from_environment, VARIABLE)
    raise TokenUnusable(
        f"no token; pass one, set {VARIABLE}, or pass the data folder of an Edge on this machine"
    )


def _check_token(value: str, origin: str) -> EdgeToken:
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        raise TokenUnusable(
            f"{origin} is empty, or contains characters that are not allowed in a header"
        )
    return EdgeToken(value)


def _read_token_file(folder: Path) -> str:
    try:
        file = os.open(folder / FILE_NAME, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(file, "rb") as handle:
            return handle.read(TOKEN_BYTES).decode("ascii", "replace").strip()
    except OSError as error:
        raise TokenUnusable(
            f"{FILE_NAME} in the data folder cannot be read: {error.strerror}; the Edge stores its "
            "token there unless you chose the token yourself"
        ) from error
