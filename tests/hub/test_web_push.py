"""Web Push: the vector of RFC 8291, a token that a push service accepts by RFC 8292, and both in
both directions with the libraries of pywebpush.
"""

import json
from importlib import import_module
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from joserfc import jwt
from joserfc.jwk import ECKey

from factwire.hub.limits import PUSH_TOKEN_SECONDS
from factwire.hub.notifications.web_push import (
    PLAINTEXT_BYTES,
    PushKeys,
    PushKeysInvalid,
    VapidKey,
    decode_base64url,
    encode_base64url,
    encrypt_message,
)
from tests.hub.push_services import BrowserKeys

# None of these has types.
http_ece: Any = import_module("http_ece")
py_vapid: Any = import_module("py_vapid")
pywebpush: Any = import_module("pywebpush")

pytestmark = pytest.mark.requirement("hub.push")

CLIENT_KEY = (
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
)
CLIENT_SECRET = "BTBZMqHH6r4Tts7J_aSIgg"
ENCRYPTED = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27ml"
    "mlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT"
    "pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def test_the_example_of_the_rfc_is_encrypted_to_the_same_bytes():
    private = int.from_bytes(decode_base64url("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"), "big")
    body = encrypt_message(
        PushKeys.parse(CLIENT_KEY, CLIENT_SECRET),
        b"When I grow up, I want to be a watermelon",
        salt=decode_base64url("DGv6ra1nlYgDCS1FRnbzlw"),
        sender=ec.derive_private_key(private, ec.SECP256R1()),
    )
    assert encode_base64url(body) == ENCRYPTED


def test_a_browser_reads_what_was_encrypted_for_it_and_no_other_does():
    browser, other = BrowserKeys(), BrowserKeys()
    keys = PushKeys.parse(browser.p256dh, browser.auth)
    for size in (0, 1, 200, PLAINTEXT_BYTES):
        body = encrypt_message(keys, b"x" * size)
        assert len(body) <= 4_096
        assert browser.decrypt(body) == b"x" * size
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever the cipher raises
            other.decrypt(body)
    with pytest.raises(ValueError, match="at most"):
        encrypt_message(keys, b"x" * (PLAINTEXT_BYTES + 1))
    assert encrypt_message(keys, b"x") != encrypt_message(keys, b"x")


@pytest.mark.parametrize(
    ("p256dh", "auth"),
    [
        ("", CLIENT_SECRET),
        (CLIENT_KEY, ""),
        (CLIENT_KEY, "c2hvcnQ"),
        (CLIENT_KEY[:-4], CLIENT_SECRET),
        ("B" + "A" * 86, CLIENT_SECRET),
        ("!" * 87, CLIENT_SECRET),
        (CLIENT_KEY, "é" * 22),
    ],
)
def test_keys_that_no_browser_makes_are_refused(p256dh: str, auth: str):
    with pytest.raises(PushKeysInvalid):
        PushKeys.parse(p256dh, auth)


def test_a_push_service_can_verify_who_sends():
    key = VapidKey(b"\x07" * 32)
    assert VapidKey(b"\x07" * 32).public_key == key.public_key != VapidKey(b"\x08" * 32).public_key
    header = key.authorize("https://push.example", "mailto:ops@hub.example", 1_790_000_000)
    scheme, _, rest = header.partition(" ")
    fields = dict(part.split("=", 1) for part in rest.split(","))
    point = decode_base64url(fields["k"])
    assert (scheme, len(point), point[0]) == ("vapid", 65, 4)
    public = ECKey.import_key(
        {
            "kty": "EC",
            "crv": "P-256",
            "x": encode_base64url(point[1:33]),
            "y": encode_base64url(point[33:]),
        }
    )
    token = jwt.decode(fields["t"], public, algorithms=["ES256"])
    assert token.header == {"alg": "ES256", "typ": "JWT"}
    assert token.claims == {
        "aud": "https://push.example",
        "exp": 1_790_000_000 + PUSH_TOKEN_SECONDS,
        "sub": "mailto:ops@hub.example",
    }


@pytest.mark.parametrize("size", [1, 200, PLAINTEXT_BYTES])
def test_another_library_reads_what_is_encrypted_here_and_is_read(size: int):
    browser, plaintext = BrowserKeys(), b"x" * size
    ours = encrypt_message(PushKeys.parse(browser.p256dh, browser.auth), plaintext)
    secrets = {"private_key": browser.private_key, "auth_secret": browser.secret}
    assert http_ece.decrypt(ours, **secrets) == plaintext
    with pytest.raises(http_ece.ECEException):
        http_ece.decrypt(ours[:-1] + bytes([ours[-1] ^ 1]), **secrets)
    keys = {"p256dh": browser.p256dh, "auth": browser.auth}
    pusher = pywebpush.WebPusher({"endpoint": "https://push.example/1", "keys": keys})
    theirs: bytes = pusher.encode(plaintext)["body"]
    assert browser.decrypt(theirs) == plaintext
    # Salt, record size, and the length of the key that was used once.
    assert (len(theirs), theirs[16:21]) == (len(ours), ours[16:21])


def test_another_library_verifies_who_sends_and_signs_the_same():
    key, library = VapidKey(b"\x07" * 32), py_vapid.Vapid02
    header = key.authorize("https://push.example", "mailto:ops@hub.example", 1_790_000_000)
    assert library.verify(header)
    assert not library.verify(header.replace(key.public_key, VapidKey(b"\x08" * 32).public_key))
    signer = library.from_pem(key._signing.as_pem(private=True))
    claims = {
        "aud": "https://push.example",
        "exp": 1_790_000_000 + PUSH_TOKEN_SECONDS,
        "sub": "mailto:ops@hub.example",
    }
    theirs: str = signer.sign(claims)["Authorization"]
    ours_signed, theirs_signed = (each.rpartition(".")[0] for each in (header, theirs))
    assert _claims_in(ours_signed) == _claims_in(theirs_signed) == claims
    assert theirs.rpartition("k=")[2] == key.public_key


def _claims_in(signed: str) -> Any:
    return json.loads(decode_base64url(signed.rpartition(".")[2]))
