"""How a notification leaves the Hub: as a push, a webhook or a mail.

Each sender answers with what the other side acknowledged, or with a code. None of them is told more
than an id, a type and a title; what a notification is about is read after signing in. Pushes go to
push services that are listed, webhooks to the public internet, mails to the operator's server.
"""

import asyncio
import base64
import hmac
import os
import smtplib
import ssl
from email.message import EmailMessage
from email.utils import formatdate
from typing import Any, Final

import httpx
import msgspec

from factwire import __version__
from factwire.hub.limits import MAIL_SECONDS
from factwire.hub.notifications.web_push import (
    PUSH_HOSTS,
    PushKeys,
    VapidKey,
    encrypt_message,
)
from factwire.runtime.configuration import HubSettings, MailSettings
from factwire.serving.outgoing_requests import (
    OutgoingAnswer,
    OutgoingError,
    OutgoingHttp,
    OutgoingRefused,
    OutgoingRules,
)

_MILLISECONDS: Final = 1_000
_GONE: Final = (404, 410)
_BUSY: Final = (408, 425, 429)
_SERVER_ERROR: Final = 500
_MOST_RETRY_DIGITS: Final = 6

WEBHOOK_SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - what a secret begins with

DELIVERY_CODES: Final[dict[str, str]] = {
    "mail_disabled": "the Hub has no mail server",
    "mail_failed": "the mail server did not answer, or refused for now",
    "mail_refused": "the mail server refused the mail for good",
    "target_gone": "the subscription or the address exists no more",
    "target_unreadable": "the target was stored with another key of the Hub; add it again",
}
"""Code → why a delivery failed, beside the codes of requests to others and `http_STATUS`."""


class MailPasswordMissing(Exception):
    """Mails cannot be sent, because the variable with the password is not set."""

    code = "mail_password_missing"


class PushTarget(msgspec.Struct, frozen=True, kw_only=True):
    """How a browser is reached."""

    endpoint: str
    p256dh: str
    auth: str


class OutgoingNotification(msgspec.Struct, frozen=True, kw_only=True):
    """All that leaves the Hub about a notification."""

    notification_id: str
    type: str
    title: str
    urgency: str
    seconds_left: int

    def to_body(self) -> bytes:
        return msgspec.json.encode(
            {"id": self.notification_id, "type": self.type, "title": self.title}
        )


class SendOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt came to. Without a code it was acknowledged; `is_gone` says that the target
    exists no more.
    """

    code: str | None = None
    is_final: bool = False
    is_gone: bool = False
    retry_after: int | None = None


class ChannelSenders:
    """Sends by every channel that leaves the Hub; raises `MailPasswordMissing` at once."""

    def __init__(
        self, settings: HubSettings, url: str, vapid: VapidKey, http: OutgoingHttp | None = None
    ) -> None:
        self.vapid = vapid
        self.push_rules = OutgoingRules(hosts=PUSH_HOSTS, trusted=frozenset(settings.push_hosts))
        self.webhook_rules = OutgoingRules(trusted=frozenset(settings.webhook_hosts))
        self.mail = settings.mail
        self._mail_password = _read_password(settings.mail)
        self.http = http or OutgoingHttp()
        self._url = url

    async def push(
        self, target: PushTarget, message: OutgoingNotification, now: int
    ) -> SendOutcome:
        """Hand a message to the push service of a browser."""
        endpoint = httpx.URL(target.endpoint)
        origin = f"{endpoint.scheme}://{endpoint.netloc.decode('ascii')}"
        contact = f"mailto:{self.mail.sender}" if self.mail is not None else self._url
        body = encrypt_message(PushKeys.parse(target.p256dh, target.auth), message.to_body())
        headers = {
            "authorization": self.vapid.authorize(origin, contact, now // _MILLISECONDS),
            "content-encoding": "aes128gcm",
            "content-type": "application/octet-stream",
            "ttl": str(message.seconds_left),
            "urgency": message.urgency,
            # Of two attempts that both arrive, the later one replaces the one before.
            "topic": message.notification_id[-32:],
        }
        return await self._post(target.endpoint, self.push_rules, headers, body)

    async def call_webhook(
        self, url: str, secret: bytes, message: OutgoingNotification, now: int
    ) -> SendOutcome:
        """Send a message to somebody's own server, signed as Standard Webhooks say."""
        body, at = message.to_body(), str(now // _MILLISECONDS)
        signature = sign_webhook(secret, message.notification_id, at, body)
        headers = {
            "content-type": "application/json",
            "user-agent": f"factwire-hub/{__version__}",
            "webhook-id": message.notification_id,
            "webhook-timestamp": at,
            "webhook-signature": signature,
        }
        return await self._post(url, self.webhook_rules, headers, body)

    async def send_notice(
        self, address: str, message: OutgoingNotification, now: int
    ) -> SendOutcome:
        """Mail a title, and where to read on."""
        text = f"{message.title}\n\nSign in to read on: {self._url}\n"
        return await self.send_mail(address, message.title, text, message.notification_id, now)

    async def send_mail(
        self, address: str, subject: str, text: str, message_id: str, now: int
    ) -> SendOutcome:
        """Hand a mail to the operator's server, which acknowledges that it has it."""
        if self.mail is None:
            return SendOutcome(code="mail_disabled", is_final=True)
        mail = EmailMessage()
        mail["From"] = self.mail.sender
        mail["To"] = address
        mail["Subject"] = subject
        mail["Date"] = formatdate(now / _MILLISECONDS)
        # The same mail again has the same id, by which a reader shows it once.
        mail["Message-ID"] = f"<{message_id}@{self.mail.sender.rpartition('@')[2]}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(text)
        return await asyncio.to_thread(hand_to_server, self.mail, self._mail_password, mail)

    async def _post(
        self, url: str, rules: OutgoingRules, headers: dict[str, str], body: bytes
    ) -> SendOutcome:
        try:
            answer = await self.http.request("POST", url, rules, headers=headers, content=body)
        except OutgoingError as error:
            return SendOutcome(code=error.code, is_final=isinstance(error, OutgoingRefused))
        return judge_answer(answer)


def judge_answer(answer: OutgoingAnswer) -> SendOutcome:
    """What an answer means: only 2xx is an acknowledgement."""
    status = answer.status
    if 200 <= status < 300:  # noqa: PLR2004 - what a status says by its first digit
        return SendOutcome()
    if status in _GONE:
        return SendOutcome(code="target_gone", is_final=True, is_gone=True)
    is_final = status not in _BUSY and status < _SERVER_ERROR
    waits = answer.headers.get("retry-after", "")
    is_number = waits.isascii() and waits.isdigit() and len(waits) <= _MOST_RETRY_DIGITS
    return SendOutcome(
        code=f"http_{status}", is_final=is_final, retry_after=int(waits) if is_number else None
    )


def sign_webhook(secret: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    """The header `webhook-signature` of a request."""
    signed = b".".join((message_id.encode(), timestamp.encode(), body))
    return f"v1,{base64.b64encode(hmac.digest(secret, signed, 'sha256')).decode()}"


def _read_password(settings: MailSettings | None) -> str:
    """The password for the mail server, empty where it needs none; raises `MailPasswordMissing`."""
    if settings is None or settings.password_env is None:
        return ""
    password = os.environ.get(settings.password_env)
    if not password:
        raise MailPasswordMissing(
            f"hub.mail.password_env names {settings.password_env}, which is not set"
        )
    return password


def hand_to_server(settings: MailSettings, password: str, mail: EmailMessage) -> SendOutcome:
    """Give a mail to the server; blocks, so it belongs into a thread."""
    context = ssl.create_default_context()
    connect: Any = smtplib.SMTP
    options: dict[str, Any] = {"timeout": MAIL_SECONDS}
    if settings.security == "tls":
        connect, options = smtplib.SMTP_SSL, {**options, "context": context}
    try:
        with connect(settings.host, settings.port, **options) as server:
            if settings.security == "starttls":
                server.starttls(context=context)
            if settings.user is not None:
                server.login(settings.user, password)
            server.send_message(mail)
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        return _to_mail_failure(min(codes, default=_SERVER_ERROR))
    except smtplib.SMTPResponseException as error:
        return _to_mail_failure(error.smtp_code)
    except (smtplib.SMTPException, OSError):
        return SendOutcome(code="mail_failed")
    return SendOutcome()


def _to_mail_failure(code: int) -> SendOutcome:
    """A server's refusal: from 500 on it is for good."""
    if code >= _SERVER_ERROR:
        return SendOutcome(code="mail_refused", is_final=True)
    return SendOutcome(code="mail_failed")
