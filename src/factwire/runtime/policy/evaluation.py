"""Evaluation: deny beats ask beats allow; a mode decides only where no rule does.

With it: how risky a request is (which decides nothing), the narrowest rule that would allow it,
and the facts that record the outcome.
"""

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

import msgspec

from factwire.facts import Fact, redact_text
from factwire.runtime.mint import FactScope, Mint
from factwire.runtime.policy.policy_request import (
    MODES,
    REASONS,
    TOOL_EFFECTS,
    Effect,
    Mode,
    PolicyDecision,
    PolicyRequest,
    ReasonCode,
    canonical_json,
    effect_of,
    fold_tool_name,
    hash_request,
    make_visible,
)
from factwire.runtime.policy.policy_rules import (
    PolicyRule,
    RuleError,
    command_tokens,
    parse_rule,
    quote_word,
)
from factwire.runtime.policy.request_parts import (
    RequestPart,
    allows,
    forbids,
    is_path_rule,
    may_forbid,
    may_run_forbidden,
    names_program,
    split_request,
)
from factwire.runtime.policy.shell_syntax import (
    CHANGING,
    HARMLESS_VARIABLES,
    INTERPRETERS,
    PRIVILEGED,
    RUNNING,
    SHELLS,
    SimpleCommand,
)

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


def assess_risk(request: PolicyRequest) -> Risk:
    """The highest risk of any part of a request."""
    return _worst(_assess_part(part) for part in split_request(request))


def _worst(risks: Iterable[Risk]) -> Risk:
    return max(risks, key=RISKS.index)


def _assess_part(part: RequestPart) -> Risk:
    if part.unclear:
        return "high"
    if part.command is not None:
        return _assess_command(part.command)
    if part.place is not None and part.effect in ("read", "edit"):
        return _assess_place(part)
    return EFFECT_RISKS[part.effect]


def _assess_place(part: RequestPart) -> Risk:
    place = part.place
    outside = place is not None and not place.is_inside
    if part.effect == "edit":
        return "high" if outside or (place is not None and place.is_protected) else "medium"
    return "medium" if outside else "low"


def _assess_command(command: SimpleCommand) -> Risk:
    worst = _worst(_assess_line(each) for each in (command, *command.also))
    names = {_name(each) for each in (command, *command.also)}
    if names & PRIVILEGED or (command.piped and _name(command) in SHELLS | INTERPRETERS):
        return "critical"
    return worst


def _assess_line(command: SimpleCommand) -> Risk:
    line = " ".join([_name(command), *(word or "..." for word in command.words[1:])])
    for risk, found in _COMPILED:
        if found.fullmatch(line):
            return risk
    return "medium"


def _name(command: SimpleCommand) -> str:
    return (command.words[0] or "").rpartition("/")[2] if command.words else ""


_LABEL: Final = 200
"""Characters of a part that a message repeats."""

_STRENGTH: Final[tuple[PolicyDecision, ...]] = ("allow", "ask", "deny")

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
    allow: tuple[PolicyRule, ...] = ()
    ask: tuple[PolicyRule, ...] = ()
    deny: tuple[PolicyRule, ...] = ()

    @property
    def denied_paths(self) -> tuple[PolicyRule, ...]:
        """The rules that deny paths to every tool that reads or edits, for a sandbox to enforce."""
        return tuple(rule for rule in self.deny if is_path_rule(rule))

    @property
    def restricts_commands(self) -> bool:
        """Whether a rule asks about or denies something that a command could do."""
        return any(rule.kind == "command" or is_path_rule(rule) for rule in (*self.deny, *self.ask))

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
            raise ValueError(f"expected one of the modes {', '.join(MODES)}, got {mode!r}")
        lists = {"allow": allow, "ask": ask, "deny": deny}
        rules = {name: tuple(map(parse_rule, texts)) for name, texts in lists.items()}
        return cls(mode=mode, **rules)


