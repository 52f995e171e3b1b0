"""Notifications with their ledger, settings, and where people are reached."""

from litestar import delete, get, post, put
from litestar.params import FromPath, JSONBody
from litestar.status_codes import HTTP_200_OK, HTTP_201_CREATED, HTTP_204_NO_CONTENT

from factwire.hub.approvals.approval_decisions import note_notification_seen
from factwire.hub.hub_resources import HubPage
from factwire.hub.limits import MAILS_PER_MINUTE
from factwire.hub.notifications import (
    notification_ledger,
    notification_settings,
    notification_targets,
)
from factwire.hub.notifications.notification_ledger import Acknowledger, NewNotification
from factwire.hub.notifications.notification_resources import (
    Acknowledgement,
    CreatedWebhook,
    CurrentPage,
    HubNotification,
    MailAddress,
    MailAddressBody,
    MailCode,
    NotificationSettings,
    NotificationWithLedger,
    PushKey,
    PushSubscription,
    PushSubscriptionBody,
    Webhook,
    WebhookBody,
)
from factwire.hub.request_rates import Rate
from factwire.hub.routes.hub_requests import (
    HubRequest,
    RouteGroup,
    caller_of,
    clean_id,
    origin_of,
    services_of,
)
from factwire.serving.outgoing_requests import OUTGOING_CODES
from factwire.serving.paging import DEFAULT_LIMIT, After, Limit


