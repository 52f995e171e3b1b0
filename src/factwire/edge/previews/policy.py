"""What a browser lets the pages of a preview do.

An agent made them, and a person opens them with a browser that reaches more than the agent's
sandbox did: the network, and other servers of this machine under the person's cookies. So a page
loads, sends and submits to its own folder alone, opens no windows and asks for no devices; it keeps
its own origin, which nothing else shares, since modules and fonts need one. Nothing is cached and
no service worker is installed: the port belongs to somebody else one day.
"""

from collections.abc import Iterable
from typing import Final

_OWN: Final = "'self' data: blob:"
_ALLOWED: Final = (
    "allow-scripts allow-same-origin allow-forms allow-modals allow-downloads allow-pointer-lock"
)
_CONTENT: Final = (
    "default-src 'none'",
    f"script-src {_OWN} 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval'",
    f"style-src {_OWN} 'unsafe-inline'",
    f"img-src {_OWN}",
    f"font-src {_OWN}",
    f"media-src {_OWN}",
    f"connect-src {_OWN}",
    f"worker-src {_OWN}",
    f"frame-src {_OWN}",
    "manifest-src 'self'",
    "object-src 'none'",
    "base-uri 'self'",
    "form-action 'self'",
    f"sandbox {_ALLOWED}",
)
_DEVICES: Final = (
    "camera",
    "microphone",
    "geolocation",
    "display-capture",
    "usb",
    "serial",
    "hid",
    "midi",
    "payment",
    "clipboard-read",
)


def policy_headers(frames: Iterable[str]) -> tuple[tuple[bytes, bytes], ...]:
    """The headers of every answer; pages of `frames` may show it in a frame."""
    around = " ".join(["frame-ancestors 'self'", *sorted(frames)])
    content = "; ".join([*_CONTENT, around])
    devices = ", ".join(f"{device}=()" for device in _DEVICES)
    return (
        (b"content-security-policy", content.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"permissions-policy", devices.encode()),
        (b"x-dns-prefetch-control", b"off"),
        (b"cache-control", b"no-store"),
    )
