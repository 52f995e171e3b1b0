"""Requests and policies, as short as tables need them."""

from typing import Any

from factwire.runtime.policy import Evaluation, Mode, Policy, PolicyRequest, evaluate

WORKSPACE = "/srv/project"


def run(command: str | tuple[str, ...], **fields: Any) -> PolicyRequest:
    return PolicyRequest(tool="Bash", workspace=WORKSPACE, command=command, **fields)


def use(tool: str, *paths: str, **fields: Any) -> PolicyRequest:
    return PolicyRequest(tool=tool, workspace=WORKSPACE, paths=paths, **fields)


def fetch(url: str, tool: str = "WebFetch") -> PolicyRequest:
    return PolicyRequest(tool=tool, workspace=WORKSPACE, url=url)


def policy(rules: str = "", mode: Mode = "default") -> Policy:
    """Rules as `+ Read(x) ? Bash ! Bash(rm *)`, parted by two spaces."""
    lists: dict[str, list[str]] = {"+": [], "?": [], "!": []}
    for part in filter(None, rules.split("  ")):
        lists[part[0]].append(part[1:])
    return Policy.of(mode, allow=lists["+"], ask=lists["?"], deny=lists["!"])


def decide(rules: str, request: PolicyRequest, mode: Mode = "default") -> tuple[str, str]:
    evaluation: Evaluation = evaluate(policy(rules, mode), request)
    return evaluation.decision, evaluation.reason_code
