"""The root of what envelopes carry: a value, camelCase on the wire, absent fields left out."""

import msgspec


class EventPayload(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, rename="camel"
):
    """A typed payload; a field that the fact does not have is absent, never guessed."""