class Evaluation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the policy says. `rule` is the text of the rule, or rules, that decided."""

    decision: PolicyDecision
    mode: Mode
    reason_code: ReasonCode
    message: str
    rule: str | None = None


class _Verdict(msgspec.Struct, frozen=True):
    reason: ReasonCode
    part: RequestPart
    rule: PolicyRule | None = None

    @property
    def strength(self) -> int:
        return _STRENGTH.index(REASONS[self.reason][0])


def evaluate(policy: Policy, request: PolicyRequest) -> Evaluation:
    """What the policy says about a request; the strictest word about any part of it."""
    verdicts = [_verdict(policy, request.tool, part) for part in split_request(request)]
    first = max(verdicts, key=lambda verdict: verdict.strength)
    decision, sentence = REASONS[first.reason]
    message = f"{_to_message(first)}: {sentence}"
    code = first.reason
    if decision == "ask" and policy.mode == "dontAsk":
        decision, code = "deny", "dont_ask"
        message = f"{message}; {REASONS[code][1]}"
    return Evaluation(
        decision=decision,
        mode=policy.mode,
        rule=_rule_texts(verdicts, first),
        reason_code=code,
        message=message,
    )


def _verdict(policy: Policy, tool: str, part: RequestPart) -> _Verdict:
    if denying := _find_rule(policy.deny, forbids, tool, part):
        return _Verdict("rule_deny", part, denying)
    if policy.mode == "plan" and part.effect != "read":
        return _Verdict("plan_mode", part)
    return _short_of_denial(policy, tool, part)


def _short_of_denial(policy: Policy, tool: str, part: RequestPart) -> _Verdict:
    if asking := _find_rule(policy.ask, forbids, tool, part):
        return _Verdict("rule_ask", part, asking)
    # The sandbox hides what is denied, and not what only asks.
    seen = msgspec.structs.replace(part, confined=False)
    if possible := _find_rule(policy.deny, may_forbid, tool, part) or _find_rule(
        policy.ask, may_forbid, tool, seen
    ):
        return _Verdict("may_reach_forbidden", part, possible)
    if part.unclear:
        return _Verdict(part.unclear, part)
    if allowing := _find_rule(policy.allow, allows, tool, part):
        return _allow(policy, part, allowing)
    return _Verdict(_by_mode(policy.mode, part), part)


def _allow(policy: Policy, part: RequestPart, allowing: PolicyRule) -> _Verdict:
    """A rule for commands of any name speaks for no program that could run what is forbidden."""
    seen = msgspec.structs.replace(part, confined=False)
    rules = [rule for rule in policy.deny if may_run_forbidden(rule, part)]
    rules += [rule for rule in policy.ask if may_run_forbidden(rule, seen)]
    if rules and not names_program(allowing):
        return _Verdict("may_reach_forbidden", part, rules[0])
    return _Verdict("rule_allow", part, allowing)


def _find_rule(
    rules: tuple[PolicyRule, ...],
    test: Callable[[PolicyRule, str, RequestPart], bool],
    tool: str,
    part: RequestPart,
) -> PolicyRule | None:
    return next((rule for rule in rules if test(rule, tool, part)), None)


def _by_mode(mode: Mode, part: RequestPart) -> ReasonCode:
    accepted = part.effect == "edit" and mode == "acceptEdits"
    if part.place is None or not (accepted or part.effect == "read"):
        return _BY_MODE[part.effect]
    if not part.place.is_inside:
        return "outside_workspace"
    if accepted:
        return "protected_path" if part.place.is_protected else "edit_in_workspace"
    return "reading"


def _to_message(verdict: _Verdict) -> str:
    text = make_visible(verdict.part.label)
    label = text if len(text) <= _LABEL else f"{text[:_LABEL]}…"
    return f"{label} ({make_visible(verdict.part.why)})" if verdict.part.why else label


def _rule_texts(verdicts: list[_Verdict], first: _Verdict) -> str | None:
    """The rule that decided; where all parts are allowed, each rule that took part, once."""
    deciding = [first] if first.strength else verdicts
    named = dict.fromkeys(str(verdict.rule) for verdict in deciding if verdict.rule is not None)
    return ", ".join(named) or None


WIDENED: Final = frozenset({("git", "status"), ("ls",), ("pwd",), ("whoami",), ("uname",)})
"""Commands whose arguments can do no harm, by their first words."""

_WIDENED_TOKENS: Final = [[*((word,) for word in words), (None,)] for words in WIDENED]

_NAMES: Final = {"read": "Read", "edit": "Edit"}


def propose_rule(request: PolicyRequest) -> PolicyRule | None:
    """The rule to propose to whoever approved a request; None where there is no sensible one."""
    if assess_risk(request) == "critical":
        return None
    try:
        rule = _build_rule(request, split_request(request))
    except RuleError:
        return None
    if rule is None or is_over_broad(rule) or not _would_allow(rule, request):
        return None
    return rule


_RUN_ANYTHING: Final = SHELLS | PRIVILEGED | RUNNING | CHANGING
"""Programs that nothing is allowed for good: what they run is not in their name."""

_FROM_INPUT: Final = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})


def is_over_broad(rule: PolicyRule) -> bool:
    """Whether a rule for commands leaves open what runs: any command, any arguments of one that is
    not harmless, a shell, the rights of another user, an interpreter that is given any code.
    """
    if rule.pattern is None:
        return TOOL_EFFECTS.get(fold_tool_name(rule.tool)) == "run" or "*" in rule.tool
    if rule.kind != "command":
        return False
    tokens = command_tokens(rule.pattern)
    if not tokens or any(None in token for token in tokens):
        return tokens not in _WIDENED_TOKENS
    words = ["".join(piece or "" for piece in token) for token in tokens]
    program = words[0].rpartition("/")[2].lower()
    if program in _RUN_ANYTHING:
        return True
    is_interpreter = program.rstrip("0123456789.") in INTERPRETERS
    return is_interpreter and (len(words) == 1 or not _FROM_INPUT.isdisjoint(words))


def _would_allow(rule: PolicyRule, request: PolicyRequest) -> bool:
    """A proposal that would not help is none."""
    return evaluate(Policy(allow=(rule,)), request).decision == "allow"


def _build_rule(request: PolicyRequest, parts: list[RequestPart]) -> PolicyRule | None:
    if any(part.unclear for part in parts):
        return None
    if request.command is not None:
        return _build_command_rule(parts)
    if request.paths and effect_of(request) in _NAMES:
        return _build_paths_rule(request, parts)
    if parts[0].host is not None:
        return PolicyRule(request.tool, f"domain:{parts[0].host}") if len(parts) == 1 else None
    return PolicyRule(request.tool) if "*" not in request.tool and not request.paths else None


def _build_command_rule(parts: list[RequestPart]) -> PolicyRule | None:
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
            return PolicyRule("Bash", f"{' '.join(known)} *")
    return PolicyRule("Bash", " ".join(map(quote_word, words)))


def _build_paths_rule(request: PolicyRequest, parts: list[RequestPart]) -> PolicyRule | None:
    places = [part.place for part in parts if part.place is not None]
    inside = all(place.is_inside for place in places)
    names = ["/".join((place.relative if inside else place.absolute) or ()) for place in places]
    name = _NAMES[effect_of(request)]
    start = "./" if inside else "/"
    if len(set(names)) == 1 and not any(part.below for part in parts):
        return _path_rule(name, start + names[0])
    folder = posixpath.commonpath(names) if len(set(names)) > 1 else names[0]
    return _path_rule(name, f"{start}{folder}/**") if folder else None


def _path_rule(tool: str, pattern: str) -> PolicyRule | None:
    """A star in a file's name would be a pattern."""
    return None if "*" in pattern.removesuffix("/**") else PolicyRule(tool, pattern)


