"""Questions: an open action as a person is asked about it, and what the keys mean.

Everything that the answer is bound to is shown, made harmless and not cut. *Always* is offered only
where a rule of the policy can say exactly what was asked about, and would allow it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from rich.text import Text

from factwire.cli.sections.lines import DIM, LINE, NAME
from factwire.cli.terminal_text import harmless, harmless_block
from factwire.projection.actions import Action
from factwire.runtime.policy import Policy, Request, Rule, args_hash, evaluate, pattern_for

ANSWERS: Final = {"y": "approve", "n": "deny", "a": "approve"}
"""Key → decision; *a* makes a rule of it, too."""


def question(action: Action) -> list[Text]:
    """What is asked, by whom, and exactly about what."""
    asked = action.prompt or action.title or "Allow this?"
    head = Text.assemble(("? ", "bold yellow"), (harmless(asked, LINE), "bold"))
    if action.severity:
        head.append(f"  {harmless(action.severity, NAME)}", style="red")
    who = action.requested_by or action.agent_id or "unknown"
    about = Text(f"  {harmless(action.action_id)} · asked by {harmless(who, NAME)}", style=DIM)
    return [head, about, *_shown(action)]


def _shown(action: Action) -> Iterator[Text]:
    for line in harmless_block(action.shown or ""):
        yield Text.assemble(("  │ ", "yellow"), line)


def choices(rule: Rule | None) -> Text:
    """The keys, in a line."""
    always = "" if rule is None else f"  [a] always allow {harmless(str(rule), LINE)}"
    return Text(f"  [y] allow  [n] deny{always}  [?] help", style="bold")


def explained(action: Action, rule: Rule | None, flags: str = "") -> list[Text]:
    """The keys, in sentences."""
    words = [
        "  y  allow exactly what is shown, this once",
        "  n  deny it; the agent is told and goes on without",
        "  Ctrl-C cancels the turn",
        f"  from another terminal: factwire approve {harmless(action.action_id + flags)}",
    ]
    if rule is not None:
        always = f"  a  allow it, and whatever {harmless(str(rule))} allows, until this run ends"
        words.insert(1, always)
    return [Text(word) for word in words]


def how_to_answer(action: Action, flags: str = "") -> Text:
    """For where nobody can press a key; `flags` say which journal is meant."""
    key = harmless(action.action_id + flags)
    words = f"  waits for an answer: factwire approve {key}  or  factwire deny {key}"
    return Text(words, style="bold")


class Always:
    """What a person allowed for the rest of a run."""

    def __init__(self, policy: Policy, workspace: Path) -> None:
        self._policy = policy
        self._workspace = str(workspace)
        self._rules: tuple[Rule, ...] = ()

    def proposed(self, action: Action) -> Rule | None:
        """The rule that *always* would make; None where none is exact, or none would help."""
        request = self._request(action)
        rule = None if request is None else pattern_for(request)
        if request is None or rule is None or not self._allowed(request, (*self._rules, rule)):
            return None
        return rule

    def add(self, rule: Rule) -> None:
        self._rules = (*self._rules, rule)

    def allows(self, action: Action) -> Rule | None:
        """The rule under which an action needs no question."""
        request = self._request(action)
        if request is None or not self._allowed(request, self._rules):
            return None
        alone = (Policy(allow=(rule,)) for rule in self._rules)
        for rule, policy in zip(self._rules, alone, strict=True):
            if evaluate(policy, request).rule == str(rule):
                return rule
        return None

    def _allowed(self, request: Request, rules: tuple[Rule, ...]) -> bool:
        policy = msgspec.structs.replace(self._policy, allow=(*self._policy.allow, *rules))
        return evaluate(policy, request).decision == "allow"

    def _request(self, action: Action) -> Request | None:
        """The request that an action asks about, if it can be had exactly: the hash says so."""
        command = _command(action.command)
        if command is None or not action.tool_name:
            return None
        request = Request(
            tool=action.tool_name,
            workspace=self._workspace,
            cwd=action.cwd,
            command=command,
        )
        return request if args_hash(request) == action.args_hash else None


def _command(given: Any) -> str | tuple[str, ...] | None:
    if isinstance(given, list):
        return tuple(map(str, cast("list[Any]", given)))
    return given if isinstance(given, str) and given else None
