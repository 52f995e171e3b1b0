"""*Always for this pattern*: the narrowest rule that would have allowed what a person approved.

A rule outlives the moment in which it was made, so it is exact: this command, this file, this host.
Only programs that can do nothing but tell something get a star for their arguments. Where one exact
rule cannot cover a request, or where the request is so dangerous that each time deserves a look,
nothing is proposed.
"""

import posixpath
from typing import Final

from factwire.runtime.policy.evaluation import Policy, evaluate
from factwire.runtime.policy.parts import Part, parts_of
from factwire.runtime.policy.programs import HARMLESS_VARIABLES
from factwire.runtime.policy.requests import Request, effect_of
from factwire.runtime.policy.risk import risk_of
from factwire.runtime.policy.rules import Rule, RuleError, quoted

WIDENED: Final = frozenset({("git", "status"), ("ls",), ("pwd",), ("whoami",), ("uname",)})
"""Commands whose arguments can do no harm, by their first words."""

_NAMES: Final = {"read": "Read", "edit": "Edit"}


def pattern_for(request: Request) -> Rule | None:
    """The rule to propose to whoever approved a request; None where there is no sensible one."""
    if risk_of(request) == "critical":
        return None
    try:
        rule = _proposed(request, parts_of(request))
    except RuleError:
        return None
    return rule if rule is not None and _would_allow(rule, request) else None


def _would_allow(rule: Rule, request: Request) -> bool:
    """A proposal that would not help is none."""
    return evaluate(Policy(allow=(rule,)), request).decision == "allow"


def _proposed(request: Request, parts: list[Part]) -> Rule | None:
    if any(part.unclear for part in parts):
        return None
    if request.command is not None:
        return _for_command(parts)
    if request.paths and effect_of(request) in _NAMES:
        return _for_paths(request, parts)
    if parts[0].host is not None:
        return Rule(request.tool, f"domain:{parts[0].host}") if len(parts) == 1 else None
    return Rule(request.tool) if "*" not in request.tool and not request.paths else None


def _for_command(parts: list[Part]) -> Rule | None:
    runs = [part.command for part in parts if part.command is not None]
    if len(runs) != 1:
        return None
    words = [word for word in runs[0].words if word is not None]
    if len(words) != len(runs[0].words):
        return None
    assigned = {(word or "").partition("=")[0] for word in runs[0].assignments}
    if assigned - HARMLESS_VARIABLES:
        return None
    for known in WIDENED:
        if tuple(words[: len(known)]) == known:
            return Rule("Bash", f"{' '.join(known)} *")
    return Rule("Bash", " ".join(map(quoted, words)))


def _for_paths(request: Request, parts: list[Part]) -> Rule | None:
    places = [part.place for part in parts if part.place is not None]
    inside = all(place.is_inside for place in places)
    names = ["/".join((place.relative if inside else place.absolute) or ()) for place in places]
    name = _NAMES[effect_of(request)]
    start = "./" if inside else "/"
    if len(set(names)) == 1 and not any(part.below for part in parts):
        return _path_rule(name, start + names[0])
    folder = posixpath.commonpath(names) if len(set(names)) > 1 else names[0]
    return _path_rule(name, f"{start}{folder}/**") if folder else None


def _path_rule(tool: str, pattern: str) -> Rule | None:
    """A star in a file's name would be a pattern."""
    return None if "*" in pattern.removesuffix("/**") else Rule(tool, pattern)
