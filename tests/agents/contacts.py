"""Whom a program tries to reach: every address that it or its children give to the kernel.

A network without a way out keeps attempts from arriving; this shows that there were none. A name
that is looked up counts: the question itself leaves the machine, wherever its server is.
"""

import re
import shlex
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Final

_CALLS: Final = "trace=connect,sendto,sendmsg,sendmmsg"
_ADDRESS: Final = re.compile(
    r'sin6?_port=htons\((?P<port>\d+)\).*?(?:inet_addr\(|inet_pton\(AF_INET6, )"(?P<host>[^"]+)"'
)
_NAMES: Final = 53
"""The port of name servers."""


class Watched:
    """A program whose contacts are written down; `folder` goes to the front of a PATH."""

    def __init__(self, folder: Path, name: str, program: str) -> None:
        self.folder = folder / "watched"
        self.folder.mkdir()
        self._log = folder / "contacts.log"
        command = ["strace", "-f", "-qq", "-e", _CALLS, "-e", "signal=none", "-A"]
        line = shlex.join([*command, "-o", str(self._log), program])
        script = self.folder / name
        script.write_text(f'#!/bin/sh\nexec {line} "$@"\n', "utf-8")
        script.chmod(0o755)

    def contacts(self) -> set[tuple[str, int]]:
        """Every address that was given, however that ended."""
        found = _ADDRESS.finditer(self._log.read_text("utf-8", "replace"))
        return {(match["host"], int(match["port"])) for match in found}

    def external_contacts(self) -> Iterator[tuple[str, int]]:
        """Those that are not on this machine, and those that look up a name."""
        for host, port in sorted(self.contacts()):
            if port == _NAMES or not ip_address(host).is_loopback:
                yield host, port
