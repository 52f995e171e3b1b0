"""Which hosts an Edge answers to and which pages may talk to it.

A name that points here is not enough: a page of somebody else's can make one (DNS rebinding). So
the Host header must name a host that this Edge knows, and an Origin one of its own pages or one
that was allowed by name.
"""

import ipaddress
import re
from typing import Final, Self
from urllib.parse import urlsplit

import msgspec

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")

_HOST: Final = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_PORTS: Final = {"http": 80, "https": 443}


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """`hosts` are names as in a Host header, without a port; `origins` as in an Origin header."""

    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()

    @classmethod
    def of(cls, bind: str, hosts: tuple[str, ...], origins: tuple[str, ...]) -> Self:
        """Loopback, what is bound, and what was named besides."""
        named = {host.lower() for host in (*LOOPBACK_NAMES, *hosts)}
        if not is_any_address(bind):
            named.add(f"[{bind}]" if ":" in bind else bind.lower())
        return cls(hosts=frozenset(named), origins=frozenset(map(str.lower, origins)))

    def knows_host(self, header: str | None) -> bool:
        parts = _HOST.fullmatch(header or "")
        return parts is not None and parts["name"].lower() in self.hosts

    def knows_origin(self, header: str, host: str | None, scheme: str) -> bool:
        """Whether a page may talk to this Edge: one that it served, or one allowed by name."""
        origin = header.lower()
        if origin in self.origins:
            return True
        parts = urlsplit(origin)
        if parts.scheme not in _PORTS or parts.path or parts.query or parts.username is not None:
            return False
        return host is not None and _same(parts.netloc, parts.scheme, host.lower(), scheme)


def is_loopback(bind: str) -> bool:
    """Whether only this machine can reach an address."""
    if bind == "localhost":
        return True
    try:
        return ipaddress.ip_address(bind).is_loopback
    except ValueError:
        return False


def is_any_address(bind: str) -> bool:
    try:
        return ipaddress.ip_address(bind).is_unspecified
    except ValueError:
        return False


def _same(netloc: str, scheme: str, host: str, own_scheme: str) -> bool:
    page = "https" if own_scheme in ("https", "wss") else "http"
    return scheme == page and _with_port(netloc, scheme) == _with_port(host, page)


def _with_port(netloc: str, scheme: str) -> str | None:
    parts = _HOST.fullmatch(netloc)
    return None if parts is None else f"{parts['name']}:{parts['port'] or _PORTS[scheme]}"
