"""What Factwire's own policy says to what an outside agent asks, before a person is asked.

What the policy denies is denied without asking anybody; a rule that allows, or a mode that
accepts edits, spares the question; everything else is a person's to decide. That something
sounds as if it only read is no reason: the agent asks about what its own settings hold back.
The author of an SDK's agent wants to be asked about a tool; only a rule of the owner's that
names it, or a mode in which nobody is asked, may answer instead.
"""

import os
from collections.abc import Iterable
from typing import Any, Final

from factwire.facts.json_values import object_at
from factwire.runtime.action_cards import bind_place
from factwire.runtime.policy import (
    Evaluation,
    PolicyRequest,
    assess_risk,
    build_denial_fact,
    build_evaluation_fact,
    evaluate,
    hash_request,
    show_request,
)
from factwire.sources.kit.live_agent import LiveTurn

_ALLOWING: Final = frozenset({"rule_allow", "edit_in_workspace"})


def check_policy(
    live: LiveTurn, request: PolicyRequest, *, call_id: str | None, subagent_id: str | None = None
) -> bool | None:
    """Yes or no, which is told; None where a person is to decide."""
    evaluation = evaluate(live.host.resources.policy, request)
    if evaluation.decision == "ask" or (
        evaluation.decision == "allow" and evaluation.reason_code not in _ALLOWING
    ):
        return None
    add_policy_facts(live, request, evaluation, call_id=call_id, subagent_id=subagent_id)
    return evaluation.decision == "allow"


def show_tool_request(live: LiveTurn, question: str, request: PolicyRequest) -> None:
    """Show a question as the policy sees it, bound to the place; what is allowed always goes by
    that.
    """
    request = bind_place(request)
    command = request.command
    live.builder.set_question_details(
        question,
        toolName=request.tool,
        command=list(command) if isinstance(command, tuple) else command,
        cwd=request.cwd,
        place=request.place,
        severity=assess_risk(request),
        shown=show_request(request),
        argsHash=hash_request(request),
    )


def resolve_paths(paths: Iterable[str], folder: str) -> tuple[str, ...]:
    """Where paths really lead, as a policy wants them."""
    return tuple(_resolve_path(path, folder) for path in paths)


def _resolve_path(path: str, folder: str) -> str:
    try:
        return os.path.realpath(os.path.join(folder, path))  # noqa: PTH118 - it may be no path
    except ValueError:
        return path


def add_policy_facts(
    live: LiveTurn,
    request: PolicyRequest,
    evaluation: Evaluation,
    *,
    call_id: str | None = None,
    subagent_id: str | None = None,
) -> None:
    """What the policy decided, as facts."""
    mint, scope = live.host.mint, live.host.scope
    facts = [build_evaluation_fact(mint, scope, request, evaluation)]
    if evaluation.decision == "deny":
        facts.append(build_denial_fact(mint, scope, request, evaluation))
    for fact in facts:
        payload = dict(fact.payload)
        live.builder.add_subagent_fact(
            subagent_id, fact.event_class or "", payload, tool_call_id=call_id
        )
    live.pass_on()


def check_tool_policy(live: LiveTurn, call_id: str, tool: str, args: Any) -> Evaluation | None:
    """What the policy decides, which is told; None where a person has to."""
    host = live.host
    request = PolicyRequest(tool=tool, workspace=str(host.workspace), args=object_at(args) or {})
    evaluation = evaluate(host.resources.policy, request)
    if evaluation.decision == "ask" or (
        evaluation.decision == "allow" and evaluation.reason_code != "rule_allow"
    ):
        return None
    payload = build_evaluation_fact(host.mint, host.scope, request, evaluation).payload
    live.builder.start_tool(call_id, tool, args)
    live.builder.add_fact("permission.evaluated", payload, tool_call_id=call_id)
    if evaluation.decision == "deny":
        live.builder.add_fact("permission.denied", payload, tool_call_id=call_id)
    live.pass_on()
    return evaluation
