"""Facts as the stream of an outside protocol, for `factwire convert --to`."""

import sys
from typing import Any

from factwire.cli.failures import CliError
from factwire.facts import Fact
from factwire.outlets import OUTLETS, Framing, framed, outlet_of


class OutletStream:
    """Writes what a client of an outlet would be told, to standard output."""

    def __init__(self, name: str, *, sse: bool) -> None:
        self._kind = outlet_of(name)
        self._outlet = self._kind.make()
        self._framing: Framing = "events" if sse else "lines"

    def take(self, fact: Fact) -> None:
        self._write(self._outlet.take(fact))

    def finish(self) -> None:
        self._write(self._outlet.finish())
        if self._framing == "events":
            sys.stdout.buffer.write(self._kind.last)

    def _write(self, items: list[dict[str, Any]]) -> None:
        for item in items:
            sys.stdout.buffer.write(framed(item, self._framing))


def outlet_stream(target: str, *, sse: bool) -> OutletStream | None:
    """The stream that a target is, if it is an outlet; only those can be events."""
    if target in OUTLETS:
        return OutletStream(target, sse=sse)
    if sse:
        raise CliError(f"--sse is for the outlets {', '.join(OUTLETS)}, not for {target}")
    return None
