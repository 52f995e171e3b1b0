"""Policy: what an agent may do by itself, what a person is asked about, and what is refused."""

from factwire.runtime.policy.evaluation import Evaluation, Policy, evaluate
from factwire.runtime.policy.proposals import pattern_for
from factwire.runtime.policy.reasons import MODES, REASONS, Decision, Mode, ReasonCode
from factwire.runtime.policy.remedies import evaluate_asking, with_remedy
from factwire.runtime.policy.requests import Effect, Request, effect_of
from factwire.runtime.policy.risk import RISKS, Risk, risk_of
from factwire.runtime.policy.rules import Rule, RuleError, parse_rule
from factwire.runtime.policy.showing import args_hash, shown
from factwire.runtime.policy.telling import denial_fact, evaluation_fact
from factwire.runtime.policy.visibility import visible

__all__ = [
    "MODES",
    "REASONS",
    "RISKS",
    "Decision",
    "Effect",
    "Evaluation",
    "Mode",
    "Policy",
    "ReasonCode",
    "Request",
    "Risk",
    "Rule",
    "RuleError",
    "args_hash",
    "denial_fact",
    "effect_of",
    "evaluate",
    "evaluate_asking",
    "evaluation_fact",
    "parse_rule",
    "pattern_for",
    "risk_of",
    "shown",
    "visible",
    "with_remedy",
]
