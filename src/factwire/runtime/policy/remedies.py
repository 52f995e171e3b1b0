"""Remedies: a denial for want of somebody to ask says what would have made it a yes.

Only `dontAsk` denies what nobody forbade. A rule that denies, and planning, are meant as they are;
nothing is offered against them.
"""

import shlex
from typing import Final

import msgspec

from factwire.runtime.policy.evaluation import Evaluation, Policy, evaluate
from factwire.runtime.policy.proposals import pattern_for
from factwire.runtime.policy.reasons import REASONS
from factwire.runtime.policy.requests import Request
from factwire.runtime.policy.visibility import visible

_OTHER_MODE: Final = "to be asked, choose another --policy than dontAsk"


def evaluate_asking(policy: Policy, request: Request) -> Evaluation:
    """What the policy says about something that is put to a person whatever the rules allow."""
    found = evaluate(policy, request)
    if policy.mode != "dontAsk" or found.decision == "deny":
        return found
    message = f"{visible(request.tool)}: {REASONS['dont_ask'][1]}"
    return Evaluation(decision="deny", mode="dontAsk", reason_code="dont_ask", message=message)


def with_remedy(
    policy: Policy, request: Request, evaluation: Evaluation, *, always_ask: bool = False
) -> Evaluation:
    """The evaluation; where nobody is to be asked, its message ends with what would help. No rule
    does where a person is to be asked in any case.
    """
    if evaluation.reason_code != "dont_ask":
        return evaluation
    remedy = _OTHER_MODE if always_ask else _remedy(policy, request)
    message = f"{evaluation.message}; {remedy}"
    return msgspec.structs.replace(evaluation, message=message)


def _remedy(policy: Policy, request: Request) -> str:
    rule = pattern_for(request)
    if rule is None:
        return _OTHER_MODE
    wider = msgspec.structs.replace(policy, allow=(*policy.allow, rule))
    if evaluate(wider, request).decision != "allow":
        return _OTHER_MODE
    return f"to allow it: --allow {shlex.quote(str(rule))}"
