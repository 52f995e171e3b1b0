"""What the REST interface says about notifications, and what it is asked with."""

from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec

from factwire.hub.hub_resources import HubBody, HubPage, HubResource
from factwire.hub.records.notification_tables import Channel, DeliveryState

T = TypeVar("T")

ChannelUse = Literal["always", "fallback", "off"]
"""When a channel is used: at once, when nobody has acknowledged by another, or never."""

_URL_CHARACTERS = 2_048
_KEY_CHARACTERS = 200
_ADDRESS_CHARACTERS = 254


class CurrentPage(HubPage[T], Generic[T], frozen=True, kw_only=True):
    """A page that is true as of a cursor: with the events after it, it stays true."""

    as_of: str


class HubNotification(HubResource, frozen=True, kw_only=True):
    """Something that a person should know. `payload` has ids alone. `closedAt` says that there is
    nothing left to do about it.
    """

    notification_id: str
    type: str
    title: str
    payload: dict[str, str]
    created_at: str
    expires_at: str
    seen_at: str | None = None
    opened_at: str | None = None
    closed_at: str | None = None


class LedgerEntry(HubResource, frozen=True, kw_only=True):
    """One channel and target of a notification, and what came of it. `delivered` means that the
    other side acknowledged: a screen, the push service, the webhook or the mail server. `code` says
    why an attempt failed.
    """

    delivery_id: str
    channel: Channel
    state: DeliveryState
    attempts: int
    target_id: str | None = None
    tried_at: str | None = None
    next_try_at: str | None = None
    delivered_at: str | None = None
    opened_at: str | None = None
    ended_at: str | None = None
    code: str | None = None


class NotificationWithLedger(HubNotification, frozen=True, kw_only=True):
    ledger: list[LedgerEntry]
    as_of: str


class QuietHours(HubBody, frozen=True, kw_only=True):
    """From `start` to `end` on the clock of a time zone, pushes and mails wait, but for some
    types.
    """

    start: Annotated[str, msgspec.Meta(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
    end: Annotated[str, msgspec.Meta(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
    time_zone: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    exceptions: Annotated[tuple[str, ...], msgspec.Meta(max_length=20)] = ()


class NotificationSettings(HubBody, frozen=True, kw_only=True):
    """For each type, when each channel is used. A screen that is connected is always told."""

    channels: dict[str, dict[Literal["web_push", "webhook", "smtp"], ChannelUse]] = msgspec.field(
        default_factory=dict[str, Any]
    )
    quiet_hours: QuietHours | None = None


class Acknowledgement(HubBody, frozen=True, kw_only=True):
    """By which channel a person came to a notification."""

    channel: Channel = "socket"


class PushSubscriptionKeys(HubBody, frozen=True, kw_only=True):
    p256dh: Annotated[str, msgspec.Meta(min_length=1, max_length=_KEY_CHARACTERS)]
    auth: Annotated[str, msgspec.Meta(min_length=1, max_length=_KEY_CHARACTERS)]


class PushSubscriptionBody(HubBody, frozen=True, kw_only=True):
    """A subscription as a browser's `PushSubscription.toJSON()` has it."""

    endpoint: Annotated[str, msgspec.Meta(min_length=1, max_length=_URL_CHARACTERS)]
    keys: PushSubscriptionKeys
    expiration_time: float | None = None


class WebhookBody(HubBody, frozen=True, kw_only=True):
    url: Annotated[str, msgspec.Meta(min_length=1, max_length=_URL_CHARACTERS)]


class MailAddressBody(HubBody, frozen=True, kw_only=True):
    address: Annotated[str, msgspec.Meta(min_length=3, max_length=_ADDRESS_CHARACTERS)]


class MailCode(HubBody, frozen=True, kw_only=True):
    code: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class PushSubscription(HubResource, frozen=True, kw_only=True):
    """A browser that is pushed to; `current` is the one of the session that asks."""

    subscription_id: str
    host: str
    created_at: str
    session_id: str
    current: bool = False


class Webhook(HubResource, frozen=True, kw_only=True):
    webhook_id: str
    host: str
    created_at: str


class CreatedWebhook(Webhook, frozen=True, kw_only=True):
    """The only answer with the secret by which its requests are signed."""

    secret: str


class MailAddress(HubResource, frozen=True, kw_only=True):
    """An address is used once it is confirmed."""

    address_id: str
    address: str
    created_at: str
    confirmed_at: str | None = None


class PushKey(HubResource, frozen=True, kw_only=True):
    """The key of this Hub for `applicationServerKey` of a push subscription."""

    public_key: str
