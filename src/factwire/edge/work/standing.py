"""What `always` would allow, told before anybody says it.

A person who grants a rule with one click must have seen the rule: so it is worked out here by what
grants it, and never by whoever shows it. That there is none is an answer and no refusal.
"""

from typing import Final

import msgspec

from factwire.edge.machine import Machine
from factwire.edge.problems import Problem
from factwire.edge.records.belonging import bare_id
from factwire.edge.records.rows import Approval
from factwire.edge.work.runs import refusals
from factwire.runtime.grants import proposal_for

_NOT_NOW: Final = 409


class StandingRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The rule that `always` would grant for what has this `args_hash`, in its thread or in this
    workspace. Where there is no rule, `code` is a stable word for why, and `reason` tells it.
    """

    approval_id: str
    args_hash: str | None = None
    rule: str | None = None
    workspace: str | None = None
    code: str | None = None
    reason: str | None = None


async def standing_rule(machine: Machine, approval_id: str) -> StandingRule:
    """The rule for an approval that waits, or why there is none; raises `Problem`."""
    approval = machine.records.approvals.get(approval_id)
    if approval is None:
        raise Problem(404, "unknown_approval", "no approval has this id")
    try:
        return await _proposed(machine, approval, approval_id)
    except Problem as problem:
        if problem.status != _NOT_NOW:
            raise
        return StandingRule(approval_id=approval_id, code=problem.code, reason=problem.detail)


async def _proposed(machine: Machine, approval: Approval, approval_id: str) -> StandingRule:
    if approval.status != "pending":
        raise Problem(_NOT_NOW, "approval_decided", f"it is {approval.status} already")
    row = machine.own_thread(approval.thread_id or "")
    with refusals():
        thread = await machine.runtime.current(row.thread_id)
        found = await proposal_for(machine.runtime, thread, bare_id(approval, approval_id))
    return StandingRule(
        approval_id=approval_id,
        args_hash=found.args_hash,
        rule=str(found.rule),
        workspace=str(found.workspace),
    )
