"""What Factwire's own policy says to what an outside agent asks.

What the policy denies is denied without asking anybody; a rule that allows, or a mode that accepts
edits, spares the question; everything else is a person's to decide. That something sounds as if it
only read is no reason: the agent asks about what its own settings hold back.
"""

import os
from collections.abc import Iterable
from typing import Final

from factwire.runtime.policy import (
    Evaluation,
    Request,
    args_hash,
    denial_fact,
    evaluate,
    evaluation_fact,
    risk_of,
    shown,
)
from factwire.sources.live.turn import LiveTurn

_ALLOWING: Final = frozenset({"rule_allow", "edit_in_workspace"})


def ruled(
    live: LiveTurn, request: Request, *, call_id: str | None, subagent_id: str | None = None
) -> bool | None:
    """Yes or no, which is told; None where a person is to decide."""
    said = evaluate(live.host.means.policy, request)
    if said.decision == "ask" or (said.decision == "allow" and said.reason_code not in _ALLOWING):
        return None
    tell_ruling(live, request, said, call_id=call_id, subagent_id=subagent_id)
    return said.decision == "allow"


def show(live: LiveTurn, question: str, request: Request) -> None:
    """Show a question as the policy sees it; what is allowed always goes by that."""
    command = request.command
    live.tell.show(
        question,
        toolName=request.tool,
        command=list(command) if isinstance(command, tuple) else command,
        cwd=request.cwd,
        severity=risk_of(request),
        shown=shown(request),
        argsHash=args_hash(request),
    )


def real_paths(paths: Iterable[str], folder: str) -> tuple[str, ...]:
    """Where paths really lead, as a policy wants them."""
    return tuple(_real(path, folder) for path in paths)


def _real(path: str, folder: str) -> str:
    try:
        return os.path.realpath(os.path.join(folder, path))  # noqa: PTH118 - it may be no path
    except ValueError:
        return path


def tell_ruling(
    live: LiveTurn,
    request: Request,
    evaluation: Evaluation,
    *,
    call_id: str | None = None,
    subagent_id: str | None = None,
) -> None:
    """What the policy decided, as facts."""
    mint, scope = live.host.mint, live.host.scope
    facts = [evaluation_fact(mint, scope, request, evaluation)]
    if evaluation.decision == "deny":
        facts.append(denial_fact(mint, scope, request, evaluation))
    for fact in facts:
        said = dict(fact.payload)
        live.tell.within(subagent_id, fact.event_class or "", said, tool_call_id=call_id)
    live.pass_on()
