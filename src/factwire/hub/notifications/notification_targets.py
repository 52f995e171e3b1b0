"""Where people want to be reached: browsers, webhooks, mail addresses.

An address that lets anybody send is sealed before it is stored, and a list shows its host alone. A
push subscription belongs to the session whose browser made it, and ends with that. A mail address
is used once its owner has typed the code that was sent to it: until then it gets one mail, however
often somebody asks. The secret of a webhook and the code follow from the key of the Hub.
"""

import hmac
import re
from base64 import b64encode
from typing import Any, Final

import msgspec
from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.hub_resources import HubPage
from factwire.hub.limits import MAIL_CODE_ATTEMPTS, MAIL_CODE_SECONDS, TARGETS_PER_PERSON
from factwire.hub.notifications.channel_senders import (
    WEBHOOK_SECRET_PREFIX,
    ChannelSenders,
    PushTarget,
    SendOutcome,
)
from factwire.hub.notifications.notification_resources import (
    CreatedWebhook,
    MailAddress,
    PushSubscription,
    PushSubscriptionBody,
    Webhook,
)
from factwire.hub.notifications.web_push import PushKeys, PushKeysInvalid
from factwire.hub.people.accounts import HubCaller, HubServices, new_id
from factwire.hub.people.hub_tokens import HubTokens, digest_of
from factwire.hub.records.invitation_records import ActionOrigin, add_audit_entry
from factwire.hub.records.notification_tables import Channel, notification_targets
from factwire.hub.records.people_records import fetch_page, format_optional_time, format_time
from factwire.serving.asgi import Problem
from factwire.serving.outgoing_requests import OutgoingRefused, OutgoingRules

_MILLISECONDS: Final = 1_000
_CODE_DIGITS: Final = 8
_targets: Final = notification_targets.c
_ADDRESS: Final = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.)*[A-Za-z0-9-]{1,63}"
)
"""An address as a mail server takes it: no quotes, no comments, no line ends."""


class NewTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A target as it is stored; `address` is what is sealed."""

    channel: Channel
    shown: str
    address: str
    session_id: str | None = None
    is_confirmed: bool = True


def _sealing_purpose(target_id: str) -> str:
    # A sealed address that is copied into another row cannot be opened there.
    return f"target {target_id}"


def open_target(tokens: HubTokens, row: RowMapping) -> str | None:
    """How a target is reached; None where it was sealed with another key."""
    return tokens.unseal(_sealing_purpose(row["target_id"]), row["sealed"])


def webhook_secret(tokens: HubTokens, target_id: str) -> bytes:
    """What the requests of a webhook are signed with."""
    return tokens.derive_secret("webhook", target_id)


async def add_push_subscription(
    hub: HubServices, caller: HubCaller, body: PushSubscriptionBody
) -> PushSubscription:
    """Take a browser's subscription; the same again is the one that is there. Raises `Problem`."""
    host = check_target(senders_of(hub).push_rules, body.endpoint)
    try:
        PushKeys.parse(body.keys.p256dh, body.keys.auth)
    except PushKeysInvalid as error:
        raise Problem(400, "push_keys_invalid", str(error)) from error
    target = PushTarget(endpoint=body.endpoint, p256dh=body.keys.p256dh, auth=body.keys.auth)
    new = NewTarget(
        channel="web_push",
        shown=host,
        address=msgspec.json.encode(target).decode(),
        session_id=caller.session_id,
    )
    async with hub.database.write() as connection:
        row = await _insert_target(hub, connection, caller, new)
    return to_subscription(row, caller.session_id)


async def add_webhook(
    hub: HubServices, caller: HubCaller, url: str, origin: ActionOrigin
) -> CreatedWebhook:
    """Have notifications of the caller sent to a server of theirs; raises `Problem`."""
    host = check_target(senders_of(hub).webhook_rules, url)
    new = NewTarget(channel="webhook", shown=host, address=url)
    async with hub.database.write() as connection:
        row = await _insert_target(hub, connection, caller, new)
        await add_audit_entry(connection, hub.now(), "webhook.created", origin, row["target_id"])
    secret = webhook_secret(hub.tokens, row["target_id"])
    shown = msgspec.structs.asdict(to_webhook(row))
    return CreatedWebhook(**shown, secret=format_webhook_secret(secret))


def format_webhook_secret(secret: bytes) -> str:
    """A secret as libraries for Standard Webhooks take it."""
    return f"{WEBHOOK_SECRET_PREFIX}{b64encode(secret).decode()}"


