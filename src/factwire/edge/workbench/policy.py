"""What a browser lets the workbench do: run its own files, talk to its own Edge, and no more.

The page shows what agents wrote. Should a piece of that ever become markup, this is what it meets:
no script but the build's, no style, form or request that leads elsewhere, and nobody who frames
it. No string becomes markup or code either: where a browser would take one, it wants a trusted
type, and the page makes them of the addresses of its own files alone. Frames show previews alone,
which live on origins of their own.
"""

from typing import Final

from factwire.edge.security.places import Places, is_any_address

_CONTENT: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data: blob:",
    "font-src 'self'",
)
_REFUSED: Final = (
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types factwire-files",
)
_DEVICES: Final = (
    "camera",
    "display-capture",
    "geolocation",
    "hid",
    "microphone",
    "midi",
    "payment",
    "serial",
    "usb",
)


def content_policy(bind: str, places: Places) -> str:
    """The policy of an Edge's page, by where its previews are."""
    frames = " ".join(_preview_origins(bind, places)) or "'none'"
    return "; ".join([*_CONTENT, f"frame-src {frames}", *_REFUSED])


def page_policy(bind: str, places: Places) -> tuple[tuple[bytes, bytes], ...]:
    """The headers of everything that the workbench is made of."""
    devices = ", ".join(f"{device}=()" for device in _DEVICES)
    return (
        (b"content-security-policy", content_policy(bind, places).encode()),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"permissions-policy", devices.encode()),
        (b"referrer-policy", b"no-referrer"),
        (b"x-content-type-options", b"nosniff"),
    )


def _preview_origins(bind: str, places: Places) -> list[str]:
    """Previews listen where the Edge does, each on a port of its own; a policy has no word for an
    address with colons, so there they open in a tab.
    """
    names = sorted(places.hosts) if is_any_address(bind) else [bind.lower()]
    return [f"http://{name}:*" for name in names if ":" not in name]