@get("/v1/notifications", tags=["notifications"])
async def list_notifications(
    request: HubRequest, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> CurrentPage[HubNotification]:
    """List your notifications, newest first. With the events after `asOf`, the list stays true."""
    async with services_of(request).database.read() as connection:
        return await notification_ledger.list_notifications(
            connection, caller_of(request).person_id, after, limit
        )


@get("/v1/notifications/{notification_id:str}", tags=["notifications"])
async def read_notification(
    request: HubRequest, notification_id: FromPath[str]
) -> NotificationWithLedger:
    """Get a notification with its ledger: what was tried on each channel, and what came of it."""
    async with services_of(request).database.read() as connection:
        return await notification_ledger.read_notification(
            connection, caller_of(request).person_id, clean_id(notification_id)
        )


async def _acknowledge(
    request: HubRequest, notification_id: str, data: Acknowledgement, *, opened: bool
) -> HubNotification:
    caller = caller_of(request)
    who = Acknowledger(
        person_id=caller.person_id, session_id=caller.session_id, channel=data.channel
    )
    async with services_of(request).events.change() as change:
        shown = await notification_ledger.acknowledge(
            change, who, clean_id(notification_id), opened=opened
        )
        await note_notification_seen(change, caller, data.channel, shown.payload)
    return shown


@post(
    "/v1/notifications/{notification_id:str}/seen",
    status_code=HTTP_200_OK,
    tags=["notifications"],
)
async def see_notification(
    request: HubRequest, notification_id: FromPath[str], data: JSONBody[Acknowledgement]
) -> HubNotification:
    """Acknowledge that a notification was seen on this screen; what waits on other channels is not
    sent any more.
    """
    return await _acknowledge(request, notification_id, data, opened=False)


@post(
    "/v1/notifications/{notification_id:str}/opened",
    status_code=HTTP_200_OK,
    tags=["notifications"],
)
async def open_notification(
    request: HubRequest, notification_id: FromPath[str], data: JSONBody[Acknowledgement]
) -> HubNotification:
    """Acknowledge that a notification was opened, and by which channel somebody came to it."""
    return await _acknowledge(request, notification_id, data, opened=True)


@post("/v1/notifications/test", status_code=HTTP_201_CREATED, tags=["notifications"])
async def send_test(request: HubRequest) -> NotificationWithLedger:
    """Send yourself a notification by every channel, and see in its ledger which ones arrive."""
    person_id = caller_of(request).person_id
    new = NewNotification(kind="test", title="A test of your notifications", payload={})
    async with services_of(request).events.change() as change:
        made = await notification_ledger.notify(change, person_id, new)
    async with services_of(request).database.read() as connection:
        return await notification_ledger.read_notification(connection, person_id, made)


@get("/v1/me/notification-settings", tags=["notifications"])
async def read_settings(request: HubRequest) -> NotificationSettings:
    """Get when each channel is used for each type, and your quiet hours."""
    async with services_of(request).database.read() as connection:
        own = await notification_settings.read_settings(connection, caller_of(request).person_id)
    return notification_settings.complete_settings(own)


@put("/v1/me/notification-settings", tags=["notifications"])
async def change_settings(
    request: HubRequest, data: JSONBody[NotificationSettings]
) -> NotificationSettings:
    """Set when each channel is used; what is left out is as by default."""
    async with services_of(request).database.write() as connection:
        await notification_settings.save_settings(connection, caller_of(request).person_id, data)
    return notification_settings.complete_settings(data)


@get("/v1/push/key", tags=["notifications"])
async def read_push_key(request: HubRequest) -> PushKey:
    """Get the public key of this Hub for a push subscription."""
    return PushKey(
        public_key=notification_targets.senders_of(services_of(request)).vapid.public_key
    )


@get("/v1/push/subscriptions", tags=["notifications"])
async def list_subscriptions(
    request: HubRequest, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> HubPage[PushSubscription]:
    """List the browsers that your notifications are pushed to, newest first."""
    caller = caller_of(request)
    rows = await notification_targets.list_targets(
        services_of(request), caller, "web_push", after, limit
    )
    items = [notification_targets.to_subscription(row, caller.session_id) for row in rows.items]
    return HubPage(items=items, next=rows.next)


@post("/v1/push/subscriptions", status_code=HTTP_201_CREATED, tags=["notifications"])
async def create_subscription(
    request: HubRequest, data: JSONBody[PushSubscriptionBody]
) -> PushSubscription:
    """Have notifications pushed to this browser, until it is signed out."""
    return await notification_targets.add_push_subscription(
        services_of(request), caller_of(request), data
    )


@delete(
    "/v1/push/subscriptions/{subscription_id:str}",
    status_code=HTTP_204_NO_CONTENT,
    tags=["notifications"],
)
async def delete_subscription(request: HubRequest, subscription_id: FromPath[str]) -> None:
    """Push to a browser no more."""
    await _delete_target(request, "web_push", subscription_id)


@get("/v1/webhooks", tags=["notifications"])
async def list_webhooks(
    request: HubRequest, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> HubPage[Webhook]:
    """List your webhooks, newest first; never an address or a secret."""
    rows = await notification_targets.list_targets(
        services_of(request), caller_of(request), "webhook", after, limit
    )
    return HubPage(items=list(map(notification_targets.to_webhook, rows.items)), next=rows.next)


@post("/v1/webhooks", status_code=HTTP_201_CREATED, tags=["notifications"])
async def create_webhook(request: HubRequest, data: JSONBody[WebhookBody]) -> CreatedWebhook:
    """Have notifications sent to a server of yours. The response is the only one with the secret
    that the requests are signed with.
    """
    return await notification_targets.add_webhook(
        services_of(request), caller_of(request), data.url, origin_of(request)
    )


@delete("/v1/webhooks/{webhook_id:str}", status_code=HTTP_204_NO_CONTENT, tags=["notifications"])
async def delete_webhook(request: HubRequest, webhook_id: FromPath[str]) -> None:
    """Delete one of your webhooks."""
    await _delete_target(request, "webhook", webhook_id)


@get("/v1/me/mail-addresses", tags=["notifications"])
async def list_mail_addresses(
    request: HubRequest, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> HubPage[MailAddress]:
    """List your mail addresses, newest first."""
    rows = await notification_targets.list_targets(
        services_of(request), caller_of(request), "smtp", after, limit
    )
    items = list(map(notification_targets.to_mail_address, rows.items))
    return HubPage(items=items, next=rows.next)


@post("/v1/me/mail-addresses", status_code=HTTP_201_CREATED, tags=["notifications"])
async def create_mail_address(request: HubRequest, data: JSONBody[MailAddressBody]) -> MailAddress:
    """Add a mail address, and send it a code; it is used once the code was entered."""
    return await notification_targets.add_mail_address(
        services_of(request), caller_of(request), data.address, origin_of(request)
    )


@post(
    "/v1/me/mail-addresses/{address_id:str}/confirm",
    status_code=HTTP_200_OK,
    tags=["notifications"],
)
async def confirm_mail_address(
    request: HubRequest, address_id: FromPath[str], data: JSONBody[MailCode]
) -> MailAddress:
    """Enter the code that was sent to a mail address."""
    return await notification_targets.confirm_mail_address(
        services_of(request),
        caller_of(request),
        clean_id(address_id),
        data.code,
        origin_of(request),
    )


@delete(
    "/v1/me/mail-addresses/{address_id:str}",
    status_code=HTTP_204_NO_CONTENT,
    tags=["notifications"],
)
async def delete_mail_address(request: HubRequest, address_id: FromPath[str]) -> None:
    """Delete one of your mail addresses."""
    await _delete_target(request, "smtp", address_id)


async def _delete_target(
    request: HubRequest, channel: notification_targets.Channel, target_id: str
) -> None:
    await notification_targets.delete_target(
        services_of(request), caller_of(request), channel, clean_id(target_id), origin_of(request)
    )


GROUP = RouteGroup(
    handlers=[
        list_notifications,
        read_notification,
        see_notification,
        open_notification,
        send_test,
        read_settings,
        change_settings,
        read_push_key,
        list_subscriptions,
        create_subscription,
        delete_subscription,
        list_webhooks,
        create_webhook,
        delete_webhook,
        list_mail_addresses,
        create_mail_address,
        confirm_mail_address,
        delete_mail_address,
    ],
    access={
        "viewer": """
            GET /v1/notifications
            GET /v1/notifications/{notification_id}
            POST /v1/notifications/{notification_id}/seen
            POST /v1/notifications/{notification_id}/opened
            POST /v1/notifications/test
            GET /v1/me/notification-settings
            PUT /v1/me/notification-settings
            GET /v1/push/key
            GET /v1/push/subscriptions
            POST /v1/push/subscriptions
            DELETE /v1/push/subscriptions/{subscription_id}
            GET /v1/webhooks
            POST /v1/webhooks
            DELETE /v1/webhooks/{webhook_id}
            GET /v1/me/mail-addresses
            POST /v1/me/mail-addresses
            POST /v1/me/mail-addresses/{address_id}/confirm
            DELETE /v1/me/mail-addresses/{address_id}
        """
    },
    rates={
        "POST /v1/notifications/test": Rate("test notification", MAILS_PER_MINUTE),
        "POST /v1/me/mail-addresses": Rate("mail address", MAILS_PER_MINUTE),
    },
    codes={
        **{
            code: OUTGOING_CODES[code]
            for code in (
                "target_address",
                "target_host",
                "target_invalid",
                "target_port",
                "target_scheme",
            )
        },
        "channels_closed": "this Hub sends no notifications",
        "mail_address_invalid": "the mail address is not one that mail servers take",
        "mail_code_invalid": "the code for a mail address is wrong or expired",
        "mail_disabled": "the Hub has no mail server",
        "mail_not_sent": "the mail server did not take the mail with the code",
        "notification_type_unknown": "a setting names a type of notification that there is not",
        "push_keys_invalid": "the keys of a push subscription are not what a browser makes",
        "time_zone_unknown": "the time zone of the quiet hours is unknown",
        "too_many_targets": "there are as many subscriptions, webhooks or addresses as may be",
        "unknown_notification": "none of your notifications has this id",
        "unknown_target": "none of your subscriptions, webhooks or addresses has this id",
    },
    ids={
        "PushSubscription": "subscriptionId",
        "CreatedWebhook": "webhookId",
        "MailAddress": "addressId",
        "NotificationWithLedger": "notificationId",
    },
    listed={
        "HubNotificationPage": "notificationId",
        "PushSubscriptionPage": "subscriptionId",
        "WebhookPage": "webhookId",
        "MailAddressPage": "addressId",
    },
)
