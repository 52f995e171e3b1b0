"""What people are told about, when each channel is used for it, and when it has to wait.

`NOTIFICATION_KINDS` is the one table of types. Settings hold what differs from it. Quiet hours are
on the clock of the person's time zone, so that they begin and end at the same time of day on both
sides of a change of the clocks.
"""

from datetime import UTC, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.hub.notifications.notification_resources import (
    ChannelUse,
    NotificationSettings,
    QuietHours,
)
from factwire.hub.records.notification_tables import Channel, notification_settings
from factwire.serving.asgi import Problem

_MILLISECONDS: Final = 1_000

CHANNELS: Final[tuple[Channel, ...]] = ("socket", "web_push", "webhook", "smtp")
"""All channels, in the order in which one is used after another."""

QUIET_CHANNELS: Final[frozenset[Channel]] = frozenset({"web_push", "smtp"})
"""What would wake somebody; a screen and a program would not."""


class NotificationKind(msgspec.Struct, frozen=True, kw_only=True):
    """A type of notification: how urgent a push is (RFC 8030), and when channels are used."""

    urgency: str = "normal"
    web_push: ChannelUse = "always"
    webhook: ChannelUse = "always"
    smtp: ChannelUse = "fallback"

    def use_of(self, channel: Channel) -> ChannelUse:
        return "always" if channel == "socket" else getattr(self, channel)


NOTIFICATION_KINDS: Final[dict[str, NotificationKind]] = {
    "approval": NotificationKind(urgency="high"),
    "test": NotificationKind(smtp="always"),
}
"""Type → how people are told about it."""


def use_of_channel(settings: NotificationSettings, kind: str, channel: Channel) -> ChannelUse:
    """When a channel is used for a type, by a person's settings or else by default."""
    if channel == "socket":
        return "always"
    own = settings.channels.get(kind, {})
    return own.get(channel, NOTIFICATION_KINDS[kind].use_of(channel))


async def read_settings(connection: AsyncConnection, person_id: str) -> NotificationSettings:
    """A person's own settings; what they left alone is not in them."""
    query = select(notification_settings).where(notification_settings.c.person_id == person_id)
    row = (await connection.execute(query)).mappings().one_or_none()
    if row is None:
        return NotificationSettings()
    quiet = row["quiet_hours"]
    return NotificationSettings(
        channels=msgspec.json.decode(row["channels"]),
        quiet_hours=None if quiet is None else msgspec.json.decode(quiet, type=QuietHours),
    )


def complete_settings(settings: NotificationSettings) -> NotificationSettings:
    """Settings with what holds by default, for every type and channel."""
    return NotificationSettings(
        channels={
            kind: {
                channel: use_of_channel(settings, kind, channel)
                for channel in CHANNELS
                if channel != "socket"
            }
            for kind in NOTIFICATION_KINDS
        },
        quiet_hours=settings.quiet_hours,
    )


async def save_settings(
    connection: AsyncConnection, person_id: str, settings: NotificationSettings
) -> None:
    """Put settings in the place of those before; raises `Problem`."""
    unknown = sorted(set(settings.channels) - NOTIFICATION_KINDS.keys())
    quiet = settings.quiet_hours
    if quiet is not None:
        unknown += sorted(set(quiet.exceptions) - NOTIFICATION_KINDS.keys())
        _find_zone(quiet.time_zone)
    if unknown:
        raise Problem(
            400,
            "notification_type_unknown",
            f"expected types among {', '.join(NOTIFICATION_KINDS)}",
        )
    values: dict[str, Any] = {
        "channels": msgspec.json.encode(settings.channels).decode(),
        "quiet_hours": None if quiet is None else msgspec.json.encode(quiet).decode(),
    }
    change = update(notification_settings).where(notification_settings.c.person_id == person_id)
    if (await connection.execute(change.values(**values))).rowcount == 0:
        own = insert(notification_settings).values(person_id=person_id, **values)
        await connection.execute(own)


def _find_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Problem(
            400, "time_zone_unknown", "expected a time zone such as Europe/Vienna"
        ) from error


def find_quiet_end(quiet: QuietHours | None, kind: str, now: int) -> int | None:
    """When the quiet hours end in which a time is; None where it is in none."""
    if quiet is None or kind in quiet.exceptions or quiet.start == quiet.end:
        return None
    local = datetime.fromtimestamp(now / _MILLISECONDS, UTC).astimezone(_find_zone(quiet.time_zone))
    start, end = time.fromisoformat(quiet.start), time.fromisoformat(quiet.end)
    clock = local.time().replace(second=0, microsecond=0)
    overnight = start > end
    is_quiet = (clock >= start or clock < end) if overnight else start <= clock < end
    if not is_quiet:
        return None
    ends = local.date() + timedelta(days=1) if overnight and clock >= start else local.date()
    moment = datetime.combine(ends, end, tzinfo=local.tzinfo)
    return int(moment.timestamp() * _MILLISECONDS)
