"""Refs: content-addressed, and never a place, a secret or the content itself."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factwire.facts import (
    REF_KINDS,
    FactError,
    InvalidRef,
    RefKind,
    content_ref,
    parse_ref,
    ref_issue,
)


@pytest.mark.requirement("refs.content-addressed")
@given(st.sampled_from(REF_KINDS), st.binary())
def test_a_ref_is_its_kind_and_the_hash_of_the_content(kind: RefKind, content: bytes):
    ref = content_ref(kind, content)
    assert parse_ref(ref) == (kind, sha256(content).hexdigest())
    assert content_ref(kind, content) == ref
    assert content_ref(kind, content + b"x") != ref
    assert ref_issue(ref, "$") is None


@pytest.mark.requirement("refs.kinds")
def test_there_are_six_kinds():
    assert REF_KINDS == ("output", "artifact", "evidence", "diagnostic", "trace", "raw")


@pytest.mark.requirement("refs.kinds")
@pytest.mark.parametrize(
    "ref",
    [
        "",
        "output",
        "output:sha256:",
        f"output:sha256:{'a' * 63}",
        f"output:sha256:{'a' * 65}",
        f"output:sha256:{'A' * 64}",
        f"output:sha256:{'g' * 64}",
        f"output:sha256:{'a' * 64}\n",
        f" output:sha256:{'a' * 64}",
        f"output:md5:{'a' * 64}",
        f"other:sha256:{'a' * 64}",
        f"output:sha256:../{'a' * 61}",
    ],
)
def test_another_form_is_refused(ref: str):
    with pytest.raises(InvalidRef, match="expected KIND:sha256:HEX") as caught:
        parse_ref(ref)
    assert caught.value.code == "invalid_ref"
    assert isinstance(caught.value, FactError)


PATHS = [
    "/etc/passwd",
    "/",
    "//server/share",
    "\\\\server\\share\\x",
    "\\\\?\\C:\\x",
    "\\windows",
    "C:\\Users\\me\\x",
    "c:/Users/me/x",
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "file:x",
    "~",
    "~/.ssh/id_rsa",
    "~me/x",
    "..",
    "../x",
    "..\\x",
    "a/../../etc/passwd",
    "a\\..\\x",
    "a/..",
    "https://example.org/a/../b",
    "%2e%2e/x",
    "..%2fx",
    "a%2F..%2Fb",
    " /etc/passwd",
    "\t/etc/passwd",
    "\nfile:///x",
    "",
    "  ",
]


@pytest.mark.requirement("refs.no-paths")
@pytest.mark.parametrize("ref", PATHS, ids=[repr(ref) for ref in PATHS])
def test_a_place_on_a_machine_is_no_ref(ref: str):
    issue = ref_issue(ref, "$.refIds[0]")
    assert issue is not None
    assert (issue.code, issue.path) == ("schema_mismatch", "$.refIds[0]")
    assert ref.strip() in ("", "/", "~", "..") or ref not in issue.message


@pytest.mark.requirement("refs.no-inline-data")
@pytest.mark.parametrize("ref", ["data:text/plain,hello", "DATA:;base64,aGk=", " data:,x"])
def test_content_is_no_ref(ref: str):
    issue = ref_issue(ref, "$.refIds[0]")
    assert issue is not None
    assert issue.code == "large_payload_inline"


@pytest.mark.requirement("refs.no-secrets")
@pytest.mark.parametrize(
    "ref",
    [
        "https://me:hunter22@example.org/x",
        "postgres://me:hunter22@db.example.org/x",
        "s3://bucket/x?token=" + "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    ],
)
def test_a_secret_is_no_ref(ref: str):
    issue = ref_issue(ref, "$.refIds[0]")
    assert issue is not None
    assert issue.code == "secret_leak_risk"
    assert "hunter22" not in issue.message


@pytest.mark.requirement("refs.no-paths")
@pytest.mark.parametrize(
    "ref",
    [
        "artifact_1",
        "https://example.org/a/b.html#x",
        "s3://bucket/key",
        "workspace:src/main.py",
        "a..b",
        "v1...v2",
        "asset:2026/06/10",
        "x",
        "urn:uuid:0c3c5a1e-0000-4000-8000-000000000000",
    ],
)
def test_a_ref_of_others_is_kept(ref: str):
    assert ref_issue(ref, "$") is None
