"""Several packs in one file: it verifies as one, and whatever was changed is found and named."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from factwire.evidence import (
    LeftOut,
    MalformedPack,
    PackFile,
    build_trust_list,
    encode_public_key,
    open_pack,
    verify_file,
    verify_pack,
    write_bundle,
)
from factwire.evidence.pack_bundle import BUNDLE
from factwire.evidence.pack_format import MANIFEST, SIGNATURE
from tests.cli.cli_commands import Factwire
from tests.cli.conftest import factwire as factwire_fixture
from tests.evidence.sample_packs import KEY, contents, pack_journal

factwire = factwire_fixture

pytestmark = pytest.mark.requirement("evidence.bundle")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    pack_journal(tmp_path / "pack.zip")
    with open_pack(tmp_path / "pack.zip") as pack:
        held = pack.summary.journal
        threads = () if held is None else tuple(held.threads or ())
    packs = [
        PackFile(source=name, threads=threads, path=tmp_path / "pack.zip") for name in ("a", "b")
    ]
    left = [LeftOut(source="c", thread_id="thread", reason="private_or_not_uploaded")]
    path = tmp_path / "bundle.zip"
    with path.open("wb") as file:
        write_bundle(file, "Two", packs, left, KEY)
    return path


def test_a_bundle_verifies_as_one_and_is_no_single_pack(bundle: Path, factwire: Factwire):
    report = verify_file(bundle)
    single = verify_pack(bundle.with_name("pack.zip"))
    assert (report.ok, report.facts, report.container) == (True, 2 * single.facts, "as_written")
    trust = build_trust_list({"me": encode_public_key(KEY)})
    assert verify_file(bundle, trust=trust, demand_trust=True).signer.name == "me"
    with pytest.raises(MalformedPack, match="several packs"), open_pack(bundle):
        raise AssertionError
    shown = factwire("evidence", "verify", str(bundle))
    assert (shown.code, "intact" in shown.out) == (0, True), shown.err


def change_pack(held: dict[str, bytes]) -> dict[str, bytes]:
    name = next(name for name in held if name.endswith("002.factpack.zip"))
    data = bytearray(held[name])
    data[len(data) // 2] ^= 1
    return {**held, name: bytes(data)}


def remove_pack(held: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in held.items() if not name.endswith("002.factpack.zip")}


def add_entry(held: dict[str, bytes]) -> dict[str, bytes]:
    return {**held, "packs/003.factpack.zip": b"x"}


def change_document(held: dict[str, bytes]) -> dict[str, bytes]:
    return {**held, BUNDLE: held[BUNDLE].replace(b'"a"', b'"z"')}


def swap_signature(held: dict[str, bytes]) -> dict[str, bytes]:
    return {**held, MANIFEST: held[MANIFEST].replace(b'"facts":', b'"facts": ')}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (change_pack, "entry_changed"),
        (remove_pack, "entry_missing"),
        (add_entry, "entry_added"),
        (swap_signature, "signature_invalid"),
    ],
)
def test_what_was_changed_in_a_bundle_is_found(
    bundle: Path, change: Callable[[dict[str, bytes]], dict[str, bytes]], code: str
):
    rewrite(bundle, change(contents(bundle)))
    report = verify_file(bundle)
    assert not report.ok
    assert code in {finding.code for finding in report.findings}


def test_a_document_that_was_changed_or_is_missing_is_refused(bundle: Path):
    held = contents(bundle)
    rewrite(bundle, change_document(held))
    with pytest.raises(Exception, match=BUNDLE):
        verify_file(bundle)


def test_packs_in_a_bundle_are_never_compressed_nor_bundles(bundle: Path, tmp_path: Path):
    held = contents(bundle)
    rewrite(bundle, held, method=zipfile.ZIP_DEFLATED)
    packed = verify_file(bundle)
    assert [finding.code for finding in packed.findings] == ["entry_changed", "entry_changed"]
    rewrite(bundle, held)
    nested = tmp_path / "nested.zip"
    with nested.open("wb") as file, pytest.raises(MalformedPack, match="several packs"):
        write_bundle(file, "Nested", [PackFile(source="x", threads=(), path=bundle)], [], None)


def rewrite(path: Path, held: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, content in held.items():
            archive.writestr(name, content)
    path.write_bytes(data.getvalue())


def test_a_bundle_says_what_was_left_out(bundle: Path):
    document = msgspec.json.decode(contents(bundle)[BUNDLE])
    assert document["leftOut"] == [
        {"source": "c", "threadId": "thread", "reason": "private_or_not_uploaded"}
    ]
    assert SIGNATURE in contents(bundle)
