"""What goes into a pack, what comes out of it, and that the same facts give the same bytes."""

import asyncio
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from factwire.evidence import (
    GAP_CODES,
    BlobNotInPack,
    EvidencePack,
    ExportOptions,
    ExportProblem,
    export_facts,
    export_journal,
    open_pack,
    parse_case,
    threads_of_project,
    verify_pack,
)
from factwire.evidence import pack_digest as runs_module
from factwire.evidence.pack_format import FACTS, IDS, TIMELINE
from factwire.facts import Fact, encode_fact
from factwire.journal import Cursor
from factwire.journal.blobs import BlobCorrupt
from factwire.projection import project
from factwire.projection.read_models import thread_outline
from tests.evidence.sample_packs import (
    DIFF,
    KEY,
    OUTPUT,
    SECRET,
    blobs,
    contents,
    export_to,
    fill,
    new_journal,
    pack_facts,
    pack_journal,
    ref,
    run_facts,
)
from tests.projection.fact_maker import FactMaker

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return tmp_path / "run.factpack.zip"


def summary_of(path: Path) -> EvidencePack:
    with open_pack(path) as opened:
        return opened.summary


def gaps(path: Path) -> list[tuple[str, str | None]]:
    return [(gap.code, gap.subject) for gap in summary_of(path).known_gaps]


@pytest.mark.requirement("evidence.pack.facts")
def test_a_pack_gives_back_the_facts_their_bytes_and_their_places(pack: Path):
    pack_journal(pack)
    facts = run_facts()
    with open_pack(pack) as opened:
        assert list(opened.facts()) == facts
        assert list(opened.fact_lines()) == [encode_fact(fact) for fact in facts]
        assert list(opened.placed_facts()) == list(enumerate(facts, 1))
        assert opened.manifest.facts == len(facts)
        assert opened.manifest.created_at == facts[-1].created_at


@pytest.mark.requirement("evidence.pack.summary")
def test_the_summary_says_what_the_run_came_to(pack: Path):
    pack_journal(pack)
    found = summary_of(pack)
    run = found.runtime
    assert (run.status, run.facts, run.turns, run.turns_completed) == ("completed", 26, 1, 1)
    assert (run.tool_calls, run.tool_failures, run.actions) == (2, 1, 1)
    assert (run.input_tokens, run.output_tokens, run.cost) == (120, 30, 0.5)
    assert (run.models, run.runtime_ids) == (["large"], ["runtime"])
    assert [call.tool_call_id for call in found.tool_calls] == ["c1", "c2"]
    assert [(c.tool_call_id, c.failure_category) for c in found.tool_failures] == [
        ("c1", "not_found")
    ]
    assert [ref.artifact_id for ref in found.artifacts] == ["art1"]
    assert [note.event_class for note in found.context] == ["context.resolved"]
    assert [note.refs for note in found.context] == [["ctx-1"]]
    assert [note.event_class for note in found.decisions] == [
        "routing.decided",
        "permission.evaluated",
        "action.required",
        "action.resolved",
        "sandbox.applied",
    ]
    assert [(v.subject, v.outcome) for v in found.verifications] == [
        ("t1", "passed"),
        ("e1", "passed"),
    ]
    assert [(r.review_id, r.status, r.verdict) for r in found.reviews] == [
        ("v1", "requested", None),
        ("v1", "completed", "approved"),
    ]
    assert [each.evidence_id for each in found.evidence] == ["e1", "case-1"]
    assert found.known_gaps == []


@pytest.mark.requirement("evidence.pack.read-models")
def test_timeline_and_read_model_are_those_of_the_projection(pack: Path):
    pack_journal(pack)
    state = project(run_facts(), "thread")
    found = summary_of(pack)
    assert found.threads == [thread_outline(state)]
    assert found.timeline == state.timeline
    with open_pack(pack) as opened:
        rows = [msgspec.json.decode(row) for row in opened.rows(TIMELINE)]
    assert [row["entryId"] for row in rows] == [entry.entry_id for entry in state.timeline]
    assert {row["threadId"] for row in rows} == {"thread"}


