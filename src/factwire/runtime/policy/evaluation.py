"""Evaluation: deny beats ask beats allow; a mode decides only where no rule does.

Two modes are promises rather than defaults, and no rule widens them. `plan` does nothing but read,
so a rule made for work does not run anything while planning. `dontAsk` has nobody to ask: what
would ask is denied at once, which is how an approval that nobody answers ends anyway; to allow it
would be a grant that nobody made.
"""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from factwire.runtime.policy.matching import allows, forbids, may_forbid
from factwire.runtime.policy.parts import Part, parts_of
from factwire.runtime.policy.reasons import MODES, REASONS, Decision, Mode, ReasonCode
from factwire.runtime.policy.requests import Effect, Request
from factwire.runtime.policy.rules import Rule, parse_rule
from factwire.runtime.policy.visibility import visible

_LABEL: Final = 200
"""Characters of a part that a message repeats."""

_STRENGTH: Final[tuple[Decision, ...]] = ("allow", "ask", "deny")

_BY_MODE: Final[dict[Effect, ReasonCode]] = {
    "read": "reading",
    "edit": "edit_asks",
    "run": "command_asks",
    "network": "network_asks",
    "other": "tool_asks",
}
"""What every mode says about an effect, before it says anything of its own."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """A mode, and the rules that come before it."""

    mode: Mode = "default"
    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()

    @classmethod
    def of(
        cls,
        mode: Mode = "default",
        *,
        allow: Iterable[str] = (),
        ask: Iterable[str] = (),
        deny: Iterable[str] = (),
    ) -> "Policy":
        """A policy from rules as text; raises `RuleError`."""
        if mode not in MODES:
            raise ValueError(f"expected a mode of {', '.join(MODES)}, got {mode!r}")
        lists = {"allow": allow, "ask": ask, "deny": deny}
        rules = {name: tuple(map(parse_rule, texts)) for name, texts in lists.items()}
        return cls(mode=mode, **rules)


class Evaluation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the policy says. `rule` is the text of the rule, or rules, that decided."""

    decision: Decision
    mode: Mode
    reason_code: ReasonCode
    message: str
    rule: str | None = None


class _Verdict(msgspec.Struct, frozen=True):
    reason: ReasonCode
    part: Part
    rule: Rule | None = None

    @property
    def strength(self) -> int:
        return _STRENGTH.index(REASONS[self.reason][0])


def evaluate(policy: Policy, request: Request) -> Evaluation:
    """What the policy says about a request; the strictest word about any part of it."""
    verdicts = [_verdict(policy, request.tool, part) for part in parts_of(request)]
    first = max(verdicts, key=lambda verdict: verdict.strength)
    decision, sentence = REASONS[first.reason]
    message = f"{_told(first)}: {sentence}"
    code = first.reason
    if decision == "ask" and policy.mode == "dontAsk":
        decision, code = "deny", "dont_ask"
        message = f"{message}; {REASONS[code][1]}"
    return Evaluation(
        decision=decision,
        mode=policy.mode,
        rule=_rules(verdicts, first),
        reason_code=code,
        message=message,
    )


def _verdict(policy: Policy, tool: str, part: Part) -> _Verdict:
    if denying := _first(policy.deny, forbids, tool, part):
        return _Verdict("rule_deny", part, denying)
    if policy.mode == "plan" and part.effect != "read":
        return _Verdict("plan_mode", part)
    return _short_of_denial(policy, tool, part)


def _short_of_denial(policy: Policy, tool: str, part: Part) -> _Verdict:
    if asking := _first(policy.ask, forbids, tool, part):
        return _Verdict("rule_ask", part, asking)
    if possible := _first((*policy.deny, *policy.ask), may_forbid, tool, part):
        return _Verdict("may_reach_forbidden", part, possible)
    if part.unclear:
        return _Verdict(part.unclear, part)
    if allowing := _first(policy.allow, allows, tool, part):
        return _Verdict("rule_allow", part, allowing)
    return _Verdict(_by_mode(policy.mode, part), part)


def _first(
    rules: tuple[Rule, ...], test: Callable[[Rule, str, Part], bool], tool: str, part: Part
) -> Rule | None:
    return next((rule for rule in rules if test(rule, tool, part)), None)


def _by_mode(mode: Mode, part: Part) -> ReasonCode:
    accepted = part.effect == "edit" and mode == "acceptEdits"
    if part.place is None or not (accepted or part.effect == "read"):
        return _BY_MODE[part.effect]
    if not part.place.is_inside:
        return "outside_workspace"
    if accepted:
        return "protected_path" if part.place.is_protected else "edit_in_workspace"
    return "reading"


def _told(verdict: _Verdict) -> str:
    text = visible(verdict.part.label)
    label = text if len(text) <= _LABEL else f"{text[:_LABEL]}…"
    return f"{label} ({visible(verdict.part.why)})" if verdict.part.why else label


def _rules(verdicts: list[_Verdict], first: _Verdict) -> str | None:
    """The rule that decided; where all parts are allowed, each rule that took part, once."""
    deciding = [first] if first.strength else verdicts
    named = dict.fromkeys(str(verdict.rule) for verdict in deciding if verdict.rule is not None)
    return ", ".join(named) or None
