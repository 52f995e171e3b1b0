"""What is at the other end of a notification: a browser with its push service, somebody's server
for webhooks, and a mail server; all on loopback.
"""

import asyncio
import hmac
import socket
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from aiosmtpd.smtp import SMTP, Envelope, Session
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from factwire.hub.notifications.web_push import encode_base64url

WAIT_SECONDS = 60.0


class BrowserKeys:
    """The keys of a subscription, with the half that never leaves the browser."""

    def __init__(self) -> None:
        self.private_key = ec.generate_private_key(ec.SECP256R1())
        self.secret = b"0123456789abcdef"
        self._public = self.private_key.public_key().public_bytes(
            Encoding.X962, PublicFormat.UncompressedPoint
        )
        self.p256dh = encode_base64url(self._public)
        self.auth = encode_base64url(self.secret)

    def decrypt(self, body: bytes) -> bytes:
        """As a browser does it, with the library's own key derivation."""
        salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        sender, record = body[21 : 21 + length], body[21 + length :]
        assert len(record) <= size
        point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        shared = self.private_key.exchange(ec.ECDH(), point)
        info = b"WebPush: info\0" + self._public + sender
        secret = HKDF(SHA256(), 32, self.secret, info).derive(shared)
        key = HKDF(SHA256(), 16, salt, b"Content-Encoding: aes128gcm\0").derive(secret)
        nonce = HKDF(SHA256(), 12, salt, b"Content-Encoding: nonce\0").derive(secret)
        plain = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\0")
        assert plain[-1:] == b"\x02"
        return plain[:-1]


class ReceivedRequest:
    def __init__(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.path = path
        self.headers = headers
        self.body = body

    def is_signed_with(self, secret: str) -> bool:
        """Whether a webhook is signed as its sender said, by Standard Webhooks."""
        key = b64decode(secret.removeprefix("whsec_"))
        signed = (
            f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode()
            + self.body
        )
        wanted = b64encode(hmac.digest(key, signed, "sha256")).decode()
        return self.headers["webhook-signature"] == f"v1,{wanted}"


class Receiver:
    """A server that answers what a test says, by path, and keeps what it got."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.statuses: dict[str, int] = {}
        self.headers: dict[str, str] = {}
        self.received: list[ReceivedRequest] = []

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        return f"http://{self.host}{path}"

    def at(self, path: str) -> list[ReceivedRequest]:
        return [each for each in self.received if each.path == path]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.received.append(ReceivedRequest(scope["path"], headers, body))
        sent = [(name.encode(), value.encode()) for name, value in self.headers.items()]
        status = self.statuses.get(scope["path"], 201)
        await send({"type": "http.response.start", "status": status, "headers": sent})
        await send({"type": "http.response.body", "body": b"x" * 100_000})


@asynccontextmanager
async def running_receiver() -> AsyncGenerator[Receiver]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        receiver = Receiver(listening.getsockname()[1])
        config = uvicorn.Config(
            receiver, loop="none", lifespan="off", log_config=None, log_level="warning"
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listening]))
        try:
            yield receiver
        finally:
            server.should_exit = True
            await asyncio.wait_for(serving, WAIT_SECONDS)


class MailBox:
    """What a mail server got; it answers what a test says."""

    def __init__(self) -> None:
        self.mails: list[str] = []
        self.answer = "250 OK"
        self.port = 0

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - the library's name
        del server, session
        content = envelope.content
        assert isinstance(content, bytes)
        if self.answer.startswith("250"):
            self.mails.append(content.decode())
        return self.answer


@asynccontextmanager
async def running_mail_server() -> AsyncGenerator[MailBox]:
    box = MailBox()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(box, loop=loop), "127.0.0.1", 0)
    box.port = server.sockets[0].getsockname()[1]
    try:
        yield box
    finally:
        server.close()