@pytest.mark.requirement("evidence.pack.correlation")
def test_every_correlation_id_is_there_with_its_first_fact(pack: Path):
    pack_journal(pack)
    with open_pack(pack) as opened:
        rows = [msgspec.json.decode(row) for row in opened.rows(IDS)]
        names = opened.summary.runtime_correlation
    assert names["toolCallId"] == ["c1", "c2"]
    assert names["messageId"] == ["m1"]
    assert (names["turnId"], names["runId"], names["threadId"]) == (["u1"], ["r1"], ["thread"])
    assert {"name": "toolCallId", "value": "c1", "factId": "thread-8"} in rows
    assert set(names) >= {"actionId", "artifactId", "evidenceId", "reviewId", "sessionId"}


@pytest.mark.requirement("evidence.pack.anchors")
def test_the_chain_is_anchored_at_the_commits_that_hold_the_facts(pack: Path):
    async def export_pack() -> list[tuple[int, str]]:
        async with new_journal() as journal:
            await fill(journal, run_facts(), batch=10)
            await export_to(pack, journal)
            return [
                (point.seq, point.hash.hex())
                for point in [await journal.chain_point(seq) for seq in (1, 11, 21)]
            ]

    wanted = asyncio.run(export_pack())
    journal = summary_of(pack).journal
    assert journal is not None
    assert (journal.first_seq, journal.last_seq, journal.threads) == (1, 26, ["thread"])
    assert [(anchor.seq, anchor.hash) for anchor in journal.anchors] == wanted
    assert [seq for seq, _ in wanted] == [10, 20, 26]


TURN = {"turnId": "u1"}


def build_facts(*rows: tuple[str, dict[str, Any]]) -> list[Fact]:
    tell = FactMaker()
    return [tell(name, **fields) for name, fields in rows]


BEGUN = ("turn.started", TURN)
ENDED = ("turn.completed", TURN)

GAPS: dict[str, tuple[list[tuple[str, dict[str, Any]]], str | None]] = {
    "tool_without_result": ([BEGUN, ("tool.started", {"toolCallId": "c", **TURN}), ENDED], "c"),
    "approval_without_decision": (
        [BEGUN, ("action.required", {"actionId": "a", **TURN}), ENDED],
        "a",
    ),
    "turn_without_terminal": ([BEGUN], "u1"),
    "command_without_exit": (
        [BEGUN, ("command.started", {"commandId": "x", **TURN}), ENDED],
        "x",
    ),
    "test_without_outcome": ([BEGUN, ("test.started", {"testRunId": "t", **TURN}), ENDED], "t"),
    "patch_without_outcome": (
        [BEGUN, ("patch.started", {"patchId": "p", **TURN}), ENDED],
        "p",
    ),
    "process_without_end": (
        [BEGUN, ("process.started", {"processId": "p", **TURN}), ENDED],
        "p",
    ),
    "subagent_without_end": (
        [BEGUN, ("subagent.started", {"subagentId": "s", "taskId": "k", **TURN}), ENDED],
        "s",
    ),
    "handoff_without_answer": (
        [BEGUN, ("handoff.requested", {"handoffId": "h", **TURN}), ENDED],
        "h",
    ),
    "review_without_verdict": (
        [BEGUN, ENDED, ("review.requested", {"reviewId": "v", "evidenceRefs": ["e"]})],
        "v",
    ),
    "file_change_without_diff": (
        [BEGUN, ("file.changed", {"path": "a.py", "artifactId": "f", **TURN}), ENDED],
        "a.py",
    ),
    "sequence_gap": ([BEGUN, ("turn.completed", {**TURN, "sequence": 5})], "thread"),
    "blob_unchecked": (
        [BEGUN, ("turn.completed", {**TURN, "refIds": [ref(OUTPUT)]})],
        ref(OUTPUT),
    ),
}


@pytest.mark.requirement("evidence.gaps")
@pytest.mark.parametrize("code", GAPS)
def test_a_gap_is_named_where_its_signal_applies(code: str, pack: Path):
    rows, subject = GAPS[code]
    pack_facts(pack, build_facts(*rows))
    assert gaps(pack) == [(code, subject)]


