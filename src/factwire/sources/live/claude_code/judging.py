"""What a call of a tool of Claude Code's would do, as Factwire's policy sees it and people do."""

from typing import Any, Final

from factwire.projection.reading import table, word
from factwire.runtime.policy import Policy, Request, args_hash, evaluate, risk_of, shown
from factwire.sources.claude_code.control import QUESTIONS
from factwire.sources.live.judging import real_paths

_PATHS: Final = ("file_path", "notebook_path", "path")
_OF_A_COMMAND: Final = frozenset({"command", "description", "timeout"})
"""What a command's call may hold without doing anything but run that command."""

_DENIES: Final = frozenset({"rule_deny", "plan_mode"})
_ASKS: Final = frozenset({"rule_ask", "may_reach_forbidden"})


def request_of(name: str, given: Any, *, workspace: str, cwd: str) -> Request:
    """One call. Whoever brings a command runs something, whatever the tool is called."""
    said = table(given) or {}
    command, [folder] = word(said, "command"), real_paths([cwd], workspace)
    paths = [path for field in _PATHS if (path := word(said, field))]
    of_command = command is not None and said.keys() <= _OF_A_COMMAND
    return Request(
        tool=name,
        workspace=workspace,
        cwd=folder,
        command=command,
        paths=real_paths(paths, folder),
        url=word(said, "url"),
        args={} if of_command else said,
    )


def before_call(policy: Policy, request: Request) -> str | None:
    """What a rule says of a call that may never be asked about: `deny`, `ask`, or nothing.

    What no rule speaks of is left to Claude Code's own settings.
    """
    said = evaluate(policy, request)
    by_rule = said.reason_code == "dont_ask" and said.rule is not None
    if request.tool in QUESTIONS:
        return "deny" if said.reason_code == "rule_deny" else None
    if said.decision == "deny" and (said.reason_code in _DENIES or by_rule):
        return "deny"
    return "ask" if said.reason_code in _ASKS else None


def question_about(request: Request) -> dict[str, Any]:
    """What a question shows beside its words, and what an answer is bound to."""
    return {
        "cwd": request.cwd,
        "path": request.paths[0] if request.paths else None,
        "severity": risk_of(request),
        "shown": shown(request),
        "argsHash": args_hash(request),
    }
