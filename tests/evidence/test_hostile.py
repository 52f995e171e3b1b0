"""Archives that were built to do harm, and archives that are none: codes, never a traceback."""

import io
import re
import stat
import struct
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from factwire.evidence import PackError, open_pack, verify_pack
from factwire.evidence import pack_archive as container_module
from factwire.evidence.pack_format import FACTS, MANIFEST, SIGNATURE, SUMMARY
from tests.cli.cli_commands import Factwire
from tests.evidence.sample_packs import contents, manifest_of, pack_journal, repack
from tests.trials import TRIAL_SECONDS, count_trials

Build = Callable[[Path], bytes]


def archive(*entries: tuple[str | zipfile.ZipInfo, bytes], method: int = 0) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as made:
        for name, content in entries:
            made.writestr(name, content)
    return data.getvalue()


def with_entry(name: str) -> Build:
    """The pack, and one more entry of this name."""

    def build(path: Path) -> bytes:
        held = [*contents(path).items()]
        data = archive(*held, ("placeholder", b"x"))
        return data.replace(b"placeholder", name.encode().ljust(11, b"x")[:11])

    return build


def symlink(path: Path) -> bytes:
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return archive(*contents(path).items(), (info, b"/etc/passwd"))


def encrypted_pack(path: Path) -> bytes:
    data = bytearray(archive(*contents(path).items()))
    place = data.index(b"PK\x01\x02")
    data[place + 8] |= 1
    return bytes(data)


def duplicate(path: Path) -> bytes:
    data = archive(*contents(path).items(), ("facts.ndjsoX", b"{}\n"))
    return data.replace(b"facts.ndjsoX", b"facts.ndjson")


def overlapping_pack(_: Path) -> bytes:
    """Two entries of the directory that point to the same bytes."""
    data = bytearray(archive(("a", b"x" * 64), ("b", b"y" * 64)))
    second = data.rindex(b"PK\x01\x02")
    data[second + 42 : second + 46] = struct.pack("<I", 0)
    return bytes(data)


def bomb(_: Path) -> bytes:
    """Claims to hold 3 GiB in a few bytes."""
    data = bytearray(archive(("facts.ndjson", b"x" * 64)))
    place = data.index(b"PK\x01\x02")
    data[place + 24 : place + 28] = struct.pack("<I", 3 * 1024**3)
    return bytes(data)


def unknown_method(_: Path) -> bytes:
    data = bytearray(archive(("facts.ndjson", b"x" * 64)))
    place = data.index(b"PK\x01\x02")
    data[place + 10 : place + 12] = struct.pack("<H", 97)
    return bytes(data)


def no_directory(path: Path) -> bytes:
    return path.read_bytes()[:-200]


def directory_elsewhere(_: Path) -> bytes:
    data = bytearray(archive(("facts.ndjson", b"x" * 64)))
    place = data.rindex(b"PK\x05\x06")
    data[place + 16 : place + 20] = struct.pack("<I", 0xFFFFFF00)
    return bytes(data)


def replace_entry(name: str, content: bytes) -> Build:
    return lambda path: archive(*{**contents(path), name: content}.items())


def without(name: str) -> Build:
    return lambda path: archive(*((n, d) for n, d in contents(path).items() if n != name))


def manifest_with(old: str, new: str) -> Build:
    def build(path: Path) -> bytes:
        entries = contents(path)
        assert old.encode() in entries[MANIFEST]
        made = entries[MANIFEST].replace(old.encode(), new.encode(), 1)
        del entries[SIGNATURE]
        return archive(*{**entries, MANIFEST: made}.items())

    return build


