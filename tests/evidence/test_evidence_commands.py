"""`factwire evidence`, and packs where other commands take recordings."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from factwire.evidence import create_key, encode_public_key
from factwire.evidence.pack_format import FACTS
from factwire.facts import Fact, encode_fact
from factwire.journal import open_journal
from factwire.journal.blobs import FileBlobs
from tests.cli.cli_commands import Factwire
from tests.evidence.sample_packs import (
    CASE,
    DIFF,
    OTHER_KEY,
    OUTPUT,
    contents,
    fill,
    pack_facts,
    ref,
    repack,
    run_facts,
    zip_content,
)
from tests.projection.fact_maker import FactMaker


@pytest.fixture
def factwire(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Factwire:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.chdir(tmp_path)
    return Factwire(capsys, monkeypatch, tmp_path)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return made_journal(tmp_path / "journal.db", run_facts())


def made_journal(path: Path, facts: list[Fact]) -> Path:
    async def make() -> None:
        async with open_journal(f"sqlite:{path}") as journal:
            await fill(journal, facts)
        store = FileBlobs(f"{path}.blobs")
        for content in (OUTPUT, DIFF):
            await store.put(content, kind="output")

    asyncio.run(make())
    return path


def export_thread(factwire: Factwire, journal: Path, *options: str) -> Path:
    factwire("evidence", "key")
    done = factwire("evidence", "export", "thread", "--journal", journal, *options)
    assert done.code == 0, done.err
    return factwire.folder / "thread.factpack.zip"


@pytest.mark.requirement("evidence.cli.export")
def test_a_thread_is_exported_signed_verified_and_shown(factwire: Factwire, journal: Path):
    pack = export_thread(factwire, journal, "--with-blobs")
    done = factwire("evidence", "verify", pack, "--journal", journal)
    assert done.code == 0, done.err
    assert "intact: 26 facts, signed by this machine (SHA256:" in done.out
    assert "archive  as written" in done.out
    assert "derived  matches the facts" in done.out
    assert "journal  same facts and hash chain (26 facts, 7 anchors compared)" in done.out
    shown = factwire("evidence", "show", pack)
    assert shown.code == 0
    for words in (
        "✗ read  c1  not_found",
        "Failed tools",
        "Verification",
        "Reviews",
        "approved",
        "included",
    ):
        assert words in shown.out, shown.out
    assert "Known gaps" not in shown.out
    found = msgspec.json.decode(factwire("evidence", "show", pack, "--json").out)
    assert found["runtime"]["toolFailures"] == 1


@pytest.mark.requirement("evidence.cli.export")
def test_a_thread_goes_with_those_of_its_subagents_and_no_other(factwire: Factwire, tmp_path: Path):
    child, other = FactMaker(thread="child"), FactMaker(thread="other")
    facts = [
        *run_facts()[:3],
        child("turn.started", turnId="c1", parentThreadId="thread"),
        other("turn.started", turnId="o1"),
        *run_facts()[3:],
    ]
    pack = export_thread(factwire, made_journal(tmp_path / "j.db", facts))
    lines = contents(pack)[FACTS].splitlines()
    assert [msgspec.json.decode(line)["threadId"] for line in lines[:5]] == [
        *("thread", "thread", "thread", "child", "thread")
    ]
    assert len(lines) == len(facts) - 1
    assert factwire("evidence", "verify", pack, "--journal", tmp_path / "j.db").code == 0


@pytest.mark.requirement("evidence.cli.export")
def test_an_export_again_is_the_same_file(factwire: Factwire, journal: Path):
    first = export_thread(factwire, journal).read_bytes()
    assert export_thread(factwire, journal, "--force").read_bytes() == first


@pytest.mark.requirement("evidence.cli.export")
def test_what_to_export_and_how_to_sign_must_be_clear(factwire: Factwire, journal: Path):
    place = ("--journal", journal)
    cases: list[tuple[tuple[Any, ...], str]] = [
        (("export", *place), "choose what to export"),
        (("export", "thread", "--all", *place), "these options cannot be combined"),
        (("export", "thread", *place), "key_missing"),
        (("export", "nobody", "--unsigned", *place), "has no thread"),
        (("export", "thread", "--unsigned", "--until", "x", *place), "cursor_malformed"),
        (("export", "thread", "--unsigned", "--until", "150", *place), "`factwire journal info`"),
        (("export", "--project", "none", "--unsigned", *place), "nothing_to_export"),
        (
            ("export", "thread", "--unsigned", "--output", "no/where.zip", *place),
            "folder not found: no",
        ),
        (("export", "--facts", "f", "--all", "--unsigned"), "--facts can be combined with"),
        (("export", "--facts", "missing", "--unsigned"), "does not exist"),
        (("export", "thread", "--unsigned", "--case", "missing", *place), "case_unreadable"),
        (("export", "thread", "--key", "missing", *place), "key_missing"),
    ]
    for arguments, words in cases:
        done = factwire("evidence", *arguments)
        assert (done.code, words in done.err) == (2, True), (arguments, done)
        assert "Traceback" not in done.err
    assert not list(factwire.folder.glob("*.factpack.zip"))
    assert not list(factwire.folder.glob(".*.factpack.zip*"))


@pytest.mark.requirement("evidence.cli.export")
def test_a_project_a_whole_journal_a_file_and_a_pipe_can_be_exported(
    factwire: Factwire, journal: Path
):
    for what in (("--project", "p1"), ("--all",)):
        done = factwire("evidence", "export", *what, "--unsigned", "--journal", journal)
        assert done.code == 0, done.err
    assert factwire("evidence", "verify", "p1.factpack.zip", "--journal", journal).code == 0
    assert factwire("evidence", "verify", "journal.factpack.zip", "--journal", journal).code == 0
    data = b"".join(encode_fact(fact) + b"\n" for fact in run_facts())
    factwire.file(data, "run.ndjson")
    assert (
        factwire("evidence", "export", "--facts", "run.ndjson", "--unsigned", "--stored").code == 0
    )
    done = factwire("evidence", "verify", "run.factpack.zip", "--journal", journal)
    assert (done.code, "made from a file" in done.out) == (0, True)
    assert "unsigned: hashes match" in done.out
    piped = factwire(
        "evidence",
        "export",
        "thread",
        "--facts",
        "-",
        "--unsigned",
        "--output",
        "p.zip",
        stdin=data,
    )
    assert piped.code == 0
    assert contents(Path("p.zip"))[FACTS] == data


@pytest.mark.requirement("evidence.cli.verify")
def test_verify_names_the_first_range_that_was_changed(factwire: Factwire, journal: Path):
    pack = export_thread(factwire, journal)
    entries = contents(pack)
    repack(pack, {**entries, FACTS: entries[FACTS].replace(b"approved", b"rejected", 1)})
    done = factwire("evidence", "verify", pack)
    assert done.code == 1
    assert "entry_changed: facts.ndjson: bytes 0–" in done.out
    found = msgspec.json.decode(factwire("evidence", "verify", pack, "--json").out)
    [finding] = found["pack"]["findings"]
    assert (finding["entry"], finding["first"]) == (FACTS, 0)
    for command in (("evidence", "show", pack), ("project", pack), ("play", pack)):
        refused = factwire(*command)
        if command[1] != "show":
            assert (refused.code, "entry_changed" in refused.err) == (1, True), refused


@pytest.mark.requirement("evidence.cli.verify")
def test_verify_demands_the_keys_it_is_given(factwire: Factwire, journal: Path):
    pack = export_thread(factwire, journal)
    own = msgspec.json.decode(factwire("evidence", "key", "--json").out)
    assert own["created"] is False
    assert factwire("evidence", "verify", pack, "--key", own["publicKey"]).code == 0
    done = factwire("evidence", "verify", pack, "--key", encode_public_key(OTHER_KEY))
    assert (done.code, "signer_untrusted" in done.out) == (1, True)
    assert factwire("evidence", "verify", pack, "--key", "nonsense").code == 2
    assert factwire("evidence", "trust", "ann", own["publicKey"], "--file", "t.json").code == 0
    done = factwire("evidence", "verify", pack, "--trust", "t.json")
    assert (done.code, "signed by ann (SHA256:" in done.out) == (0, True)
    assert factwire("evidence", "verify", pack, "--trust", "missing.json").code == 2
    export_thread(factwire, journal, "--unsigned", "--force")
    done = factwire("evidence", "verify", pack, "--trust", "t.json")
    assert (done.code, "signature_missing" in done.out) == (1, True)


@pytest.mark.requirement("evidence.cli.verify")
def test_verify_tells_a_journal_that_differs_from_one_that_was_compacted(
    factwire: Factwire, tmp_path: Path
):
    tell, turn = FactMaker(), {"turnId": "u1"}
    facts = [
        tell("turn.started", **turn),
        *(tell("model.delta", messageId="m", delta="x", **turn) for _ in range(9)),
        tell("model.completed", messageId="m", text="x" * 9, **turn),
        tell("turn.completed", **turn),
    ]
    journal = made_journal(tmp_path / "a.db", facts)
    pack = export_thread(factwire, journal)
    assert factwire("journal", "compact", journal).code == 0
    done = factwire("evidence", "verify", pack, "--journal", journal)
    assert (done.code, "has since removed facts on purpose" in done.out) == (0, True), done
    other = made_journal(tmp_path / "b.db", facts[:6])
    done = factwire("evidence", "verify", pack, "--journal", other)
    assert (done.code, "fact_missing at 7" in done.out) == (1, True), done.out


@pytest.mark.requirement("evidence.cli.errors")
def test_what_is_no_pack_is_refused_in_one_line(factwire: Factwire, tmp_path: Path):
    text, cut = factwire.file("hello\n", "text.zip"), tmp_path / "cut.zip"
    other = factwire.file(zip_content(b"a note"), "other.zip")
    pack_facts(cut, run_facts())
    cut.write_bytes(cut.read_bytes()[:3000])
    for verb in ("verify", "show", "check"):
        assert factwire("evidence", verb, "missing.zip").code == 2
        refused = factwire("evidence", verb, text)
        assert (refused.code, "pack_not_zip" in refused.err) == (2, True), refused
        refused = factwire("evidence", verb, cut)
        assert (refused.code, "pack_truncated" in refused.err) == (2, True), refused
        refused = factwire("evidence", verb, other)
        assert (refused.code, "manifest_missing" in refused.err) == (2, True), refused
    found = msgspec.json.decode(factwire("evidence", "verify", cut, "--json").out)
    assert found["error"]["code"] == "pack_truncated"
    assert factwire("project", cut).code == 2


@pytest.mark.requirement("evidence.cli.verify")
def test_verify_says_first_that_it_was_given_another_journal(factwire: Factwire, tmp_path: Path):
    pack = export_thread(factwire, made_journal(tmp_path / "a.db", run_facts()))
    other = made_journal(tmp_path / "b.db", run_facts("other"))
    done = factwire("evidence", "verify", pack, "--journal", other)
    found = [line for line in done.out.splitlines() if line.startswith("  ")]
    assert (done.code, len(found)) == (1, 22), done
    assert "this is a different journal: its epoch is" in found[0]
    assert found[-1] == "  and 6 more"


@pytest.mark.requirement("evidence.cli.verify")
def test_verify_takes_no_key_that_is_nobodys(factwire: Factwire, journal: Path):
    done = factwire("evidence", "verify", export_thread(factwire, journal), "--key", "A" * 43 + "=")
    assert (done.code, "key_weak" in done.err) == (2, True)


@pytest.mark.requirement("evidence.cli.export")
def test_show_tells_what_was_asked_and_done_within_80_columns(
    factwire: Factwire, journal: Path, monkeypatch: pytest.MonkeyPatch
):
    pack = export_thread(factwire, journal, "--with-blobs")
    monkeypatch.setenv("COLUMNS", "80")
    lines = [line.rstrip() for line in factwire("evidence", "show", pack).out.splitlines()]
    for line in (
        "thread  thread",
        "  > Mend it",
        "  ✓ shell  make test  c2",
        "  · permission.evaluated  ask  make test",
        "  ✓ action.resolved  approved  by ann  a1",
        f"  ✓ {ref(OUTPUT)[:26]}…  included  6,000 bytes",
    ):
        assert line in lines, (line, lines)
    assert "  ✓" not in lines


@pytest.mark.requirement("evidence.cli.check")
def test_a_case_without_assertions_is_not_blamed_on_the_pack(factwire: Factwire):
    pack_facts(Path("none.zip"), run_facts()[:3])
    factwire.file('{"name": "n", "assertions": []}', "case.json")
    done = factwire("evidence", "check", "none.zip", "--case", "case.json")
    assert (done.code, "neither case.json nor the pack contains assertions" in done.err) == (
        2,
        True,
    )


@pytest.mark.requirement("evidence.cli.errors")
def test_a_folder_in_place_of_a_file_is_told_in_a_sentence(factwire: Factwire, journal: Path):
    pack, folder = export_thread(factwire, journal), factwire.folder / "folder"
    folder.mkdir()
    export = ("export", "thread", "--journal", journal)
    for arguments in (
        ("verify", folder),
        ("show", folder),
        ("check", folder),
        ("key", "--file", folder),
        ("trust", "ann", encode_public_key(OTHER_KEY), "--file", folder),
        ("verify", pack, "--trust", folder),
        (*export, "--key", folder),
        (*export, "--output", folder),
    ):
        done = factwire("evidence", *arguments)
        assert (done.code, f"{folder} is a folder; name a file" in done.err) == (2, True), done
        assert "Errno" not in done.err
    done = factwire("evidence", "verify", pack / "inside")
    assert (done.code, "a part of it is a file" in done.err) == (2, True)


@pytest.mark.requirement("evidence.cli.errors")
def test_a_file_that_is_no_journal_is_not_called_a_damaged_one(factwire: Factwire, journal: Path):
    pack = export_thread(factwire, journal)
    junk = factwire.file("-----BEGIN PRIVATE KEY-----\n", "key.pem")
    for arguments in (("verify", pack), ("export", "thread", "--unsigned", "--output", "n.zip")):
        for url in (str(junk), f"sqlite:{junk}"):
            done = factwire("evidence", *arguments, "--journal", url)
            assert (done.code, f"{junk} is not a journal" in done.err) == (2, True), done


@pytest.mark.requirement("evidence.cli.export")
def test_a_file_that_is_there_is_written_over_only_by_force(factwire: Factwire, journal: Path):
    pack = export_thread(factwire, journal)
    pack.write_bytes(b"precious")
    for more in ((), ("--output", pack)):
        done = factwire("evidence", "export", "thread", "--journal", journal, *more)
        assert (done.code, "overwrite it with --force" in done.err) == (2, True), done
    assert pack.read_bytes() == b"precious"
    export_thread(factwire, journal, "--force")
    assert factwire("evidence", "verify", pack).code == 0


@pytest.mark.requirement("evidence.cli.export")
def test_a_file_of_facts_that_cannot_be_read_is_named(factwire: Factwire):
    factwire.file("{\n{", "broken.ndjson")
    done = factwire("evidence", "export", "--facts", "broken.ndjson", "--unsigned")
    assert (done.code, "broken.ndjson: line" in done.err) == (2, True), done
    assert not Path("broken.factpack.zip").exists()


@pytest.mark.requirement("evidence.cli.verify")
def test_a_pack_of_a_signer_who_is_not_demanded_is_not_called_changed(
    factwire: Factwire, journal: Path
):
    pack = export_thread(factwire, journal)
    done = factwire("evidence", "verify", pack, "--key", encode_public_key(OTHER_KEY))
    assert done.code == 1
    refusal = "not accepted: 26 facts, signed by a key that is not in a trust list"
    assert done.out.startswith(refusal)
    assert "changed" not in done.out
    assert "archive  as written" in done.out
    assert "derived  matches the facts" in done.out


@pytest.mark.requirement("evidence.cli.verify")
def test_what_is_told_of_the_archive_agrees_with_the_contents(factwire: Factwire, journal: Path):
    pack = export_thread(factwire, journal, "--stored")
    good = pack.read_bytes()
    pack.write_bytes(good.replace(b"Mend it", b"Mend at", 1))
    done = factwire("evidence", "verify", pack)
    assert (done.code, "but not its contents" in done.out) == (1, False), done
    assert "archive  changed; see the findings above" in done.out
    for changed, first in ((good + b"more", len(good)), (b"more" + good, 0)):
        pack.write_bytes(changed)
        done = factwire("evidence", "verify", pack)
        assert (done.code, done.out.startswith("intact: ")) == (0, True), done
        assert f"archive  changed, but not its contents, first at byte {first}\n" in done.out


@pytest.mark.requirement("evidence.cli.verify")
def test_show_refuses_changed_facts_and_says_that_it_does_not_read_all(
    factwire: Factwire, journal: Path
):
    pack = export_thread(factwire, journal)
    done = factwire("evidence", "show", pack)
    assert (done.code, "use factwire evidence verify to check all facts" in done.out) == (0, True)
    entries = contents(pack)
    repack(pack, {**entries, FACTS: entries[FACTS].replace(b"approved", b"rejected", 1)})
    done = factwire("evidence", "show", pack)
    assert (done.code, done.out, "entry_changed" in done.err) == (1, "", True)


@pytest.mark.requirement("evidence.cli.check")
def test_check_reports_each_assertion_and_fails_with_one_of_them(factwire: Factwire, journal: Path):
    pack = export_thread(factwire, journal)
    done = factwire("evidence", "check", pack)
    assert (done.code, "5 assertions: all hold" in done.out) == (0, True), done
    assert "fact thread-22" in done.out
    case = {"name": "mine", "assertions": [{"assert": "count", "eventClass": "tool", "equals": 0}]}
    file = factwire.file(msgspec.json.encode(case), "case.json")
    done = factwire("evidence", "check", pack, "--case", file)
    assert (done.code, "6 assertions: 1 of 6 failed" in done.out) == (1, True), done
    found = msgspec.json.decode(factwire("evidence", "check", pack, "--case", file, "--json").out)
    assert [result["passed"] for result in found["results"]] == [True] * len(CASE) + [False]
    factwire.file("{}", "case.json")
    done = factwire("evidence", "check", pack, "--case", file)
    assert (done.code, "case_malformed" in done.err) == (2, True)
    pack_facts(Path("none.zip"), run_facts()[:3])
    done = factwire("evidence", "check", "none.zip")
    assert (done.code, "contains no assertions" in done.err) == (2, True)


@pytest.mark.requirement("evidence.cli.check")
def test_a_case_can_be_added_at_export(factwire: Factwire, journal: Path):
    case = {"name": "mine", "assertions": CASE[:1]}
    file = factwire.file(msgspec.json.encode(case), "case.json")
    pack = export_thread(factwire, journal, "--case", str(file))
    done = factwire("evidence", "check", pack)
    assert (done.code, "mine" in done.out, "6 assertions" in done.out) == (0, True, True)


@pytest.mark.requirement("evidence.cli.key")
def test_a_key_is_made_once_and_shown_ever_after(factwire: Factwire, tmp_path: Path):
    first = factwire("evidence", "key", "--file", "k.pem")
    assert first.out.startswith("made k.pem")
    kept = factwire("evidence", "key", "--file", "k.pem")
    assert kept.out == first.out.replace("made", "kept")
    Path("k.pem").chmod(0o644)
    exposed = factwire("evidence", "key", "--file", "k.pem")
    assert (exposed.code, "key_exposed" in exposed.err) == (2, True)
    create_key(tmp_path / "other.pem")
    again = factwire("evidence", "trust", "ann", "nonsense")
    assert (again.code, "key_malformed" in again.err) == (2, True)


@pytest.mark.requirement("evidence.cli.recordings")
@pytest.mark.parametrize("source", ["journal", "file"])
def test_a_pack_can_be_projected_and_played(
    source: str, factwire: Factwire, journal: Path, tmp_path: Path
):
    pack, facts = tmp_path / "thread.factpack.zip", tmp_path / "facts.ndjson"
    facts.write_bytes(b"".join(encode_fact(fact) + b"\n" for fact in run_facts()))
    if source == "journal":
        export_thread(factwire, journal)
    else:
        pack_facts(pack, run_facts())
    for command in (["project"], ["project", "--json"], ["project", "--at", "9"], ["play"]):
        verb, *options = command
        from_pack = factwire(verb, pack, *options)
        straight = factwire(verb, journal if source == "journal" else facts, *options)
        assert from_pack == straight
        assert from_pack.code == 0
