r"""Which host a URL names, where every reader of URLs would agree.

The attack: `https://example.org@evil.example/`, `https://example.org\@evil.example`, a host in
letters of another alphabet. Only plain http and https URLs have a host here.
"""

import re
from typing import Final

from factwire.runtime.policy.rules import Rule

_URL: Final = re.compile(
    r"https?://(?P<host>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)\.?(?::[0-9]{1,5})?(?:[/?#][\x21-\x5b\x5d-\x7e]*)?",
    re.IGNORECASE,
)


def host_of(url: str) -> str | None:
    """The host in small letters; None for a URL that could be read in two ways."""
    found = _URL.fullmatch(url)
    if found is None or ".." in found["host"]:
        return None
    return found["host"].lower()


def host_matches(rule: Rule, host: str) -> bool:
    """Whether a domain rule is about a host; `*.` stands for hosts below, not for the host."""
    if rule.domain.startswith("*."):
        return host.endswith(rule.domain[1:])
    return host == rule.domain
