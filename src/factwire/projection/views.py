"""The root of everything in a state: fields that are not known are absent, not null."""

import msgspec


class View(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False, rename="camel"):
    """A part of a state, changed only through a canvas."""
