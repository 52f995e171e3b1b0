"""What the policy said, as facts: `permission.evaluated` always, `permission.denied` for a denial.

The facts repeat what was asked in a form that is safe to show and safe to keep: nothing hidden, no
secrets, and not more than a glance holds. The hash leads to the rest.
"""

from typing import Any, Final

from factwire.facts import Fact, redact_text
from factwire.runtime.minting import Mint, Scope
from factwire.runtime.policy.evaluation import Evaluation
from factwire.runtime.policy.requests import Request
from factwire.runtime.policy.risk import risk_of
from factwire.runtime.policy.showing import args_hash, canonical_json
from factwire.runtime.policy.visibility import visible

_GLANCE: Final = 2_000
"""Characters of a command, path or message in a fact; the request itself is with the tool call."""


def evaluation_fact(
    mint: Mint, scope: Scope, request: Request, evaluation: Evaluation, **fields: Any
) -> Fact:
    """`permission.evaluated`; `fields` are further fields of the fact, such as `tool_call_id`."""
    payload = _payload(request, evaluation)
    return mint.fact(scope, "permission.evaluated", payload, **fields)


def denial_fact(
    mint: Mint, scope: Scope, request: Request, evaluation: Evaluation, **fields: Any
) -> Fact:
    """`permission.denied`, which a denial has beside its evaluation."""
    if evaluation.decision != "deny":
        raise ValueError(f"expected a denial, got the decision {evaluation.decision!r}")
    return mint.fact(scope, "permission.denied", _payload(request, evaluation), **fields)


def _payload(request: Request, evaluation: Evaluation) -> dict[str, Any]:
    command = request.command
    said: dict[str, Any] = {
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
        "riskLevel": risk_of(request),
        "argsHash": args_hash(request),
    }
    return {name: value for name, value in said.items() if value is not None}


def _glance(text: str | None) -> str | None:
    if text is None:
        return None
    clean, _ = redact_text(text)
    seen = visible(clean[: _GLANCE + 1])
    return seen if len(seen) <= _GLANCE else f"{seen[:_GLANCE]}…"