@pytest.mark.requirement("evidence.gaps")
def test_every_gap_has_a_test():
    elsewhere = {"facts_removed", "blob_missing", "blob_corrupt", "blob_withheld", "blob_oversized"}
    assert set(GAPS) | elsewhere == set(GAP_CODES)


@pytest.mark.requirement("evidence.gaps")
def test_what_does_not_apply_or_was_cancelled_is_no_gap(pack: Path):
    cancelled = [
        BEGUN,
        ("tool.started", {"toolCallId": "c", **TURN}),
        ("action.required", {"actionId": "a", **TURN}),
        ("turn.canceled", TURN),
    ]
    pack_facts(pack, build_facts(*cancelled))
    assert gaps(pack) == []


@pytest.mark.requirement("evidence.gaps")
def test_a_late_fact_fills_the_hole_it_left(pack: Path):
    first, *rest = build_facts(
        BEGUN, *[("model.delta", {"messageId": "m", "delta": "x", **TURN})] * 4, ENDED
    )
    pack_facts(pack, [first, rest[0], rest[2], rest[3], rest[4], rest[1]])
    assert gaps(pack) == []


@pytest.mark.requirement("evidence.gaps")
def test_facts_that_the_journal_removed_are_a_gap_of_their_own(pack: Path):
    deltas = [("model.delta", {"messageId": "m", "delta": "x", **TURN})] * 20
    done = ("model.completed", {"messageId": "m", "text": "x" * 20, **TURN})

    async def export_pack() -> None:
        async with new_journal() as journal:
            await fill(journal, build_facts(BEGUN, *deltas, done, ENDED))
            removal = await journal.compact()
            assert removal.removed == 19
            await export_to(pack, journal)

    asyncio.run(export_pack())
    found = summary_of(pack)
    assert [(gap.code, gap.subject) for gap in found.known_gaps] == [("facts_removed", "thread")]
    assert found.journal is not None
    assert found.journal.removed == {"thread": 19}
    assert verify_pack(pack).ok


@pytest.mark.requirement("evidence.gaps")
def test_what_was_removed_before_a_cursor_is_told_apart_from_what_came_after(pack: Path):
    def message(number: int) -> list[tuple[str, dict[str, Any]]]:
        ids = {"messageId": f"m{number}", **TURN}
        deltas = [("model.delta", {"delta": "x", **ids})] * 10
        return [*deltas, ("model.completed", {"text": "x" * 10, **ids})]

    async def export_pack(seq: int) -> None:
        async with new_journal() as journal:
            await fill(journal, build_facts(BEGUN, *message(1), *message(2), ENDED))
            assert (await journal.compact()).removed == 18
            await export_to(pack, journal, until=Cursor("0123456789abcdef", seq))

    asyncio.run(export_pack(12))
    found = summary_of(pack)
    assert found.journal is not None
    assert found.journal.removed == {"thread": 9}
    codes = [gap.code for gap in found.known_gaps]
    assert codes == ["turn_without_terminal", "facts_removed"]
    assert verify_pack(pack).ok


@pytest.mark.requirement("evidence.blobs")
def test_blobs_go_in_on_request_and_come_out_whole(pack: Path):
    pack_journal(pack, with_blobs=True)
    with open_pack(pack) as opened:
        assert opened.blob(ref(OUTPUT)) == OUTPUT
        assert b"".join(opened.blob_pieces(ref(DIFF, "artifact"))) == DIFF
        assert [note.state for note in opened.summary.blobs] == ["included", "included"]
        with pytest.raises(BlobNotInPack):
            opened.blob(ref(b"something else"))
    pack_journal(pack, with_blobs=False)
    with open_pack(pack) as opened:
        assert opened.blobs() == []
        assert [note.state for note in opened.summary.blobs] == ["present", "present"]
        assert opened.summary.known_gaps == []


@pytest.mark.requirement("evidence.blobs")
def test_a_blob_that_is_not_in_the_store_is_a_gap(pack: Path):
    pack_journal(pack, blobs=blobs(OUTPUT))
    assert gaps(pack) == [("blob_missing", ref(DIFF, "artifact"))]


