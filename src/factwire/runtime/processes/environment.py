"""The environment of a program: an allow-list, and never a secret that is not its own.

A program gets the few variables that programs need to find their tools and speak a language, and
what its spec gives it. A name that looks like a secret's is dropped from both, unless the agent
declares it as its own. Names that a shell could not hold are refused rather than lost on the way.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final

from factwire.runtime.processes.errors import InvalidSpec

ALLOWED: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL"),
        *("LANG", "LANGUAGE", "TERM", "COLORTERM", "NO_COLOR", "TZ", "TMPDIR"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR"),
    }
)
"""Names that every program gets. XDG_RUNTIME_DIR, SSH_AUTH_SOCK and proxies lead to sockets and
credentials of the user, and are not among them."""

ALLOWED_PREFIXES: Final = ("LC_",)

MARKER: Final = "FACTWIRE_PROCESS"
"""Name of the variable that holds the id of the process; the reaper knows our programs by it."""

_SECRET: Final = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def child_environment(
    base: Mapping[str, str], given: Mapping[str, str], own: Collection[str] = ()
) -> dict[str, str]:
    """What a program gets of `base`, and what is `given` to it."""
    _ensure_sound(given)
    passed = {name: value for name, value in base.items() if _passes(name, own)}
    return {
        name: value
        for name, value in {**passed, **given}.items()
        if name in own or not names_secret(name)
    }


def names_secret(name: str) -> bool:
    """Whether a variable of this name is taken for a secret."""
    return _SECRET.search(name) is not None


def _passes(name: str, own: Collection[str]) -> bool:
    return name in own or name in ALLOWED or name.startswith(ALLOWED_PREFIXES)


def _ensure_sound(given: Mapping[str, str]) -> None:
    for name, value in given.items():
        if not _NAME.fullmatch(name):
            raise InvalidSpec(
                f"expected a variable of letters, digits and underscores, got {name!r}"
            )
        if "\0" in value:
            raise InvalidSpec(f"the value of {name} holds a NUL, which no environment can")
