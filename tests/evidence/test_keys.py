"""Keys are private, never written over, and only a reader's own list says whose they are."""

import base64
import stat
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from factwire.evidence import (
    KeyProblem,
    build_trust_list,
    create_key,
    encode_public_key,
    fingerprint,
    load_key,
    load_known_trust,
    load_trust,
)
from factwire.evidence.signatures import add_trusted_key, key_path, trust_path
from tests.evidence.sample_packs import KEY, OTHER_KEY


@pytest.mark.requirement("evidence.keys")
def test_a_key_is_for_its_owner_alone_and_is_never_written_over(tmp_path: Path):
    path = key_path(tmp_path)
    made = create_key(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert encode_public_key(load_key(path)) == encode_public_key(made)
    before = path.read_bytes()
    with pytest.raises(KeyProblem) as refused:
        create_key(path)
    assert (refused.value.code, path.read_bytes()) == ("key_exists", before)


@pytest.mark.requirement("evidence.keys")
def test_a_key_that_others_may_read_or_that_is_none_is_not_used(tmp_path: Path):
    path = tmp_path / "key.pem"
    codes: list[str] = []

    def note_refusal() -> None:
        with pytest.raises(KeyProblem) as problem:
            load_key(path)
        codes.append(problem.value.code)

    note_refusal()
    create_key(path)
    path.chmod(0o640)
    note_refusal()
    path.chmod(0o600)
    path.write_text("no key")
    note_refusal()
    other = generate_private_key(SECP256R1())
    path.write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    note_refusal()
    assert codes == ["key_missing", "key_exposed", "key_malformed", "key_malformed"]


@pytest.mark.requirement("evidence.trust")
def test_a_trust_list_says_whose_key_it_is(tmp_path: Path):
    path = trust_path(tmp_path)
    add_trusted_key(path, "ann", encode_public_key(KEY))
    listed = add_trusted_key(path, "bob", encode_public_key(OTHER_KEY))
    assert load_trust(path) == listed
    assert listed.name_of(encode_public_key(OTHER_KEY)) == "bob"
    assert (
        build_trust_list({"ann": encode_public_key(KEY)}).name_of(encode_public_key(OTHER_KEY))
        is None
    )
    with pytest.raises(KeyProblem) as refused:
        add_trusted_key(path, "ann", encode_public_key(OTHER_KEY))
    assert refused.value.code == "key_exists"
    assert len(fingerprint(encode_public_key(KEY))) == len("SHA256:") + 64


def refusal(path: Path, name: str, public_key: str) -> str:
    with pytest.raises(KeyProblem) as refused:
        add_trusted_key(path, name, public_key)
    return refused.value.code


@pytest.mark.requirement("evidence.trust")
def test_a_name_is_one_line_of_visible_characters(tmp_path: Path):
    path = tmp_path / "trust.json"
    for name in ("", "  ", "ann\nbob", "ann\x1b[31m", "a" * 81):
        assert refusal(path, name, encode_public_key(KEY)) == "name_malformed", name
    assert not path.exists()


@pytest.mark.requirement("evidence.trust")
def test_a_key_has_one_name(tmp_path: Path):
    path = tmp_path / "trust.json"
    add_trusted_key(path, "ann", encode_public_key(KEY))
    assert refusal(path, "bob", encode_public_key(KEY)) == "key_exists"
    assert [key.name for key in load_trust(path).keys] == ["ann"]


WEAK = (
    "00" * 32,
    "00" * 31 + "80",
    "01" + "00" * 31,
    "ec" + "ff" * 30 + "7f",
    "ed" + "ff" * 30 + "7f",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
)
"""Public keys of small order, also with the sign set and with y past the prime."""


@pytest.mark.requirement("evidence.trust")
@pytest.mark.parametrize("raw", WEAK)
def test_a_key_that_is_nobodys_is_not_trusted(raw: str, tmp_path: Path):
    path, weak = tmp_path / "trust.json", base64.b64encode(bytes.fromhex(raw)).decode()
    assert refusal(path, "ann", weak) == "key_weak"
    path.write_bytes(msgspec.json.encode(build_trust_list({"ann": weak})))
    with pytest.raises(KeyProblem) as refused:
        load_trust(path)
    assert refused.value.code == "trust_malformed"


@pytest.mark.requirement("evidence.trust")
def test_the_known_keys_are_the_listed_ones_and_ones_own(tmp_path: Path):
    assert load_known_trust(tmp_path).keys == ()
    add_trusted_key(trust_path(tmp_path), "ann", encode_public_key(KEY))
    own = create_key(key_path(tmp_path))
    known = load_known_trust(tmp_path)
    assert known.name_of(encode_public_key(KEY)) == "ann"
    assert known.name_of(encode_public_key(own)) == "this machine"


@pytest.mark.requirement("evidence.trust")
@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b"\xff",
        b'{"format":"other","keys":[]}',
        b'{"format":"factwire-trust/v1","keys":[{"name":"a","publicKey":"AAAA"}]}',
        b'{"format":"factwire-trust/v1","keys":[{"name":"a","publicKey":"not base64!"}]}',
    ],
)
def test_a_malformed_trust_list_is_refused(content: bytes, tmp_path: Path):
    path = tmp_path / "trust.json"
    with pytest.raises(KeyProblem):
        load_trust(path)
    path.write_bytes(content)
    with pytest.raises(KeyProblem) as refused:
        load_trust(path)
    assert refused.value.code == "trust_malformed"
