"""A pack that was touched says so, and where: a table of tamperings, bit flips and truncations."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest

from factwire.evidence import (
    FINDINGS,
    Pack,
    PackError,
    PackReport,
    TrustList,
    build_trust_list,
    encode_public_key,
    open_pack,
    verify_pack,
)
from factwire.evidence import pack_archive as container_module
from factwire.evidence import verification as verification_module
from factwire.evidence.pack_archive import SEAL_BYTES
from factwire.evidence.pack_format import (
    BLOBS,
    DECISIONS,
    FACTS,
    GAPS,
    MANIFEST,
    SEQS,
    SIGNATURE,
    SUMMARY,
    TIMELINE,
    decode_signature,
    encode_document,
)
from factwire.facts import Fact
from tests.evidence.sample_packs import (
    KEY,
    OTHER_KEY,
    OUTPUT,
    Contents,
    contents,
    manifest_of,
    pack_journal,
    ref,
    relist_entries,
    repack,
    resign_entries,
    run_facts,
)

Tampering = Callable[[Contents], Contents]

TRUST = build_trust_list({"ann": encode_public_key(KEY)})
BLOB = f"{BLOBS}{ref(OUTPUT).rpartition(':')[2]}"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packs") / "original.factpack.zip"
    pack_journal(path)
    return path


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    """Another pack of the same signer."""
    path = tmp_path_factory.mktemp("packs") / "other.factpack.zip"
    pack_journal(path, run_facts()[:8])
    return contents(path)


def without(name: str) -> Tampering:
    return lambda entries: {each: data for each, data in entries.items() if each != name}


def put(name: str, change: Callable[[bytes], bytes]) -> Tampering:
    return lambda entries: {**entries, name: change(entries.get(name, b""))}


def swap_entries(entries: Contents, one: str, two: str) -> Contents:
    return {**entries, one: entries[two], two: entries[one]}


def lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def edited_fact(data: bytes) -> bytes:
    assert b'"approved"' in data
    return data.replace(b'"approved"', b'"rejected"', 1)


def dropped_fact(data: bytes) -> bytes:
    return b"".join(line for at, line in enumerate(lines(data)) if at != 13)


def swap_lines(data: bytes) -> bytes:
    first, second, *rest = lines(data)
    return b"".join([second, first, *rest])


def flip_bit(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


def edited_manifest(data: bytes) -> bytes:
    return data.replace(b'"facts":26', b'"facts":25')


def edited_summary(data: bytes) -> bytes:
    assert b'"toolFailures":1' in data
    return data.replace(b'"toolFailures":1', b'"toolFailures":0')


def edited_anchor(data: bytes) -> bytes:
    summary = msgspec.json.decode(data)
    summary["journal"]["anchors"][0]["hash"] = "0" * 64
    return msgspec.json.encode(summary) + b"\n"


def signature_of(key: Any) -> Callable[[Contents], Contents]:
    """The right signature under the name of another key."""

    def change(entries: Contents) -> Contents:
        right = decode_signature(entries[SIGNATURE])
        wrong = msgspec.structs.replace(right, public_key=encode_public_key(key))
        return {**entries, SIGNATURE: encode_document(wrong)}

    return change


def broken_key(data: bytes) -> bytes:
    return data.replace(b'"publicKey":"', b'"publicKey":"A')


def drop_signature(entries: Contents) -> Contents:
    return without(SIGNATURE)(entries)


def keep_signature(change: Tampering) -> Tampering:
    """Changed and listed anew, by somebody without the key: the signature stays."""
    return lambda entries: relist_entries(change(entries))


def relist_unsigned(change: Tampering) -> Tampering:
    """Changed, listed anew and without a signature."""
    return lambda entries: drop_signature(relist_entries(change(entries)))


def resigned_by_other(change: Tampering) -> Tampering:
    return lambda entries: resign_entries(relist_entries(change(entries)), OTHER_KEY)


def signed_anew(change: Tampering) -> Tampering:
    """Changed, listed and signed anew, by the owner of the key."""
    return lambda entries: resign_entries(relist_entries(change(entries)))


def signed_by_other(entries: Contents) -> Contents:
    return resign_entries(entries, OTHER_KEY)


def timeline_for_decisions(entries: Contents) -> Contents:
    return swap_entries(entries, TIMELINE, DECISIONS)


class Case(NamedTuple):
    name: str
    change: Tampering
    code: str
    entry: str | None
    demand: bool = False
    """Whether a signature of a trusted key is demanded."""


CASES = [
    Case("edit a fact", put(FACTS, edited_fact), "entry_changed", FACTS),
    Case(
        "edit a fact, list it anew",
        keep_signature(put(FACTS, edited_fact)),
        "signature_invalid",
        None,
    ),
    Case(
        "edit a fact, sign with another key",
        resigned_by_other(put(FACTS, edited_fact)),
        "signer_untrusted",
        SIGNATURE,
        demand=True,
    ),
    Case(
        "edit a fact, take the signature away",
        relist_unsigned(put(FACTS, edited_fact)),
        "signature_missing",
        SIGNATURE,
        demand=True,
    ),
    Case(
        "edit a fact, list it anew, unsigned",
        relist_unsigned(put(FACTS, edited_fact)),
        "derived_differs",
        DECISIONS,
    ),
    Case("drop a fact", put(FACTS, dropped_fact), "entry_truncated", FACTS),
    Case(
        "drop a fact, list it anew, unsigned",
        relist_unsigned(put(FACTS, dropped_fact)),
        "count_differs",
        FACTS,
    ),
    Case(
        "drop the last fact",
        put(FACTS, lambda d: b"".join(lines(d)[:-1])),
        "entry_truncated",
        FACTS,
    ),
    Case("drop all facts", put(FACTS, lambda _: b""), "entry_truncated", FACTS),
    Case("append a fact", put(FACTS, lambda d: d + lines(d)[-1]), "entry_extended", FACTS),
    Case("append one byte", put(FACTS, lambda d: d + b"\n"), "entry_extended", FACTS),
    Case("reorder facts", put(FACTS, swap_lines), "entry_changed", FACTS),
    Case(
        "reorder facts, list them anew, unsigned",
        relist_unsigned(put(FACTS, swap_lines)),
        "derived_differs",
        None,
    ),
    Case(
        "break a fact, list it anew, unsigned",
        relist_unsigned(put(FACTS, lambda d: b"{}" + d[2:])),
        "facts_malformed",
        FACTS,
    ),
    Case("take the facts away", without(FACTS), "entry_missing", FACTS),
    Case("change the places", put(SEQS, lambda _: b"[2,27]\n"), "entry_changed", SEQS),
    Case(
        "change the places, list them anew, unsigned",
        relist_unsigned(put(SEQS, lambda _: b"[1,25]\n")),
        "count_differs",
        FACTS,
    ),
    Case("swap two entries", timeline_for_decisions, "entry_truncated", TIMELINE),
    Case("change the summary", put(SUMMARY, edited_summary), "entry_changed", SUMMARY),
    Case(
        "change the summary, list it anew",
        keep_signature(put(SUMMARY, edited_summary)),
        "signature_invalid",
        SIGNATURE,
    ),
    Case(
        "change the summary, list it anew, unsigned",
        relist_unsigned(put(SUMMARY, edited_summary)),
        "derived_differs",
        SUMMARY,
    ),
    Case(
        "change the summary, sign it with the right key",
        signed_anew(put(SUMMARY, edited_summary)),
        "derived_differs",
        SUMMARY,
    ),
    Case("take the summary away", without(SUMMARY), "entry_missing", SUMMARY),
    Case("change an anchor", put(SUMMARY, edited_anchor), "entry_changed", SUMMARY),
    Case(
        "add a gap that is none, list it anew, unsigned",
        relist_unsigned(put(GAPS, lambda _: b'{"code":"sequence_gap","message":"m"}\n')),
        "derived_differs",
        GAPS,
    ),
    Case("replace a blob", put(BLOB, lambda _: b"other output\n"), "entry_truncated", BLOB),
    Case("replace a blob by one as long", put(BLOB, flip_bit), "entry_changed", BLOB),
    Case(
        "replace a blob, list it anew, unsigned",
        relist_unsigned(put(BLOB, flip_bit)),
        "blob_misnamed",
        BLOB,
    ),
    Case("take a blob away", without(BLOB), "entry_missing", BLOB),
    Case("add an entry", put("notes.txt", lambda _: b"hello"), "entry_added", "notes.txt"),
    Case(
        "add an entry, list it, unsigned",
        relist_unsigned(put("notes.txt", lambda _: b"hello")),
        "entry_added",
        "notes.txt",
    ),
    Case("edit the manifest", put(MANIFEST, edited_manifest), "signature_invalid", SIGNATURE),
    Case(
        "add a space to the manifest", put(MANIFEST, lambda d: d + b" "), "signature_invalid", None
    ),
    Case("take the signature away", drop_signature, "signature_missing", SIGNATURE, demand=True),
    Case(
        "sign with another key",
        signed_by_other,
        "signer_untrusted",
        None,
        demand=True,
    ),
    Case("swap the public key", signature_of(OTHER_KEY), "signature_invalid", SIGNATURE),
    Case("break the public key", put(SIGNATURE, broken_key), "signature_invalid", SIGNATURE),
]


def tamper_pack(original: Path, folder: Path, case: Case) -> Path:
    return repack(folder / "tampered.factpack.zip", case.change(contents(original)))


def verify(path: Path, *, demand: bool = False, trust: TrustList = TRUST) -> PackReport:
    return verify_pack(path, trust=trust, demand_trust=demand)


def test_the_table_of_tamperings_is_long_enough_and_uses_every_finding():
    assert len(CASES) >= 30
    assert len({case.name for case in CASES}) == len(CASES)
    assert {case.code for case in CASES} == set(FINDINGS)


@pytest.mark.requirement("evidence.verify.intact")
def test_an_untouched_pack_is_intact_and_names_its_signer(original: Path):
    report = verify(original, demand=True)
    assert (report.ok, report.findings, report.container) == (True, (), "as_written")
    assert (report.signer.state, report.signer.name) == ("trusted", "ann")
    assert (report.facts, report.derived_again) == (len(run_facts()), True)


@pytest.mark.requirement("evidence.verify.tampering")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_tampering_gets_its_verdict(case: Case, original: Path, tmp_path: Path):
    report = verify(tamper_pack(original, tmp_path, case), demand=case.demand)
    assert not report.ok
    first = report.findings[0]
    assert first.code == case.code, report.findings
    if case.entry is not None:
        assert first.entry == case.entry


def read_everything(pack: Pack) -> list[object]:
    return [*pack.facts(), *pack.placed_facts(), pack.summary, pack.blob(ref(OUTPUT))]


@pytest.mark.requirement("evidence.verify.tampering")
@pytest.mark.parametrize("name", [FACTS, SEQS, SUMMARY, BLOB])
def test_what_was_changed_is_never_handed_out(name: str, original: Path, tmp_path: Path):
    entries = contents(original)
    path = repack(tmp_path / "p.zip", {**entries, name: flip_bit(entries[name])})
    with open_pack(path) as pack, pytest.raises(PackError) as refused:
        read_everything(pack)
    assert refused.value.code == "entry_changed"


@pytest.mark.requirement("evidence.verify.tampering")
def test_the_signature_of_another_pack_does_not_fit(
    original: Path, other: Contents, tmp_path: Path
):
    entries = {**contents(original), SIGNATURE: other[SIGNATURE]}
    path = repack(tmp_path / "p.zip", entries)
    assert verify(path).findings[0].code == "signature_invalid"
    with pytest.raises(PackError) as refused, open_pack(path):
        pass
    assert refused.value.code == "signature_invalid"


@pytest.mark.requirement("evidence.verify.range")
def test_the_first_range_that_was_changed_is_named(tmp_path: Path):
    from factwire.evidence.limits import BLOCK_BYTES

    big = tmp_path / "big.factpack.zip"
    facts = run_facts()
    filler = [
        msgspec.structs.replace(facts[6], id=f"d{n}", sequence=26 + n, payload={"delta": "w" * 900})
        for n in range(1, 60)
    ]
    pack_journal(big, [*facts, *filler])
    entries = contents(big)
    assert len(entries[FACTS]) > 3 * BLOCK_BYTES
    at = 2 * BLOCK_BYTES + 77
    data = bytearray(entries[FACTS])
    data[at] ^= 4
    changed = repack(tmp_path / "p.zip", {**entries, FACTS: bytes(data)})
    [finding] = verify(changed).findings
    assert (finding.entry, finding.first, finding.last) == (
        FACTS,
        2 * BLOCK_BYTES,
        3 * BLOCK_BYTES - 1,
    )
    cut = repack(tmp_path / "p.zip", {**entries, FACTS: entries[FACTS][:at]})
    [finding] = verify(cut).findings
    assert (finding.code, finding.first) == ("entry_truncated", 2 * BLOCK_BYTES)
    assert f"{len(entries[FACTS]) - at} of the bytes" in finding.message
    longer = repack(tmp_path / "p.zip", {**entries, FACTS: entries[FACTS] + b"x"})
    [finding] = verify(longer).findings
    assert (finding.code, finding.first) == ("entry_extended", len(entries[FACTS]))


def blind(*_: object) -> bool:
    return True


def read_nothing(_: object) -> list[object]:
    return []


def read_facts(path: Path) -> list[Fact] | None:
    """What a reader gets; None where it is refused."""
    try:
        with open_pack(path) as pack:
            return list(pack.facts())
    except PackError:
        return None


def verdict(path: Path) -> str:
    """`intact` only where not one byte gave itself away."""
    try:
        report = verify(path, demand=True)
    except PackError as refused:
        return refused.code
    if report.findings:
        return report.findings[0].code
    if report.container != "as_written":
        located = report.container_offset is not None or report.container == "repacked"
        return "container" if located else "container, but nobody knows where"
    return "intact"


@pytest.mark.fault
@pytest.mark.requirement("evidence.verify.flips")
@pytest.mark.parametrize("stored", [False, True], ids=["compressed", "stored"])
def test_every_flipped_bit_is_found_and_none_is_served_as_good(stored: bool, tmp_path: Path):
    path = tmp_path / "p.factpack.zip"
    pack_journal(path, stored=stored)
    right, good = path.read_bytes(), read_facts(path)
    seen: set[str] = set()
    for seed in range(250):
        data = bytearray(right)
        chosen = Random(seed)
        data[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
        path.write_bytes(data)
        seen.add(verdict(path))
        assert read_facts(path) in (None, good), seed
    assert "intact" not in seen
    assert "container, but nobody knows where" not in seen
    assert {"entry_changed", "container"} <= seen


@pytest.mark.fault
@pytest.mark.requirement("evidence.verify.flips")
def test_every_truncation_is_found(original: Path, tmp_path: Path):
    right, good = original.read_bytes(), read_facts(original)
    path = tmp_path / "p.zip"
    for seed in range(250):
        size = Random(seed).randrange(len(right))
        path.write_bytes(right[:size])
        if size < len(right) - SEAL_BYTES:
            assert verdict(path) in ("pack_truncated", "pack_not_zip"), seed
            assert read_facts(path) is None
        else:
            # All contents are there; only the archive's seal is cut.
            assert (verdict(path), read_facts(path)) == ("container", good), seed


@pytest.mark.fault
@pytest.mark.requirement("evidence.verify.flips")
def test_without_hashes_and_signature_a_flip_would_pass(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    entries = contents(original)
    at = entries[FACTS].index(b'"ann"') + 1
    data = bytearray(entries[FACTS])
    data[at] ^= 2
    path = repack(tmp_path / "p.zip", {**entries, FACTS: bytes(data)})
    assert verdict(path) == "entry_changed"
    monkeypatch.setattr(container_module, "matches", blind)
    monkeypatch.setattr(verification_module, "matches_whole", blind)
    monkeypatch.setattr(verification_module, "_check_derived", read_nothing)
    assert verify(path, demand=True).findings == ()
    assert read_facts(path) not in (None, read_facts(original))


@pytest.mark.requirement("evidence.container.repacked")
@pytest.mark.parametrize(
    "method",
    [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED],
    ids=["stored", "deflated"],
)
def test_a_pack_survives_being_packed_anew(method: int, original: Path, tmp_path: Path):
    entries = contents(original)
    backwards = dict(reversed(list(entries.items())))
    report = verify(repack(tmp_path / "p.zip", backwards, method), demand=True)
    assert (report.ok, report.container) == (True, "repacked")
    assert report.digest == verify(original).digest


@pytest.mark.requirement("evidence.container.changed")
def test_a_change_around_the_contents_is_told_apart_and_located(original: Path, tmp_path: Path):
    data = bytearray(original.read_bytes())
    # The time of the first entry, in its local header.
    data[10] ^= 1
    path = tmp_path / "p.zip"
    path.write_bytes(data)
    report = verify(path, demand=True)
    assert (report.ok, report.container, report.container_offset) == (True, "changed", 10)


def test_a_manifest_that_another_version_made_is_not_derived_again(original: Path, tmp_path: Path):
    entries = relist_entries(contents(original), producer="0.0.1")
    assert manifest_of(entries).producer == "0.0.1"
    report = verify(repack(tmp_path / "p.zip", resign_entries(entries)), demand=True)
    assert (report.ok, report.derived_again, report.producer) == (True, False, "0.0.1")
