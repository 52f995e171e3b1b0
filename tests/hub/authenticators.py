"""A passkey in software: what an authenticator and a browser do, with real keys and signatures."""

import base64
import json
import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

ORIGIN = "http://localhost:8788"
PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class SoftwarePasskey:
    """One passkey; attributes are changed by tests in which it misbehaves."""

    def __init__(self, host: str = "localhost", origin: str = ORIGIN) -> None:
        self.host = host
        self.origin = origin
        self.flags = PRESENT | VERIFIED
        self.count = 0
        self.credential_id = secrets.token_bytes(32)
        self.user_handle: bytes | None = None
        self.key = ec.generate_private_key(ec.SECP256R1())

    def create(self, options: dict[str, Any]) -> dict[str, Any]:
        """What `navigator.credentials.create` gives."""
        self.user_handle = base64.urlsafe_b64decode(options["user"]["id"] + "==")
        numbers = self.key.public_key().public_numbers()
        public = cbor2.dumps(
            {
                1: 2,
                3: -7,
                -1: 1,
                -2: numbers.x.to_bytes(32, "big"),
                -3: numbers.y.to_bytes(32, "big"),
            }
        )
        attested = bytes(16) + len(self.credential_id).to_bytes(2, "big") + self.credential_id
        data = self._authenticator_data(ATTESTED) + attested + public
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client_data("webauthn.create", options["challenge"])
        return self._to_credential(
            {"clientDataJSON": encode(client), "attestationObject": encode(attestation)}
        )

    def get(
        self, options: dict[str, Any], change: Callable[[dict[str, Any]], None] | None = None
    ) -> dict[str, Any]:
        """What `navigator.credentials.get` gives."""
        data = self._authenticator_data(0)
        client = self._client_data("webauthn.get", options["challenge"])
        signature = self.key.sign(data + sha256(client).digest(), ec.ECDSA(SHA256()))
        response = {
            "clientDataJSON": encode(client),
            "authenticatorData": encode(data),
            "signature": encode(signature),
            "userHandle": None if self.user_handle is None else encode(self.user_handle),
        }
        if change is not None:
            change(response)
        return self._to_credential(response)

    def _authenticator_data(self, further: int) -> bytes:
        flags = bytes([self.flags | further])
        return sha256(self.host.encode()).digest() + flags + self.count.to_bytes(4, "big")

    def _client_data(self, kind: str, challenge: str) -> bytes:
        fields = {"type": kind, "challenge": challenge, "origin": self.origin}
        return json.dumps({**fields, "crossOrigin": False}).encode()

    def _to_credential(self, response: dict[str, Any]) -> dict[str, Any]:
        named = encode(self.credential_id)
        return {"id": named, "rawId": named, "type": "public-key", "response": response}