@pytest.mark.requirement("evidence.blobs")
def test_a_damaged_blob_and_one_that_is_too_long_are_gaps(
    pack: Path, monkeypatch: pytest.MonkeyPatch
):
    from factwire.evidence import pack_writer as blobs_module

    store = blobs(OUTPUT, DIFF)
    digest, get = ref(DIFF).rpartition(":")[2], store.get

    async def get_damaged(name: Any) -> AsyncIterator[bytes]:
        if digest in name:
            raise BlobCorrupt(digest, "a byte was changed")
        async for piece in get(name):
            yield piece

    monkeypatch.setattr(store, "get", get_damaged)
    monkeypatch.setattr(blobs_module, "BLOB_BYTES", len(OUTPUT) - 1)
    pack_journal(pack, blobs=store)
    assert gaps(pack) == [("blob_oversized", ref(OUTPUT)), ("blob_corrupt", ref(DIFF, "artifact"))]


@pytest.mark.requirement("evidence.blobs.secrets")
@pytest.mark.parametrize(("before", "behind"), [(0, 0), (1024 * 1024, 2 * 1024 * 1024)])
def test_a_blob_with_a_secret_stays_out_and_the_pack_says_so(before: int, behind: int, pack: Path):
    """Alone, and across the border between two pieces that are searched."""
    filler = b"x" * 15 + b"\n"
    start = (filler * (before // 16))[: -len(SECRET) // 2] + b"\n" if before else b""
    secret = start + SECRET + filler * (behind // 16)
    facts = [
        *run_facts(),
        FactMaker(27)("artifact.changed", artifactId="art2", refIds=[ref(secret)]),
    ]
    pack_journal(pack, facts, blobs=blobs(OUTPUT, DIFF, secret))
    assert gaps(pack) == [("blob_withheld", ref(secret))]
    with open_pack(pack) as opened:
        assert len(opened.blobs()) == 2
        [note] = [note for note in opened.summary.blobs if note.state == "withheld"]
        assert note.rules
    assert not any(SECRET[22:38] in data for data in contents(pack).values())
    assert verify_pack(pack).ok


@pytest.mark.requirement("evidence.export.redaction")
def test_facts_from_a_file_are_redacted_on_the_way_in(pack: Path):
    secret = "AKIA" + "IOSFODNN7EXAMPLQ"
    rows = [BEGUN, ("model.completed", {"messageId": "m", "text": f"key {secret}", **TURN}), ENDED]
    pack_facts(pack, build_facts(*rows))
    assert not any(secret.encode() in data for data in contents(pack).values())
    assert verify_pack(pack).ok


@pytest.mark.requirement("evidence.export.selection")
def test_threads_a_project_or_a_whole_journal_can_be_exported(pack: Path):
    threads = {name: run_facts(name) for name in ("thread", "two", "three")}
    mixed = [fact for row in zip(*threads.values(), strict=True) for fact in row]

    async def export_threads(wanted: list[str] | None) -> list[str]:
        async with new_journal() as journal:
            await fill(journal, mixed)
            assert await threads_of_project(journal, "p1") == ["thread", "three", "two"]
            await export_to(pack, journal, threads=wanted)
        with open_pack(pack) as opened:
            return [fact.id for fact in opened.facts()]

    assert asyncio.run(export_threads(None)) == [fact.id for fact in mixed]
    two = [fact.id for fact in mixed if fact.thread_id != "two"]
    assert asyncio.run(export_threads(["three", "thread"])) == two
    found = summary_of(pack)
    assert {model.thread_id for model in found.threads} == {"thread", "three"}
    assert found.totals["tools"] == 4
    assert verify_pack(pack).ok


@pytest.mark.requirement("evidence.export.selection")
def test_many_threads_are_read_in_one_pass(pack: Path):
    mixed = [fact for n in range(20) for fact in run_facts(f"t{n}")[:3]]
    wanted = [f"t{n}" for n in range(18)]

    async def export_pack() -> None:
        async with new_journal() as journal:
            await fill(journal, mixed)
            await export_to(pack, journal, threads=wanted)

    asyncio.run(export_pack())
    with open_pack(pack) as opened:
        assert [fact.id for fact in opened.facts()] == [fact.id for fact in mixed[:54]]


@pytest.mark.requirement("evidence.export.until")
def test_an_export_can_end_at_a_cursor(pack: Path):
    async def export_until(seq: int) -> None:
        async with new_journal() as journal:
            await fill(journal, run_facts())
            await export_to(pack, journal, until=Cursor("0123456789abcdef", seq))

    asyncio.run(export_until(9))
    with open_pack(pack) as opened:
        assert list(opened.facts()) == run_facts()[:9]
    assert gaps(pack) == [("turn_without_terminal", "u1")]
    with pytest.raises(ExportProblem) as refused:
        asyncio.run(export_until(99))
    assert refused.value.code == "cursor_not_of_journal"


@pytest.mark.requirement("evidence.export.refused")
def test_nothing_to_export_and_a_damaged_journal_are_refused(pack: Path):
    async def export_nothing() -> None:
        async with new_journal() as journal:
            await fill(journal, run_facts())
            await export_to(pack, journal, threads=["other"])

    async def export_damaged() -> None:
        async with new_journal() as journal:
            await fill(journal, run_facts())
            chunk = journal._chunks[1]
            data = chunk.data.replace(b"tool", b"fool")
            journal._chunks[1] = msgspec.structs.replace(chunk, data=data)
            await export_to(pack, journal)

    codes: list[str] = []
    for work in (export_nothing, export_damaged):
        with pytest.raises(ExportProblem) as refused:
            asyncio.run(work())
        codes.append(refused.value.code)
    assert codes == ["nothing_to_export", "journal_corrupt"]


@pytest.mark.requirement("evidence.export.refused")
def test_an_export_during_which_facts_are_removed_is_refused(pack: Path):
    deltas = [("model.delta", {"messageId": "m", "delta": "x", **TURN})] * 20
    done = ("model.completed", {"messageId": "m", "text": "x" * 20, **TURN})

    async def export_during_removal() -> None:
        async with new_journal() as journal:
            await fill(journal, build_facts(BEGUN, *deltas, done, ENDED))
            store = None
            real = journal.chain_point

            async def compact_then_read(seq: int):
                await journal.compact()
                return await real(seq)

            journal.chain_point = compact_then_read
            await export_to(pack, journal, blobs=store)

    with pytest.raises(ExportProblem) as refused:
        asyncio.run(export_during_removal())
    assert refused.value.code == "export_raced"


@pytest.mark.requirement("evidence.export.progress")
def test_progress_counts_every_fact(tmp_path: Path):
    tell = FactMaker()
    facts = [tell("run.status", sequence=n) for n in range(1, 2_501)]
    seen: list[int] = []
    with (tmp_path / "p").open("wb") as target:
        asyncio.run(export_facts(facts, target, progress=seen.append))
    assert seen == [1000, 1000, 500]

    async def export_counted() -> None:
        async with new_journal() as journal:
            await fill(journal, facts, batch=500)
            with (tmp_path / "q").open("wb") as target:
                await export_journal(journal, target, threads=None, progress=seen.append)

    seen.clear()
    asyncio.run(export_counted())
    assert seen == [1000, 1000, 500]


@pytest.mark.requirement("evidence.runs")
def test_a_long_thread_is_summed_up_in_runs_as_if_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Turn after turn, each with a tool and an artifact that all of them change."""
    tell = FactMaker()
    facts: list[Fact] = []
    for number in range(12):
        turn = {"turnId": f"u{number}"}
        call = {"toolCallId": f"c{number}", **turn}
        facts += [
            tell("turn.submitted", prompt="go", **turn),
            tell("turn.started", **turn),
            tell("tool.started", toolName="shell", **call),
            tell("tool.result", summary="done", **call),
            tell("artifact.changed", artifactId="art", versionId=f"v{number}", **turn),
            tell("cost.recorded", inputTokens=1, outputTokens=2, **turn),
            tell("turn.completed", **turn),
        ]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    pack_facts(whole, facts)
    monkeypatch.setattr(runs_module, "RUN_FACTS", 10)
    pack_facts(cut, facts)
    one, many = summary_of(whole), summary_of(cut)
    assert one.runtime == many.runtime
    assert one.tool_calls == many.tool_calls
    assert one.artifacts == many.artifacts
    ids = [(entry.entry_id, entry.status, entry.title) for entry in one.timeline]
    assert [(entry.entry_id, entry.status, entry.title) for entry in many.timeline] == ids
    assert many.threads[0].last_outcome == one.threads[0].last_outcome
    assert many.threads[0].event_cursor == one.threads[0].event_cursor


@pytest.mark.requirement("evidence.runs")
def test_more_threads_than_are_held_at_once_lose_nothing(
    pack: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(runs_module, "LIVE_THREADS", 2)
    threads = [run_facts(f"t{n}") for n in range(5)]
    pack_facts(pack, [fact for row in zip(*threads, strict=True) for fact in row])
    found = summary_of(pack)
    assert found.runtime.tool_calls == 10
    assert {call.state for call in found.tool_calls} == {"output-available", "output-error"}
    assert len(found.threads) == 5


@pytest.mark.requirement("evidence.reproducible")
@pytest.mark.parametrize("stored", [False, True])
def test_the_same_facts_and_options_give_the_same_bytes(stored: bool, tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    case = parse_case(b'{"name":"c","assertions":[]}', "case")
    first = pack_journal(one, stored=stored, cases=(case,))
    assert pack_journal(two, stored=stored, cases=(case,)) == first
    assert one.read_bytes() == two.read_bytes()
    pack_journal(two, stored=stored)
    assert one.read_bytes() != two.read_bytes()


ELSEWHERE = """
import sys
from pathlib import Path
from tests.evidence.sample_packs import pack_journal
pack_journal(Path(sys.argv[1]))
"""


@pytest.mark.requirement("evidence.reproducible")
def test_another_process_with_another_hash_seed_gives_the_same_bytes(tmp_path: Path):
    made: set[bytes] = set()
    for seed in ("0", "1", "4242"):
        path = tmp_path / seed
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "TZ": "UTC-9"}
        subprocess.run(
            [sys.executable, "-c", ELSEWHERE, str(path)], env=environment, check=True, timeout=280
        )
        made.add(path.read_bytes())
    pack_journal(tmp_path / "here")
    assert made == {(tmp_path / "here").read_bytes()}


TOOLS = ["zipfile", *(["zip"] if shutil.which("zip") and shutil.which("unzip") else [])]


@pytest.mark.requirement("evidence.container.repacked")
@pytest.mark.parametrize("tool", TOOLS)
def test_a_pack_survives_the_tools_that_people_have(tool: str, pack: Path, tmp_path: Path):
    pack_journal(pack)
    folder, again = tmp_path / "folder", tmp_path / "again.zip"
    folder.mkdir()
    names = sorted({name.partition("/")[0] for name in contents(pack)})
    if tool == "zip":
        subprocess.run(["unzip", "-q", pack, "-d", folder], check=True, timeout=280)
        subprocess.run(
            ["zip", "-q", "-9", "-r", again, *names], cwd=folder, check=True, timeout=280
        )
    else:
        command = [sys.executable, "-m", "zipfile"]
        subprocess.run([*command, "-e", pack, folder], check=True, timeout=280)
        subprocess.run([*command, "-c", again, *names], cwd=folder, check=True, timeout=280)
    report = verify_pack(again)
    assert (report.ok, report.container) == (True, "repacked")
    assert report.digest == verify_pack(pack).digest


@pytest.mark.requirement("evidence.container.zip64")
def test_every_entry_is_written_so_that_it_may_grow_past_four_gibibytes(pack: Path):
    pack_journal(pack)
    with zipfile.ZipFile(pack) as archive:
        assert archive.testzip() is None
        # 4.5 is the version of the format that brought large entries.
        assert {info.extract_version for info in archive.infolist()} == {45}
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert archive.namelist()[0] == FACTS


@pytest.mark.requirement("evidence.export.selection")
def test_an_unsigned_pack_says_so(pack: Path):
    pack_facts(pack, run_facts())
    report = verify_pack(pack)
    assert (report.ok, report.signer.state) == (True, "unsigned")
    with pytest.raises(ExportProblem):
        pack_facts(pack, [])
    assert ExportOptions(key=KEY).blobs is None
