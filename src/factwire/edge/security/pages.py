"""Pages of allowed origins: what a browser must hear before it lets one of them talk to an Edge.

Only an origin that was allowed by name gets these headers, and gets them back by its own name; a
page of the Edge itself needs none.
"""

from typing import Final

from factwire.edge.security.places import Places

Headers = list[tuple[bytes, bytes]]

_ASKED: Final = b"authorization, content-type, idempotency-key, last-event-id, traceparent"
_TOLD: Final = b"idempotency-replayed, retry-after, x-as-of, x-next-offset, x-offset, x-trace-id"
_METHODS: Final = b"GET, POST, PATCH, DELETE"
_REMEMBERED: Final = b"600"


def page_headers(origin: bytes | None, places: Places) -> Headers:
    """What an answer to a page says; nothing, for one that was not allowed by name."""
    if origin is None or origin.decode("latin-1").lower() not in places.origins:
        return []
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _TOLD),
        (b"vary", b"Origin"),
    ]


def preflight_headers(given: dict[bytes, bytes], places: Places) -> Headers:
    """What a browser that asks beforehand is told; nothing, for any other request."""
    if b"access-control-request-method" not in given:
        return []
    known = page_headers(given.get(b"origin"), places)
    if not known:
        return []
    return [
        *known,
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", _ASKED),
        (b"access-control-max-age", _REMEMBERED),
    ]
