"""Granting: *always for this pattern*, as it is worked out and written down."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from factwire.runtime.live_threads import LiveThread
from factwire.runtime.minting import Scope
from factwire.runtime.policy import Rule
from factwire.runtime.standing_rules import Grant, Lasting, proposed
from factwire.runtime.submission import submitted

if TYPE_CHECKING:
    from factwire.runtime.runtime import Runtime


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, the workspace that it could be for, and the hash of what it was made from."""

    rule: Rule
    workspace: Path
    args_hash: str | None


async def grant_for(
    runtime: "Runtime", thread: LiveThread, action_id: str, lasts: Lasting
) -> Grant:
    """The grant that allows what an action asks about from now on; raises `NoRule`."""
    proposal = await proposal_for(runtime, thread, action_id)
    place = thread.thread_id if lasts == "thread" else str(proposal.workspace)
    return runtime.standing.grant(proposal.rule, lasts, place)


async def proposal_for(runtime: "Runtime", thread: LiveThread, action_id: str) -> Proposal:
    """What a grant would hold; raises `NoRule`."""
    action = thread.approvals.known(action_id)
    asked = await submitted(runtime.journal, runtime.blobs, thread.thread_id, action.turn_id or "")
    named = None if asked is None else asked.workspace
    workspace = (runtime.workspace if named is None else Path(named)).resolve()
    rule = proposed(runtime.means.policy, action, workspace)
    return Proposal(rule=rule, workspace=workspace, args_hash=action.args_hash)


async def tell_grant(
    runtime: "Runtime", thread: LiveThread, grant: Grant, *, by: str, action_id: str | None = None
) -> None:
    """Write a grant down; from then on it holds."""
    scope = Scope(session_id=thread.projection.state.session_id, thread_id=thread.thread_id)
    said = {**grant.payload(), "decidedBy": by}
    fact = runtime.mint.fact(scope, "policy.changed", said, action_id=action_id)
    await thread.log.write(fact)
    await runtime.standing.refresh()