_OTHER_MODE: Final = "to be asked, choose a --policy other than dontAsk"


def evaluate_asking(policy: Policy, request: PolicyRequest) -> Evaluation:
    """What the policy says about something that is put to a person whatever the rules allow."""
    found = evaluate(policy, request)
    if policy.mode != "dontAsk" or found.decision == "deny":
        return found
    message = f"{make_visible(request.tool)}: {REASONS['dont_ask'][1]}"
    return Evaluation(decision="deny", mode="dontAsk", reason_code="dont_ask", message=message)


def with_remedy(
    policy: Policy, request: PolicyRequest, evaluation: Evaluation, *, always_ask: bool = False
) -> Evaluation:
    """The evaluation; where nobody is to be asked, its message ends with what would help. No rule
    does where a person is to be asked in any case.
    """
    if evaluation.reason_code != "dont_ask":
        return evaluation
    remedy = _OTHER_MODE if always_ask else _remedy(policy, request)
    message = f"{evaluation.message}; {remedy}"
    return msgspec.structs.replace(evaluation, message=message)


def _remedy(policy: Policy, request: PolicyRequest) -> str:
    rule = propose_rule(request)
    if rule is None:
        return _OTHER_MODE
    wider = msgspec.structs.replace(policy, allow=(*policy.allow, rule))
    if evaluate(wider, request).decision != "allow":
        return _OTHER_MODE
    return f"to allow it: --allow {shlex.quote(str(rule))}"


_GLANCE: Final = 2_000
"""Characters of a command, path or message in a fact; the request itself is with the tool call."""


def build_evaluation_fact(
    mint: Mint, scope: FactScope, request: PolicyRequest, evaluation: Evaluation, **fields: Any
) -> Fact:
    """`permission.evaluated`; `fields` are further fields of the fact, such as `tool_call_id`."""
    payload = _payload(request, evaluation)
    return mint.fact(scope, "permission.evaluated", payload, **fields)


def build_denial_fact(
    mint: Mint, scope: FactScope, request: PolicyRequest, evaluation: Evaluation, **fields: Any
) -> Fact:
    """`permission.denied`, which a denial has beside its evaluation."""
    if evaluation.decision != "deny":
        raise ValueError(f"expected a denial, got the decision {evaluation.decision!r}")
    return mint.fact(scope, "permission.denied", _payload(request, evaluation), **fields)


def _payload(request: PolicyRequest, evaluation: Evaluation) -> dict[str, Any]:
    command = request.command
    details: dict[str, Any] = {
        "decision": evaluation.decision,
        "mode": evaluation.mode,
        "rule": _glance(evaluation.rule),
        "reasonCode": evaluation.reason_code,
        "message": _glance(evaluation.message),
        "toolName": _glance(request.tool),
        "path": _glance(request.paths[0] if request.paths else None),
        "command": _glance(
            canonical_json(list(command)) if isinstance(command, tuple) else command
        ),
        "riskLevel": assess_risk(request),
        "argsHash": hash_request(request),
    }
    return {name: value for name, value in details.items() if value is not None}


def _glance(text: str | None) -> str | None:
    if text is None:
        return None
    clean, _ = redact_text(text)
    seen = make_visible(clean[: _GLANCE + 1])
    return seen if len(seen) <= _GLANCE else f"{seen[:_GLANCE]}…"