async def add_mail_address(
    hub: HubServices, caller: HubCaller, address: str, origin: ActionOrigin
) -> MailAddress:
    """Take a mail address and send it a code; raises `Problem`."""
    if senders_of(hub).mail is None:
        raise Problem(409, "mail_disabled", "this Hub has no mail server; the operator can set one")
    if not _ADDRESS.fullmatch(address):
        raise Problem(400, "mail_address_invalid", "expected an address such as ada@example.com")
    new = NewTarget(channel="smtp", shown=address, address=address, is_confirmed=False)
    now = hub.now()
    async with hub.database.write() as connection:
        row = await _insert_target(hub, connection, caller, new)
        if row["confirmed_at"] is not None:
            return to_mail_address(row)
        waits = row["code_expires_at"] is not None and row["code_expires_at"] > now
        if waits and row["code_attempts"] < MAIL_CODE_ATTEMPTS:
            # One that was sent is still valid: nobody is sent mail after mail.
            return to_mail_address(row)
        code = _code_for(hub, row["target_id"], now)
        values: dict[str, Any] = {
            "code_digest": digest_of(code),
            "code_expires_at": now + MAIL_CODE_SECONDS * _MILLISECONDS,
            "code_attempts": 0,
        }
        change = update(notification_targets).where(_targets.target_id == row["target_id"])
        await connection.execute(change.values(**values))
        await add_audit_entry(connection, now, "mail.code_sent", origin, row["target_id"])
    outcome = await _send_code(hub, address, row["target_id"], code, now)
    if outcome.code is not None:
        async with hub.database.write() as connection:
            await connection.execute(
                update(notification_targets)
                .where(_targets.target_id == row["target_id"])
                .values(code_digest=None, code_expires_at=None)
            )
        raise Problem(
            502, "mail_not_sent", f"the mail server did not take the mail ({outcome.code})"
        )
    return to_mail_address(row)


async def _send_code(
    hub: HubServices, address: str, target_id: str, code: str, now: int
) -> SendOutcome:
    text = (
        f"Somebody wants notifications of the Factwire Hub at {hub.url} to be sent here.\n\n"
        f"If it was you, enter this code there: {code}\n\n"
        "If it was not, ignore this mail: nothing else will be sent.\n"
    )
    return await senders_of(hub).send_mail(
        address, "Confirm your address", text, f"{target_id}.{now}", now
    )


def _code_for(hub: HubServices, target_id: str, now: int) -> str:
    number = int.from_bytes(hub.tokens.derive_secret("mail code", f"{target_id} {now}"), "big")
    return str(number % 10**_CODE_DIGITS).zfill(_CODE_DIGITS)


async def confirm_mail_address(
    hub: HubServices, caller: HubCaller, address_id: str, code: str, origin: ActionOrigin
) -> MailAddress:
    """Use an address from now on, if the code is the one that was sent to it; raises `Problem`."""
    now, digest = hub.now(), digest_of(code.strip())
    async with hub.database.write() as connection:
        row = await _find_target(connection, caller.person_id, "smtp", address_id)
        if row["confirmed_at"] is not None:
            return to_mail_address(row)
        is_open = (
            row["code_digest"] is not None
            and row["code_expires_at"] > now
            and row["code_attempts"] < MAIL_CODE_ATTEMPTS
        )
        matches = is_open and hmac.compare_digest(row["code_digest"], digest)
        change = (
            update(notification_targets)
            .where(_targets.target_id == address_id)
            .returning(notification_targets)
        )
        values: dict[str, Any] = {"code_attempts": row["code_attempts"] + 1}
        if matches:
            values = {"confirmed_at": now, "code_digest": None, "code_expires_at": None}
            await add_audit_entry(connection, now, "mail.confirmed", origin, address_id)
        row = (await connection.execute(change.values(**values))).mappings().one()
    if not matches:
        raise Problem(
            403, "mail_code_invalid", "the code is wrong or expired; add the address again"
        )
    return to_mail_address(row)


def senders_of(hub: HubServices) -> ChannelSenders:
    """What sends for a Hub; raises `Problem` where nothing does."""
    if hub.senders is None:
        raise Problem(503, "channels_closed", "this Hub sends no notifications")
    return hub.senders


def check_target(rules: OutgoingRules, url: str) -> str:
    """The host of an address that may be sent to; raises `Problem`."""
    try:
        return rules.check(url).host
    except OutgoingRefused as error:
        raise Problem(400, error.code, str(error)) from error


