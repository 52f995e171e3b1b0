"""Policy: what an agent may do by itself, what a person is asked about, and what is refused."""

from factwire.runtime.policy.evaluation import (
    RISKS,
    Evaluation,
    Policy,
    Risk,
    assess_risk,
    build_denial_fact,
    build_evaluation_fact,
    evaluate,
    evaluate_asking,
    propose_rule,
    with_remedy,
)
from factwire.runtime.policy.policy_request import (
    MODES,
    REASONS,
    Effect,
    Mode,
    PolicyDecision,
    PolicyRequest,
    ReasonCode,
    effect_of,
    hash_request,
    make_visible,
    show_request,
)
from factwire.runtime.policy.policy_rules import PolicyRule, RuleError, parse_rule
from factwire.runtime.policy.request_parts import follow_links

__all__ = [
    "MODES",
    "REASONS",
    "RISKS",
    "Effect",
    "Evaluation",
    "Mode",
    "Policy",
    "PolicyDecision",
    "PolicyRequest",
    "PolicyRule",
    "ReasonCode",
    "Risk",
    "RuleError",
    "assess_risk",
    "build_denial_fact",
    "build_evaluation_fact",
    "effect_of",
    "evaluate",
    "evaluate_asking",
    "follow_links",
    "hash_request",
    "make_visible",
    "parse_rule",
    "propose_rule",
    "show_request",
    "with_remedy",
]
