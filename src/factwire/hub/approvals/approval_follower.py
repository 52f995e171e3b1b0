"""Approvals as the facts of an Edge have them: opened, changed, resolved, applied, closed.

What a mirror's facts say is what is true about a request; this reads them in order, once each. Ids
are those of the Edge's own lists, where two threads may ask under one id.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import delete, insert, select

from factwire.edge.events.approval_events import DECISIONS
from factwire.facts import Fact, id_of, to_person
from factwire.facts.classes.payloads import ActionDecisionPayload, ActionRequestPayload
from factwire.facts.json_values import text_at
from factwire.facts.secret_key_names import REDACTED
from factwire.hub.approvals.approval_records import (
    ApprovalRow,
    advance,
    announce,
    encode_person,
    find_by_request,
    find_required,
    save,
)
from factwire.hub.approvals.approval_resources import Deciders
from factwire.hub.approvals.approval_states import (
    ApprovalStep,
    can_decide,
    find_next_state,
    is_overdue,
)
from factwire.hub.frames.event_log import HubChange
from factwire.hub.limits import APPROVAL_SHOWN_CHARACTERS
from factwire.hub.mirror.mirror_followers import FollowedEdge
from factwire.hub.notifications.notification_ledger import (
    NewNotification,
    close_notifications,
    notify,
)
from factwire.hub.people.accounts import new_id
from factwire.hub.records.approval_tables import approval_screens, approval_votes, approvals
from factwire.journal.filter import BESIDE_THREAD
from factwire.projection.payload_fields import read_payload
from factwire.runtime.action_cards import is_hash_of, read_shown
from factwire.serving.envelopes import run_id_of

_MILLISECONDS: Final = 1_000
_CLOSERS: Final[dict[str, ApprovalStep]] = {
    "action.cancelled": "withdraw",
    "action.canceled": "withdraw",
    "action.expired": "expire",
}
_CLOSING: Final = frozenset({*_CLOSERS, "action.resolved"})

NOTHING_SAID: Final[dict[str, Any]] = {
    "delivered_at": None,
    "seen_at": None,
    "decided_at": None,
    "sent_at": None,
    "applied_at": None,
    "ended_at": None,
    "decision": None,
    "reason": None,
    "decided_by": None,
    "delivery_id": None,
    "code": None,
    "removed_at": None,
}
"""An approval that nobody has been shown, and nobody has decided."""


class ApprovalFollower:
    """Keeps the approvals of all Edges; a `MirrorFollower`."""

    name = "approvals"
    classes = ("action",)

    def __init__(self, deciders: Deciders, required: int = 1) -> None:
        self._deciders = deciders
        self._required = required

    async def take_facts(
        self, change: HubChange, edge: FollowedEdge, facts: Sequence[tuple[int, Fact]]
    ) -> None:
        """Write what some facts say."""
        closed = {_key_of(fact) for _, fact in facts if fact.event_class in _CLOSING}
        for _, fact in facts:
            if id_of(fact, "actionId") is None:
                continue
            if fact.event_class == "action.required":
                await self._open(change, edge, fact, is_closed=_key_of(fact) in closed)
                continue
            row = await _find_row(change, edge, fact)
            if row is None:
                continue
            if fact.event_class == "action.updated":
                await self._update(change, edge, row, fact)
            elif fact.event_class == "action.resolved":
                await _resolve(change, row, fact)
            elif fact.event_class in _CLOSERS:
                await advance(change, row, _CLOSERS[fact.event_class])

    async def _open(
        self, change: HubChange, edge: FollowedEdge, fact: Fact, *, is_closed: bool
    ) -> None:
        row = await _find_row(change, edge, fact)
        run_id = run_id_of(fact)
        request = {
            **_read_request(fact),
            **NOTHING_SAID,
            "fact_id": fact.id,
            "run_id": run_id,
            "asked_at": _to_time(fact.created_at) or change.now,
            "required": await find_required(
                change.connection, edge.edge_id, run_id, self._required
            ),
        }
        if row is None:
            row = await _insert(change, edge, fact, request)
            await announce(change, row)
        elif row["fact_id"] == fact.id or find_next_state(row["state"], "ask", row["code"]) is None:
            return
        else:
            await forget_answers(change, row["approval_id"])
            moved = await advance(change, row, "ask", **request)
            row = moved or row
        if not is_closed:
            await self._tell_deciders(change, edge, row)

    async def _update(
        self, change: HubChange, edge: FollowedEdge, row: ApprovalRow, fact: Fact
    ) -> None:
        """A request that was changed, or a decision that was sent to the agent or applied."""
        if "applied" in fact.payload:
            if read_payload(fact, ActionDecisionPayload).applied is True:
                # The clock of a device may be behind; what was applied was there before.
                at = max(_to_time(fact.created_at) or change.now, row["sent_at"] or 0)
                await advance(change, row, "apply", applied_at=at)
            return
        changed, state = _read_change(row, fact), row["state"]
        is_asked_longer = is_overdue(state, row["code"]) and changed["expires_at"] > change.now
        if changed["args_hash"] == row["args_hash"] and not is_asked_longer:
            is_open = state == "decided" or can_decide(state, row["code"])
            if is_open and any(row[name] != changed[name] for name in changed):
                await save(change, row, {**row, **changed})
            return
        if find_next_state(row["state"], "change", row["code"]) is not None:
            moved = await reopen(change, row, changed)
            await self._tell_deciders(change, edge, moved)

    async def _tell_deciders(self, change: HubChange, edge: FollowedEdge, row: ApprovalRow) -> None:
        """Notify everybody who may decide, of what can still be decided."""
        expires = row["expires_at"]
        if expires is not None and expires <= change.now:
            return
        found = await self._deciders(
            change.connection, row["edge_id"], row["thread_id"], row["run_id"]
        )
        for person_id in sorted(found):
            await notify(
                change,
                person_id,
                NewNotification(
                    kind="approval",
                    title=f"An agent on {edge.device_name} is waiting for your decision",
                    payload={"approvalId": row["approval_id"], "deviceId": row["device_id"]},
                    subject_id=row["approval_id"],
                    expires_at=expires,
                ),
            )


async def reopen(change: HubChange, row: ApprovalRow, values: Mapping[str, Any]) -> ApprovalRow:
    """Ask again what is another request now: what was said is about the one before."""
    await forget_answers(change, row["approval_id"])
    await close_notifications(change, row["approval_id"])
    moved = await advance(change, row, "change", **{**NOTHING_SAID, **values})
    return moved or row


async def forget_answers(change: HubChange, approval_id: str) -> None:
    """Forget who was shown an approval, and what they said."""
    for table in (approval_votes, approval_screens):
        await change.connection.execute(delete(table).where(table.c.approval_id == approval_id))


async def _resolve(change: HubChange, row: ApprovalRow, fact: Fact) -> None:
    """The Edge has an answer: what people decided here, or what somebody decided there."""
    fields = read_payload(fact, ActionDecisionPayload)
    decision = DECISIONS.get(fields.decision or "", fields.decision)
    at = _to_time(fact.created_at) or change.now
    answer = {
        "decision": decision,
        "reason": fields.reason,
        "decided_by": encode_person(to_person(fields.decided_by)),
    }
    if row["decision"] not in (None, decision):
        # Whichever comes first, this fact or the device's refusal, the row says the same.
        await advance(change, row, "contradict", code="approval_decided")
    elif row["decision"] is None:
        await advance(change, row, "resolve", **answer, decided_at=at, sent_at=at)
    else:
        await advance(change, row, "resolve")


async def _insert(
    change: HubChange, edge: FollowedEdge, fact: Fact, request: Mapping[str, Any]
) -> ApprovalRow:
    values = {
        **request,
        "approval_id": new_id("apr"),
        "device_id": edge.device_id,
        "edge_id": edge.edge_id,
        "thread_id": thread_of(fact),
        "action_id": id_of(fact, "actionId"),
        "request_id": await _request_id(change, edge, fact),
        "state": "asked",
    }
    statement = insert(approvals).values(**values).returning(approvals)
    return dict((await change.connection.execute(statement)).mappings().one())


def _key_of(fact: Fact) -> tuple[str | None, str | None]:
    return thread_of(fact), id_of(fact, "actionId")


def thread_of(fact: Fact) -> str | None:
    """The thread of a fact, also of a decision that stands beside it."""
    return fact.thread_id or text_at(fact.payload, BESIDE_THREAD)


async def _find_row(change: HubChange, edge: FollowedEdge, fact: Fact) -> ApprovalRow | None:
    request_id = await _request_id(change, edge, fact)
    return await find_by_request(change.connection, edge.edge_id, request_id)


async def _request_id(change: HubChange, edge: FollowedEdge, fact: Fact) -> str:
    """The id of a request in the Edge's own lists: that of its facts, unless another thread had it
    before.
    """
    bare, thread_id = id_of(fact, "actionId") or "", thread_of(fact)
    query = select(approvals.c.thread_id).where(
        approvals.c.edge_id == edge.edge_id, approvals.c.request_id == bare
    )
    first = (await change.connection.execute(query)).one_or_none()
    return bare if first is None or first[0] == thread_id else f"{thread_id}~{bare}"


def _read_request(fact: Fact) -> dict[str, Any]:
    """What a request asks; its text only where the hash says that it is whole."""
    fields = read_payload(fact, ActionRequestPayload)
    args_hash = fields.args_hash or read_shown(fact).args_hash
    summary = fields.prompt or fact.title
    return {
        "kind": fields.action_type or "unknown",
        "risk_level": fields.severity or "unknown",
        "tool_name": text_at(fact.payload, "toolName"),
        "summary": summary,
        "shown": _read_whole(text_at(fact.payload, "shown"), summary, args_hash),
        "args_hash": args_hash,
        "expires_at": _to_time(fields.expires_at),
    }


def _read_change(row: ApprovalRow, fact: Fact) -> dict[str, Any]:
    """A request after a change: what the fact does not say stays as it was."""
    fields = read_payload(fact, ActionRequestPayload)
    args_hash = fields.args_hash or row["args_hash"]
    summary = fields.prompt or row["summary"]
    shown = text_at(fact.payload, "shown")
    if shown is None and args_hash == row["args_hash"]:
        whole = row["shown"]
    else:
        whole = _read_whole(shown, summary, args_hash)
    return {
        "summary": summary,
        "shown": whole,
        "args_hash": args_hash,
        "expires_at": _to_time(fields.expires_at) or row["expires_at"],
    }


def _read_whole(shown: str | None, summary: str | None, args_hash: str) -> str | None:
    is_kept = shown is not None and len(shown) <= APPROVAL_SHOWN_CHARACTERS
    if not is_kept or REDACTED in (summary or "") or not is_hash_of(args_hash, shown or ""):
        return None
    return shown


def _to_time(text: str | None) -> int | None:
    """A fact's time as it is stored; None where it has none that can be read."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return None if moment.tzinfo is None else int(moment.timestamp() * _MILLISECONDS)
