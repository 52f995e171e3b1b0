"""Deciding an approval, from any screen.

The first decision holds: the same again is sent again if the device does not have it yet, the
opposite is refused. A decision names the hash of what was shown, and a yes needs the exact text: as
it was recorded, where its hash proves that nothing is missing, or from the memory of the device.
Where several people must allow something, each counts once and all are named; one who denies
decides. Decision, outbox and event are one transaction, so a device that is off gets it later, and
until it is there the state says so. If it does not get there, the approval ends and those who
decided are notified: they decide again, or have it sent again, for as long as the device asks. What
nobody has decided in time expires by the clock of the Hub, whether its device is there or not.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from sqlalchemy import delete, insert, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.edge.hub_frames import EdgeControl
from factwire.facts import Person
from factwire.facts.resources import ApprovalWithCard, DecisionCard, HubApproval
from factwire.hub.approvals.approval_follower import reopen
from factwire.hub.approvals.approval_records import (
    ApprovalRow,
    advance,
    announce,
    encode_person,
    find_by_delivery,
    find_by_id,
    find_deciders,
    find_required,
    find_rule,
    find_visible,
    note_screen,
    read_whole,
    save,
)
from factwire.hub.approvals.approval_resources import ApprovalRule, DecideBody, DecisionOutbox
from factwire.hub.approvals.approval_states import (
    DECIDED,
    LOST,
    OVERDUE,
    ApprovalStep,
    can_decide,
    is_lost,
    is_overdue,
)
from factwire.hub.frames.event_log import HubChange, read_cursor
from factwire.hub.link.deliveries import RIGHT_ENDED
from factwire.hub.notifications.notification_ledger import DueDelivery, NewNotification, notify
from factwire.hub.people.accounts import HubCaller, HubServices
from factwire.hub.records.approval_tables import approval_votes, edge_rules
from factwire.hub.records.device_records import find_current_device
from factwire.hub.records.device_tables import devices
from factwire.hub.records.hub_tables import people
from factwire.hub.records.invitation_records import ActionOrigin, add_audit_entry
from factwire.hub.teams.assignment_outcomes import note_approval
from factwire.runtime.action_cards import ShownRequest, build_card
from factwire.serving.asgi import Problem

NOT_EXACT: Final = (
    "the exact text of this request is neither recorded whole nor can the device be asked for it "
    "now; deny it, or decide when the device is connected"
)

_REFUSALS: Final[dict[str, ApprovalStep]] = {
    "approval_changed": "change",
    "approval_not_shown": "change",
    "approval_expired": "expire",
}
"""Why a device refuses a decision → what that means; for any other reason it is refused."""


async def read_approval(hub: HubServices, caller: HubCaller, approval_id: str) -> ApprovalWithCard:
    """An approval with exactly what is to be decided; raises `Problem`."""
    async with hub.database.read() as connection:
        row = await find_visible(connection, caller.person_id, approval_id)
        whole = (await read_whole(connection, [row]))[0]
        device = await find_current_device(connection, row["edge_id"])
        may_decide = device is not None and await _may_decide(hub, connection, caller, row)
        as_of = await read_cursor(connection)
    card = await read_card(hub, caller, row, device)
    fields = {name: getattr(whole, name) for name in HubApproval.__struct_fields__}
    return ApprovalWithCard(**fields, card=card, may_decide=may_decide, as_of=as_of)


async def read_card(
    hub: HubServices, caller: HubCaller, row: ApprovalRow, device: RowMapping | None
) -> DecisionCard:
    """Exactly what is decided, or a card that says why it cannot be shown. The device is the one
    that the Edge is now.
    """
    request_id, args_hash = row["request_id"], row["args_hash"]
    if row["shown"] is not None:
        exact = ShownRequest(prompt=row["summary"] or "", shown=row["shown"], args_hash=args_hash)
        return build_card(request_id, args_hash, exact)
    cards = hub.approvals.cards
    if cards is not None and device is not None and can_decide(row["state"], row["code"]):
        found = await cards.read_card(device["device_id"], request_id, to_decider(caller))
        if found is not None and found.args_hash == args_hash:
            return found
    return DecisionCard(request_id=request_id, args_hash=args_hash, reason=NOT_EXACT)


def to_decider(caller: HubCaller) -> Person:
    """Who decides, as the facts of a device name them."""
    return Person(
        name=caller.name, user_id=caller.person_id, device_id=caller.session_id, via="hub"
    )


async def _may_decide(
    hub: HubServices, connection: AsyncConnection, caller: HubCaller, row: ApprovalRow
) -> bool:
    found = await hub.approvals.deciders(
        connection, row["edge_id"], row["thread_id"], row["run_id"]
    )
    return caller.person_id in found and caller.may("member")


async def decide(
    hub: HubServices,
    caller: HubCaller,
    approval_id: str,
    body: DecideBody,
    origin: ActionOrigin,
) -> HubApproval:
    """Decide what an agent asks, or add one of the votes that it needs; raises `Problem`."""
    async with hub.database.read() as connection:
        row = await find_visible(connection, caller.person_id, approval_id)
        if not await _may_decide(hub, connection, caller, row):
            raise _not_approver()
        device = await find_current_device(connection, row["edge_id"])
    if body.decision == "allow" and can_decide(row["state"], row["code"]):
        # The device may take a while to answer, so this is outside of the transaction.
        card = await read_card(hub, caller, row, device)
        if card.shown is None:
            raise Problem(409, "approval_not_shown", NOT_EXACT)
    async with hub.events.change() as change:
        row = await find_visible(change.connection, caller.person_id, approval_id, lock=True)
        if not await _may_decide(hub, change.connection, caller, row):
            raise _not_approver()
        if row["state"] in DECIDED:
            row = await _repeat_decision(hub, change, row, body)
        else:
            ensure_open(row, body, change.now)
            row = await _vote(hub, change, caller, row, body)
            await add_audit_entry(
                change.connection,
                change.now,
                "approval.voted",
                origin,
                approval_id,
                decision=body.decision,
                state=row["state"],
            )
        return (await read_whole(change.connection, [row]))[0]


def _not_approver() -> Problem:
    return Problem(403, "not_an_approver", "you may see this approval, but not decide it")


def ensure_open(row: ApprovalRow, body: DecideBody, now: int) -> None:
    """Raise `Problem` for a decision that comes too late, or about something else."""
    is_late = row["expires_at"] is not None and row["expires_at"] <= now
    is_open = can_decide(row["state"], row["code"])
    if is_overdue(row["state"], row["code"]) or (is_open and is_late):
        raise Problem(410, "approval_expired", "the approval has expired")
    if not is_open:
        raise Problem(
            409, "approval_closed", f"the approval is {row['state']}; nothing is left to decide"
        )
    if body.args_hash != row["args_hash"]:
        raise Problem(
            409, "approval_changed", "the request is not the one that was shown; read it again"
        )


async def _repeat_decision(
    hub: HubServices, change: HubChange, row: ApprovalRow, body: DecideBody
) -> ApprovalRow:
    """The same decision again goes out again, if the device does not have it; the opposite is
    refused.
    """
    if row["decision"] != body.decision or row["args_hash"] != body.args_hash:
        raise Problem(409, "approval_decided", f"the approval was decided: {row['decision']}")
    if row["state"] == "decided" and row["delivery_id"] is not None:
        await _outbox(hub).resend_decision(change, await _require_device(change, row))
    return row


async def _require_device(change: HubChange, row: ApprovalRow) -> str:
    """The device that the Edge of an approval is now; raises `Problem` where it is revoked."""
    device = await find_current_device(change.connection, row["edge_id"])
    if device is None:
        raise Problem(
            409, "device_revoked", "the device is revoked; decide once its Edge has joined again"
        )
    return device["device_id"]


async def _vote(
    hub: HubServices,
    change: HubChange,
    caller: HubCaller,
    row: ApprovalRow,
    body: DecideBody,
) -> ApprovalRow:
    """Write what a person says; with it, the approval may be decided."""
    await _save_vote(change, caller, row["approval_id"], body)
    await note_screen(change, row, caller.person_id, "socket", caller.session_id, seen=True)
    row = await find_by_id(change.connection, row["approval_id"]) or row
    may = await hub.approvals.deciders(
        change.connection, row["edge_id"], row["thread_id"], row["run_id"]
    )
    await _remove_void_votes(change, row["approval_id"], may)
    votes = await _read_votes(change.connection, row)
    if body.decision == "deny":
        deciders = (to_decider(caller),)
    else:
        # The one who made it enough is named first, with all the others.
        deciders = (
            to_decider(caller),
            *(person for person in votes if person.user_id != caller.person_id),
        )
        # The task of a run may have become known after what the run asks.
        found = await find_required(change.connection, row["edge_id"], row["run_id"], 1)
        if found > row["required"]:
            row = await save(change, row, {**row, "required": found})
        if len(deciders) < row["required"]:
            await announce(change, row)
            return row
    first = msgspec.structs.replace(deciders[0], together_with=deciders[1:])
    return await _send(hub, change, row, body, first)


async def _send(
    hub: HubServices,
    change: HubChange,
    row: ApprovalRow,
    body: DecideBody,
    decided_by: Person,
) -> ApprovalRow:
    device_id = await _require_device(change, row)
    control = EdgeControl(
        run_id=row["run_id"] or "",
        request_id=row["request_id"],
        decision=body.decision,
        reason=body.reason,
        args_hash=row["args_hash"],
        decided_by=msgspec.to_builtins(decided_by),
    )
    if is_lost(row["state"], row["code"]):
        await _outbox(hub).withdraw_decision(change, row["delivery_id"])
    delivery_id = await _outbox(hub).send_decision(change, device_id, row["approval_id"], control)
    await _count_votes(change, row["approval_id"], delivery_id, decided_by)
    moved = await advance(
        change,
        row,
        "decide",
        decision=body.decision,
        reason=body.reason,
        decided_by=encode_person(decided_by),
        decided_at=change.now,
        delivery_id=delivery_id,
        code=None,
    )
    await note_approval(change, row["device_id"], row["approval_id"], control)
    return moved or row


async def _count_votes(
    change: HubChange, approval_id: str, delivery_id: str, decided_by: Person
) -> None:
    """Note whose votes a decision is made of: it is sent only while all of them may decide."""
    deciders = [each.user_id for each in (decided_by, *decided_by.together_with)]
    await change.connection.execute(
        update(approval_votes)
        .where(
            approval_votes.c.approval_id == approval_id, approval_votes.c.person_id.in_(deciders)
        )
        .values(counted_in=delivery_id)
    )


def _outbox(hub: HubServices) -> Any:
    if hub.approvals.outbox is None:
        raise Problem(503, "link_closed", "this Hub has no link to its devices; try again")
    return hub.approvals.outbox


async def _save_vote(
    change: HubChange, caller: HubCaller, approval_id: str, body: DecideBody
) -> None:
    """One vote for each person: whoever allowed something may still deny it."""
    key = (
        approval_votes.c.approval_id == approval_id,
        approval_votes.c.person_id == caller.person_id,
    )
    values: dict[str, Any] = {
        "decision": body.decision,
        "args_hash": body.args_hash,
        "session_id": caller.session_id,
        "reason": body.reason,
        "at": change.now,
    }
    changed = await change.connection.execute(update(approval_votes).where(*key).values(**values))
    if changed.rowcount == 0:
        await change.connection.execute(
            insert(approval_votes).values(
                approval_id=approval_id, person_id=caller.person_id, **values
            )
        )


async def _remove_void_votes(change: HubChange, approval_id: str, deciders: frozenset[str]) -> None:
    """Remove the votes of those who may no longer decide, so that the votes that are shown are
    those that count.
    """
    members = select(people.c.person_id).where(
        people.c.person_id.in_(deciders), people.c.disabled_at.is_(None), people.c.role != "viewer"
    )
    await change.connection.execute(
        delete(approval_votes).where(
            approval_votes.c.approval_id == approval_id,
            approval_votes.c.person_id.not_in(members),
        )
    )


async def _read_votes(connection: AsyncConnection, row: ApprovalRow) -> list[Person]:
    """Everybody who allowed exactly this request, in order."""
    query = (
        select(people.c.name, approval_votes.c.person_id, approval_votes.c.session_id)
        .join(people, people.c.person_id == approval_votes.c.person_id)
        .where(
            approval_votes.c.approval_id == row["approval_id"],
            approval_votes.c.args_hash == row["args_hash"],
            approval_votes.c.decision == "allow",
        )
        .order_by(approval_votes.c.at, approval_votes.c.person_id)
    )
    return [
        Person(name=name, user_id=person_id, device_id=session_id, via="hub")
        for name, person_id, session_id in (await connection.execute(query)).all()
    ]


async def note_delivery_end(change: HubChange, delivery_id: str, refused: str | None) -> None:
    """Write that a device has a decision on disk, or why it refuses it. For the link; a delivery of
    something else, or one that was replaced, changes nothing.
    """
    row = await find_by_delivery(change.connection, delivery_id)
    if row is None:
        return
    if refused is None:
        await advance(change, row, "send")
        return
    step = _REFUSALS.get(refused, "refuse")
    if step == "change":
        if row["state"] == "decided":
            await reopen(change, row, {"code": refused})
        return
    await advance(change, row, step, code=refused)


async def note_decision_lost(change: HubChange, delivery_id: str, code: str) -> None:
    """Write that a decision did not reach its device, and notify those who made it; one that was
    replaced changes nothing.
    """
    row = await find_by_delivery(change.connection, delivery_id)
    if row is None:
        return
    if code == RIGHT_ENDED:
        may = await find_deciders(
            change.connection, row["edge_id"], row["thread_id"], row["run_id"]
        )
        await _remove_void_votes(change, row["approval_id"], may)
    step: ApprovalStep = "expire" if LOST.get(code) == "expired" else "refuse"
    moved = await advance(change, row, step, code=code)
    if moved is not None and row["state"] == "decided":
        await _notify_loss(change, row, code)


async def expire_overdue(outbox: DecisionOutbox, change: HubChange, found: RowMapping) -> None:
    """Expire an approval whose time has passed. A decision that is on its way comes too late."""
    row = dict(found)
    if row["delivery_id"] is not None:
        await outbox.withdraw_decision(change, row["delivery_id"])
    if row["state"] == "decided":
        await _notify_loss(change, row, OVERDUE)
    await advance(change, row, "expire", code=OVERDUE)


async def _notify_loss(change: HubChange, row: ApprovalRow, code: str) -> None:
    """Notify those who made a decision that it did not reach the device, or not in time."""
    named = select(devices.c.name).where(devices.c.device_id == row["device_id"])
    name: str = (await change.connection.execute(named)).scalar_one()
    first = msgspec.json.decode(row["decided_by"], type=Person)
    decided = {each.user_id for each in (first, *first.together_with) if each.user_id is not None}
    title = f"Your decision did not reach {name}{' in time' if code == OVERDUE else ''}"
    if code == RIGHT_ENDED:
        # Whoever decided may no longer do so; the others can.
        title = f"An agent on {name} is waiting for a decision again"
        place = row["edge_id"], row["thread_id"], row["run_id"]
        decided = await find_deciders(change.connection, *place)
    for person_id in sorted(decided):
        await notify(
            change,
            person_id,
            NewNotification(
                kind="approval",
                title=title,
                payload={"approvalId": row["approval_id"], "deviceId": row["device_id"]},
                # It is closed with the question, unless that is closed already.
                subject_id=None if code == OVERDUE else row["approval_id"],
                expires_at=None if code == OVERDUE else row["expires_at"],
            ),
        )


async def retry_decision(change: HubChange, delivery_id: str) -> None:
    """Have the approval of a decision that is sent again be decided again."""
    row = await find_by_delivery(change.connection, delivery_id)
    if row is not None:
        await advance(change, row, "retry")


async def mark_seen(hub: HubServices, caller: HubCaller, approval_id: str) -> HubApproval:
    """Note that an approval was seen on the screen of the caller; raises `Problem`."""
    async with hub.events.change() as change:
        row = await find_visible(change.connection, caller.person_id, approval_id, lock=True)
        await note_screen(change, row, caller.person_id, "socket", caller.session_id, seen=True)
        row = await find_by_id(change.connection, approval_id) or row
        return (await read_whole(change.connection, [row]))[0]


async def note_delivery(change: HubChange, delivery: DueDelivery) -> None:
    """Note on an approval that its notification was acknowledged by a channel."""
    approval_id = delivery.payload.get("approvalId")
    row = None if approval_id is None else await find_by_id(change.connection, approval_id)
    if row is not None:
        await note_screen(
            change, row, delivery.person_id, delivery.channel, delivery.target_id, seen=False
        )


async def note_notification_seen(
    change: HubChange, caller: HubCaller, channel: str, payload: Mapping[str, str]
) -> None:
    """Note on an approval that its notification was seen on a screen."""
    approval_id = payload.get("approvalId")
    row = None if approval_id is None else await find_by_id(change.connection, approval_id)
    if row is not None:
        await note_screen(change, row, caller.person_id, channel, caller.session_id, seen=True)


async def read_rule(hub: HubServices, caller: HubCaller, device_id: str) -> ApprovalRule:
    """How many people must allow what a device of the caller's asks; raises `Problem`."""
    async with hub.database.read() as connection:
        edge_id = await _require_owner(connection, caller, device_id)
        return ApprovalRule(required=await find_rule(connection, edge_id))


async def change_rule(
    hub: HubServices, caller: HubCaller, device_id: str, rule: ApprovalRule, origin: ActionOrigin
) -> ApprovalRule:
    """Set it for what is asked from now on; raises `Problem`."""
    async with hub.database.write() as connection:
        edge_id = await _require_owner(connection, caller, device_id)
        statement = update(edge_rules).where(edge_rules.c.edge_id == edge_id)
        changed = await connection.execute(statement.values(required=rule.required))
        if changed.rowcount == 0:
            values = {"edge_id": edge_id, "required": rule.required}
            await connection.execute(insert(edge_rules).values(**values))
        await add_audit_entry(
            connection, hub.now(), "approval.rule", origin, device_id, required=rule.required
        )
    return rule


async def _require_owner(connection: AsyncConnection, caller: HubCaller, device_id: str) -> str:
    """The Edge of a device of the caller's; raises `Problem`."""
    query = select(devices.c.edge_id).where(
        devices.c.device_id == device_id, devices.c.person_id == caller.person_id
    )
    edge_id: str | None = (await connection.execute(query)).scalar_one_or_none()
    if edge_id is None:
        raise Problem(404, "unknown_device", "none of your devices has this id")
    return edge_id