CASES: dict[str, tuple[Build, str]] = {
    "a path upwards": (with_entry("../../../xx"), "pack_unsafe_name"),
    "an absolute path": (with_entry("/etc/passwd"), "pack_unsafe_name"),
    "a drive": (with_entry("C:/windowsx"), "pack_unsafe_name"),
    "a backslash": (with_entry("..\\..\\evil"), "pack_unsafe_name"),
    "a control character": (with_entry("a\x1b[2Jevilll"), "pack_unsafe_name"),
    "a name with a NUL": (with_entry("facts\0.ndjs"), "pack_unsafe_name"),
    "a symbolic link": (symlink, "pack_symlink"),
    "an encrypted entry": (encrypted_pack, "pack_encrypted"),
    "an entry twice": (duplicate, "pack_duplicate_entry"),
    "entries that overlap": (overlapping_pack, "pack_overlapping"),
    "a bomb": (bomb, "pack_bomb"),
    "an unknown compression": (unknown_method, "pack_compression_unknown"),
    "no directory": (no_directory, "pack_truncated"),
    "a directory past the end": (directory_elsewhere, "pack_unreadable"),
    "an empty file": (lambda _: b"", "pack_not_zip"),
    "something else": (lambda _: b"not a zip at all\n" * 100, "pack_not_zip"),
    "an empty archive": (lambda _: archive(), "manifest_missing"),
    "no manifest": (without(MANIFEST), "manifest_missing"),
    "a manifest that is no JSON": (replace_entry(MANIFEST, b"{"), "manifest_malformed"),
    "a manifest of another kind": (replace_entry(MANIFEST, b"{}"), "manifest_malformed"),
    "a manifest nested too deep": (replace_entry(MANIFEST, b"[" * 200_000), "manifest_malformed"),
    "a manifest that is no text": (replace_entry(MANIFEST, b"\xff\xfe{}"), "manifest_malformed"),
    "another format": (manifest_with("factwire-pack/v1", "factwire-pack/v9"), "manifest_version"),
    "a negative size": (manifest_with('"bytes":', '"bytes":-'), "manifest_malformed"),
    "an entry listed twice": (
        manifest_with('"name":"seqs.ndjson"', '"name":"facts.ndjson"'),
        "manifest_malformed",
    ),
    "a manifest that lists itself": (
        manifest_with('"name":"seqs.ndjson"', '"name":"manifest.json"'),
        "manifest_malformed",
    ),
    "a signature that is no JSON": (replace_entry(SIGNATURE, b"x"), "signature_malformed"),
    "a signature of another kind": (
        replace_entry(
            SIGNATURE, b'{"format":"x","algorithm":"none","publicKey":"","signature":""}'
        ),
        "signature_malformed",
    ),
    "a signature that is too long": (replace_entry(SIGNATURE, b" " * 10_000), "pack_too_big"),
}