async def _insert_target(
    hub: HubServices, connection: AsyncConnection, caller: HubCaller, new: NewTarget
) -> RowMapping:
    """A new target, or the one of the caller's that has the same address."""
    now, target_id = hub.now(), new_id("tgt")
    own = _targets.person_id == caller.person_id, _targets.channel == new.channel
    digest = digest_of(_address_key(new))
    query = select(notification_targets).where(*own, _targets.digest == digest)
    found = (await connection.execute(query)).mappings().one_or_none()
    if found is not None:
        sealed = hub.tokens.seal(_sealing_purpose(found["target_id"]), new.address)
        change = (
            update(notification_targets)
            .where(_targets.target_id == found["target_id"])
            .values(sealed=sealed, session_id=new.session_id)
            .returning(notification_targets)
        )
        return (await connection.execute(change)).mappings().one()
    count = select(func.count()).where(*own)
    if (await connection.execute(count)).scalar_one() >= TARGETS_PER_PERSON:
        raise Problem(
            409, "too_many_targets", f"you have {TARGETS_PER_PERSON} of these; delete one first"
        )
    change = (
        insert(notification_targets)
        .values(
            target_id=target_id,
            person_id=caller.person_id,
            channel=new.channel,
            shown=new.shown,
            sealed=hub.tokens.seal(_sealing_purpose(target_id), new.address),
            digest=digest,
            session_id=new.session_id,
            created_at=now,
            confirmed_at=now if new.is_confirmed else None,
            code_attempts=0,
        )
        .returning(notification_targets)
    )
    return (await connection.execute(change)).mappings().one()


def _address_key(new: NewTarget) -> str:
    """What makes two targets one: of a subscription its endpoint, whose keys may change."""
    if new.channel == "web_push":
        return msgspec.json.decode(new.address, type=PushTarget).endpoint
    return new.address.casefold() if new.channel == "smtp" else new.address


async def _find_target(
    connection: AsyncConnection, owner: str, channel: Channel, target_id: str
) -> RowMapping:
    query = select(notification_targets).where(
        _targets.target_id == target_id,
        _targets.person_id == owner,
        _targets.channel == channel,
    )
    row = (await connection.execute(query.with_for_update())).mappings().one_or_none()
    if row is None:
        raise unknown_target()
    return row


def unknown_target() -> Problem:
    return Problem(404, "unknown_target", "none of yours has this id")


async def find_target(connection: AsyncConnection, target_id: str) -> RowMapping | None:
    """A target, whoever has it; for the sender alone."""
    query = select(notification_targets).where(_targets.target_id == target_id)
    return (await connection.execute(query)).mappings().one_or_none()


async def drop_target(connection: AsyncConnection, target_id: str) -> None:
    """Forget a target that exists no more."""
    await connection.execute(delete(notification_targets).where(_targets.target_id == target_id))


async def delete_target(
    hub: HubServices, caller: HubCaller, channel: Channel, target_id: str, origin: ActionOrigin
) -> None:
    """Delete a target of the caller's; raises `Problem`."""
    async with hub.database.write() as connection:
        await _find_target(connection, caller.person_id, channel, target_id)
        await drop_target(connection, target_id)
        await add_audit_entry(connection, hub.now(), "target.deleted", origin, target_id)


async def list_targets(
    hub: HubServices, caller: HubCaller, channel: Channel, cursor: str | None, limit: int
) -> HubPage[RowMapping]:
    """The targets of the caller for a channel, newest first."""
    async with hub.database.read() as connection:
        query = select(notification_targets).where(
            _targets.person_id == caller.person_id, _targets.channel == channel
        )
        by = (_targets.created_at, _targets.target_id)
        rows, following = await fetch_page(connection, query, by, cursor, limit)
    return HubPage(items=rows, next=following)


def to_subscription(row: RowMapping, current: str) -> PushSubscription:
    return PushSubscription(
        subscription_id=row["target_id"],
        host=row["shown"],
        created_at=format_time(row["created_at"]),
        session_id=row["session_id"],
        current=row["session_id"] == current,
    )


def to_webhook(row: RowMapping) -> Webhook:
    return Webhook(
        webhook_id=row["target_id"], host=row["shown"], created_at=format_time(row["created_at"])
    )


def to_mail_address(row: RowMapping) -> MailAddress:
    return MailAddress(
        address_id=row["target_id"],
        address=row["shown"],
        created_at=format_time(row["created_at"]),
        confirmed_at=format_optional_time(row["confirmed_at"]),
    )
