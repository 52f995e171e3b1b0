"""How much could go wrong, as a word that people sort approvals by. It decides nothing.

low       reads inside the workspace
medium    edits inside it; runs a program that is in no table; reads outside
high      reaches the network, edits outside or what other programs run, installs, removes, is
          unclear, or is a tool that nobody knows
critical  removes folders, rights of another user, disks, a pipe into a shell, rewritten history
"""

import re
from collections.abc import Iterable
from typing import Final, Literal

from factwire.runtime.policy.commands import Simple
from factwire.runtime.policy.parts import Part, parts_of
from factwire.runtime.policy.programs import INTERPRETERS, PRIVILEGED, SHELLS
from factwire.runtime.policy.requests import Effect, Request

Risk = Literal["low", "medium", "high", "critical"]

RISKS: Final[tuple[Risk, ...]] = ("low", "medium", "high", "critical")

EFFECT_RISKS: Final[dict[Effect, Risk]] = {
    "read": "low",
    "edit": "medium",
    "run": "medium",
    "network": "high",
    "other": "high",
}

_LINES: Final[tuple[tuple[Risk, str], ...]] = (
    ("critical", r"(dd|fdisk|parted|wipefs|shred|mkswap|shutdown|reboot|halt|poweroff)\b.*"),
    ("critical", r"(mkfs[\w.]*|systemctl|iptables|nft|useradd|userdel|passwd|visudo)\b.*"),
    ("critical", r"rm .*-\w*[rR].*|rm .*--recursive.*|rm .*--no-preserve-root.*"),
    ("critical", r"(chmod|chown) .*-\w*R.*"),
    ("critical", r"git push .*(--force|-\w*f|--mirror|--delete|\+).*"),
    ("critical", r"git (filter-branch|filter-repo|update-ref|reflog (expire|delete))\b.*"),
    ("critical", r"(npm|yarn|pnpm|cargo|twine|gem) (publish|upload|push|yank)\b.*"),
    ("critical", r"(terraform|pulumi|kubectl|helm) .*\b(apply|destroy|delete|uninstall)\b.*"),
    ("high", r"(rm|rmdir|unlink|truncate|mv|chmod|chown|ln|kill|pkill|killall)\b.*"),
    ("high", r"(curl|wget|ssh|scp|sftp|rsync|nc|ncat|netcat|telnet|ftp|socat|aws|gcloud|az)\b.*"),
    (
        "high",
        r"git (push|pull|fetch|clone|reset|clean|checkout|restore|rebase|config|submodule)\b.*",
    ),
    ("high", r"(pip3?|uv|npm|npx|yarn|pnpm|cargo|gem|go|apt|apt-get|dnf|brew|apk) .*"),
    ("high", r"(docker|podman|kubectl|helm|terraform|ansible\S*)\b.*"),
)
"""A command's words with single spaces → its risk; the first line that matches counts."""

_COMPILED: Final[tuple[tuple[Risk, re.Pattern[str]], ...]] = tuple(
    (risk, re.compile(line, re.DOTALL)) for risk, line in _LINES
)


def risk_of(request: Request) -> Risk:
    """The highest risk of any part of a request."""
    return _worst(_of_part(part) for part in parts_of(request))


def _worst(risks: Iterable[Risk]) -> Risk:
    return max(risks, key=RISKS.index)


def _of_part(part: Part) -> Risk:
    if part.unclear:
        return "high"
    if part.command is not None:
        return _of_command(part.command)
    if part.place is not None and part.effect in ("read", "edit"):
        return _of_place(part)
    return EFFECT_RISKS[part.effect]


def _of_place(part: Part) -> Risk:
    place = part.place
    outside = place is not None and (not place.is_inside or place.is_protected)
    if part.effect == "edit":
        return "high" if outside else "medium"
    return "medium" if outside else "low"


def _of_command(command: Simple) -> Risk:
    worst = _worst(_of_line(each) for each in (command, *command.also))
    names = {_name(each) for each in (command, *command.also)}
    if names & PRIVILEGED or (command.piped and _name(command) in SHELLS | INTERPRETERS):
        return "critical"
    return worst


def _of_line(command: Simple) -> Risk:
    line = " ".join([_name(command), *(word or "..." for word in command.words[1:])])
    for risk, found in _COMPILED:
        if found.fullmatch(line):
            return risk
    return "medium"


def _name(command: Simple) -> str:
    return (command.words[0] or "").rpartition("/")[2] if command.words else ""