@pytest.fixture
def factwire(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Factwire:
    monkeypatch.setenv("HOME", str(tmp_path))
    return Factwire(capsys, monkeypatch, tmp_path)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packs") / "original.factpack.zip"
    pack_journal(path)
    return path


@pytest.mark.requirement("evidence.hostile")
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", CASES)
def test_a_hostile_or_broken_archive_is_refused_by_code(name: str, original: Path, tmp_path: Path):
    build, code = CASES[name]
    path = tmp_path / "p.zip"
    path.write_bytes(build(original))
    with pytest.raises(PackError) as opened, open_pack(path):
        pass
    with pytest.raises(PackError) as verified:
        verify_pack(path)
    assert (opened.value.code, verified.value.code) == (code, code)


@pytest.mark.requirement("evidence.hostile")
def test_too_many_entries_are_refused(original: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(container_module, "ENTRIES", 3)
    # Each object takes ten times the bytes that its entry has in the directory.
    monkeypatch.setattr(zipfile, "ZipInfo", pytest.fail)
    with pytest.raises(PackError) as refused, open_pack(original):
        pass
    assert refused.value.code == "pack_too_big"


@pytest.mark.requirement("evidence.hostile")
def test_a_directory_that_is_too_long_is_not_read(original: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(container_module, "DIRECTORY_BYTES", 100)
    with pytest.raises(PackError) as refused, open_pack(original):
        pass
    assert refused.value.code == "pack_too_big"


@pytest.mark.requirement("evidence.hostile")
@pytest.mark.parametrize(
    ("runs", "found"),
    [
        (b"[1,9223372036854775807]\n", "count_differs"),
        (b"[1,9223372036854775807]\n" * 1_000, "count_differs"),
        (b"[1,2]\n", "count_differs"),
        (b"", "count_differs"),
        (b"[-9223372036854775807,1]\n", "entry_malformed"),
        (b"[9,1]\n", "entry_malformed"),
        (b"[0,25]\n", "entry_malformed"),
    ],
)
def test_places_that_are_not_those_of_the_facts_end_every_reading_with_a_code(
    factwire: Factwire, original: Path, tmp_path: Path, runs: bytes, found: str
):
    """A run of places is a few bytes long, whatever it claims to cover."""
    from tests.evidence.sample_packs import relist_entries

    entries = {**contents(original), "seqs.ndjson": runs}
    del entries[SIGNATURE]
    path = repack(tmp_path / "p.zip", relist_entries(entries))
    assert [finding.code for finding in verify_pack(path).findings][:1] == [found]
    for command in (
        ["project", str(path)],
        ["diff", str(path), str(original)],
        ["play", str(path)],
    ):
        done = factwire(*command)
        assert done.code != 0
        assert "entry_malformed" in done.err


@pytest.mark.requirement("evidence.hostile")
def test_an_entry_that_claims_too_much_is_refused(original: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(container_module, "ENTRY_BYTES", 100)
    with pytest.raises(PackError) as refused, open_pack(original):
        pass
    assert refused.value.code == "pack_too_big"


@pytest.mark.requirement("evidence.hostile")
def test_a_folder_in_the_archive_does_no_harm(original: Path, tmp_path: Path):
    entries = {"blobs/": b"", **contents(original)}
    assert verify_pack(repack(tmp_path / "p.zip", entries)).ok


@pytest.mark.fuzz
@pytest.mark.nightly
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.requirement("evidence.hostile")
def test_whatever_stands_in_a_pack_the_answer_is_a_documented_one(original: Path, tmp_path: Path):
    """Random damage inside the documents themselves, packed properly and listed as it is."""
    from tests.evidence.sample_packs import relist_entries

    entries = contents(original)
    del entries[SIGNATURE]
    names = [FACTS, SUMMARY, MANIFEST, "seqs.ndjson", "gaps.ndjson", "blobs.ndjson", "tools.ndjson"]
    path = tmp_path / "p.zip"
    for seed in range(count_trials(full=200_000, share=300)):
        chosen = Random(seed)
        name = chosen.choice([each for each in names if each in entries])
        data = bytearray(entries[name])
        for _ in range(chosen.randint(1, 20)):
            data[chosen.randrange(len(data))] = chosen.randrange(256)
        changed_entries = {**entries, name: bytes(data)}
        if name != MANIFEST:
            changed_entries = relist_entries(changed_entries)
        repack(path, changed_entries, zipfile.ZIP_STORED)
        # Anything but a `PackError` would end the test.
        with suppress(PackError):
            assert not verify_pack(path).ok or name == MANIFEST, (seed, name)
        with suppress(PackError), open_pack(path) as pack:
            list(pack.facts())
            assert pack.summary.runtime.facts >= 0


DIRECTORY, LOCAL, END = b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"
FIELDS: dict[bytes, tuple[tuple[int, int], ...]] = {
    DIRECTORY: (
        *((at, 2) for at in (4, 6, 8, 10, 28, 30, 32, 34, 36)),
        *((at, 4) for at in (16, 20, 24, 38, 42)),
    ),
    LOCAL: (*((at, 2) for at in (4, 6, 8, 26, 28)), *((at, 4) for at in (14, 18, 22))),
    END: (*((at, 2) for at in (4, 6, 8, 10, 20)), (12, 4), (16, 4)),
}
"""Signature of a record → where its numbers are, and how many bytes each has."""

NUMBERS = (0, 1, 8, 0x41, 0x7FFF, 0xFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
KINDS = (0o120777, 0o010644, 0o020644, 0o140644, 0o040755, 0o104755)
"""Modes of links, pipes, devices, sockets, folders and programs."""


def _places(data: bytearray, signature: bytes) -> list[int]:
    return [found.start() for found in re.finditer(re.escape(signature), data)]


def set_number(chance: Random, data: bytearray) -> None:
    signature = chance.choice(list(FIELDS))
    place, (at, size) = chance.choice(_places(data, signature)), chance.choice(FIELDS[signature])
    value = chance.choice((*NUMBERS, len(data), chance.randrange(1 << 32))) % (1 << 8 * size)
    data[place + at : place + at + size] = value.to_bytes(size, "little")


def set_kind(chance: Random, data: bytearray) -> None:
    place = chance.choice(_places(data, DIRECTORY))
    data[place + 38 : place + 42] = struct.pack("<I", chance.choice(KINDS) << 16)


def rename_once(chance: Random, data: bytearray) -> None:
    name = chance.choice((FACTS, MANIFEST, SUMMARY)).encode()
    place = chance.choice(_places(data, name))
    ends = (name.upper(), name[:-1] + b"\0", name[:-1] + b"/", b"../" + name[3:], name[:-1] + b".")
    data[place : place + len(name)] = chance.choice(ends)


def hide_entry(chance: Random, data: bytearray) -> None:
    """An entry that no directory lists, for readers that go from the front."""
    other = archive((chance.choice((FACTS, MANIFEST, "other")), b"{}\n"))
    place = _places(data, DIRECTORY)[0]
    data[place:place] = other[: other.index(DIRECTORY)]


def add_around(chance: Random, data: bytearray) -> None:
    whole = bytes(data)
    more = chance.choice((chance.randbytes(100), whole[whole.rindex(END) :], whole))
    data[:] = more + whole if chance.random() < 0.5 else whole + more


CHANGES = (set_number, set_number, set_number, set_kind, rename_once, hide_entry, add_around)


@pytest.mark.fuzz
@pytest.mark.nightly
@pytest.mark.timeout(TRIAL_SECONDS)
@pytest.mark.requirement("evidence.hostile")
def test_an_archive_with_changed_records_shows_the_same_facts_or_none(
    original: Path, tmp_path: Path
):
    sealed, plain = original.read_bytes(), archive(*contents(original).items())
    path, ends = tmp_path / "p.zip", Counter[str]()
    with open_pack(original) as pack:
        facts = list(pack.facts())
    for seed in range(count_trials(full=20_000, share=200)):
        chance = Random(seed)
        data = bytearray(chance.choice((sealed, plain)))
        for _ in range(chance.choice((1, 1, 2, 3))):
            # A change before it may have left nothing of what this one changes.
            with suppress(IndexError, ValueError):
                chance.choice(CHANGES)(chance, data)
        path.write_bytes(data)
        try:
            report = verify_pack(path)
        except PackError as error:
            ends[error.code] += 1
            continue
        ends["intact" if report.ok else "changed"] += 1
        if report.ok:
            assert bytes(data) == sealed or report.container != "as_written", seed
            with open_pack(path) as pack:
                assert list(pack.facts()) == facts, seed
    assert {"intact", "changed", "pack_truncated", "entry_malformed", "pack_symlink"} <= ends.keys()


def test_the_manifest_lists_every_entry_but_itself_and_the_signature(original: Path):
    entries = contents(original)
    listed = [entry.name for entry in manifest_of(entries).entries]
    assert [*listed, MANIFEST, SIGNATURE] == list(entries)


METHODS = {"bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA}
MEMBERS = (MANIFEST, FACTS, "a/b/c/manifest.json")
ZEROS = 100 * 1024 * 1024
PEAK_BYTES = 64 * 1024 * 1024
"""What reading a pack may hold at once; a bomb of this corpus expands to more."""


def compressed_bomb(name: str, method: int) -> bytes:
    """An archive of some hundred bytes with an entry of zeros, whose size is stated rightly."""
    data, info = io.BytesIO(), zipfile.ZipInfo(name)
    info.compress_type = method
    with zipfile.ZipFile(data, "w") as made, made.open(info, "w") as stream:
        for _ in range(ZEROS // (1024 * 1024)):
            stream.write(bytes(1024 * 1024))
    return data.getvalue()


def restate_sizes(data: bytes, size: int) -> bytes:
    """The same archive, whose directory states another size for each entry."""
    changed = bytearray(data)
    place = changed.find(b"PK\x01\x02")
    while place >= 0:
        struct.pack_into("<I", changed, place + 24, size)
        place = changed.find(b"PK\x01\x02", place + 4)
    return bytes(changed)


def claim_in_zip64(name: str, size: int) -> bytes:
    """An archive whose entry claims a size that only zip64 can state."""
    data = bytearray(archive((name, b"x" * 64)))
    place = data.index(b"PK\x01\x02")
    struct.pack_into("<I", data, place + 24, 0xFFFFFFFF)
    extra = struct.pack("<HHQ", 1, 8, size)
    struct.pack_into("<H", data, place + 30, len(extra))
    end = place + 46 + len(name)
    data[end:end] = extra
    eocd = data.rindex(b"PK\x05\x06")
    struct.pack_into("<I", data, eocd + 12, eocd - place)
    return bytes(data)


def bomb_corpus() -> Iterator[tuple[str, bytes, set[str]]]:
    """Every way to hold more than one seems to: by method, member, stated size and zip64."""
    for name in MEMBERS:
        for label, method in METHODS.items():
            data = compressed_bomb(name, method)
            yield f"{label} in {name}", data, {"pack_bomb"}
            for size in (0, 1, 4096, 60 * 1024 * 1024):
                lying = restate_sizes(data, size)
                yield f"{label} in {name} as {size}", lying, {"pack_compression_unknown"}
        deflated = compressed_bomb(name, zipfile.ZIP_DEFLATED)
        yield f"deflate in {name}", deflated, {"pack_bomb"}
        for size in (0, 1, 4096):
            lying = restate_sizes(deflated, size)
            yield f"deflate in {name} as {size}", lying, REFUSALS
        for size in (2**32, 2**40, 2**63 - 1):
            yield f"zip64 in {name} as {size}", claim_in_zip64(name, size), {"pack_bomb"}


REFUSALS = {"manifest_missing", "manifest_malformed", "entry_malformed"}


@pytest.mark.requirement("evidence.hostile")
def test_no_archive_expands_past_what_a_reader_may_hold(factwire: Factwire, tmp_path: Path):
    path = tmp_path / "p.zip"
    for label, data, codes in bomb_corpus():
        path.write_bytes(data)
        tracemalloc.start()
        with pytest.raises(PackError) as opened, open_pack(path):
            pass
        with pytest.raises(PackError) as verified:
            verify_pack(path)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert opened.value.code == verified.value.code, label
        assert opened.value.code in codes, (label, opened.value.code)
        assert peak < PEAK_BYTES, (label, peak)
    path.write_bytes(claim_in_zip64(FACTS, 2**40))
    for command in ("verify", "show"):
        done = factwire("evidence", command, path)
        assert (done.code, "pack_bomb" in done.err) == (1, True), done


@pytest.mark.requirement("evidence.hostile")
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_pack_that_another_tool_compressed_is_refused_by_its_method(
    original: Path, tmp_path: Path, method: int
):
    path = repack(tmp_path / "p.zip", contents(original), method)
    with pytest.raises(PackError) as refused:
        verify_pack(path)
    assert refused.value.code == "pack_compression_unknown"
