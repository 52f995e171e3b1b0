"""`factwire diff`: two runs compared on the command line, wherever they are kept."""

from pathlib import Path

import msgspec
import pytest

from factwire.evidence.pack_format import FACTS
from factwire.evidence.run_comparison import Comparison, narrow_comparison
from factwire.evidence.run_diff import compare
from factwire.facts import Fact
from tests.cli.cli_commands import Factwire, lines
from tests.cli.cli_homes import Home
from tests.cli.cli_recordings import HOSTILE, facts, turn
from tests.cli.journal_files import damage, make
from tests.evidence.compared_runs import STREAMS, TurnSpec, facts_of, stream
from tests.evidence.sample_packs import contents, pack_facts, repack, zip_content

GRANTED, DENIED = STREAMS / "approval_granted.ndjson", STREAMS / "approval_denied.ndjson"


def write_facts(factwire: Factwire, run: list[Fact], name: str) -> Path:
    return factwire.file(lines(*(msgspec.to_builtins(fact) for fact in run)), name)


def parse_output(text: str) -> Comparison:
    return msgspec.json.decode(text, type=Comparison)


@pytest.mark.requirement("cli.diff.view")
def test_what_differs_is_seen_at_a_glance_and_then_how(factwire: Factwire):
    a = [
        *(TurnSpec(prompt=f"Step {number}", answer="Done.") for number in range(5)),
        TurnSpec(prompt="Count the tests.", answer="There are 48 of them."),
        TurnSpec(prompt="Goodbye.", answer="Bye."),
    ]
    b = [*a[:5], TurnSpec(prompt="Count the tests.", answer="There are 47 of them.", tokens=200)]
    one, other = (
        write_facts(factwire, facts_of(a), "a"),
        write_facts(factwire, facts_of(b, "b"), "b"),
    )
    done = factwire("diff", one, other)
    assert (done.code, done.err) == (1, "")
    assert [line.rstrip() for line in done.out.splitlines()] == [
        f"A  {one}  7 turns · 53 facts",
        f"B  {other}  6 turns · 46 facts",
        "different  2 of 7 turns  time 52 s → 45 s, tokens 700, cost $0.7",
        "",
        "= turns 1 to 5  5 turns the same",
        "≠ turn 6      Count the tests.  answers, cost",
        "- turn 7      Goodbye.  only in A",
        "",
        "turn 6  Count the tests.  time 10 s, tokens 100 → 200, cost $0.1 → $0.2",
        "  answers",
        "    ~ assistant",
        "      text: There are 48 of them. → There are 47 of them.",
        "  cost",
        "    ~ cost",
        "      costUsd: 0.1 → 0.2",
        "      inputTokens: 100 → 200",
        "      totalTokens: 100 → 200",
    ]


@pytest.mark.requirement("cli.diff.view")
def test_long_values_and_texts_are_shown_line_by_line(factwire: Factwire):
    long = [f"Line {number} of the answer." for number in range(60)]
    other = [*long[:30], "A new line.", *long[31:]]
    a = [TurnSpec(prompt="Write down all that you know of it.", answer="\n".join(long))]
    b = [TurnSpec(prompt="Write down whatever you know of it.", answer="\n".join(other))]
    done = factwire(
        "diff",
        write_facts(factwire, facts_of(a), "a"),
        write_facts(factwire, facts_of(b, "b"), "b"),
    )
    shown = [line.strip() for line in done.out.splitlines()]
    start = shown.index("text", shown.index("answers"))
    assert shown[start + 1 :] == [
        "… 28 lines the same",
        "Line 28 of the answer.",
        "Line 29 of the answer.",
        "- Line 30 of the answer.",
        "+ A new line.",
        "Line 31 of the answer.",
        "Line 32 of the answer.",
    ]
    assert "- Write down all that you know of it." in shown
    assert "+ Write down whatever you know of it." in shown


@pytest.mark.requirement("cli.diff.exit-codes")
def test_the_same_run_is_exit_code_0(factwire: Factwire):
    done = factwire("diff", GRANTED, GRANTED)
    assert (done.code, done.out.splitlines()[2], done.err) == (0, "same", "")


@pytest.mark.requirement("cli.diff.json")
def test_with_json_the_whole_comparison_is_printed(factwire: Factwire):
    done = factwire("diff", GRANTED, DENIED, "--json")
    expected = compare(stream("approval_granted"), stream("approval_denied"))
    assert (done.code, parse_output(done.out), done.err) == (1, expected, "")


@pytest.mark.requirement("cli.diff.filters")
def test_aspects_and_turns_are_chosen(factwire: Factwire):
    whole = compare(stream("approval_granted"), stream("approval_denied"))
    done = factwire("diff", GRANTED, DENIED, "--json", "--only", "tools, answers", "--only", "cost")
    only = narrow_comparison(whole, aspects=frozenset({"tools", "answers", "cost"}))
    assert (done.code, parse_output(done.out)) == (1, only)
    assert factwire("diff", GRANTED, DENIED, "--only", "models").code == 0
    first = factwire("diff", GRANTED, DENIED, "--json", "--turn", "1")
    assert parse_output(first.out) == narrow_comparison(whole, turn=1)


@pytest.mark.requirement("cli.diff.filters")
@pytest.mark.requirement("cli.diff.exit-codes")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", ""], "--only needs an aspect; choose from prompt, outcome"),
        (["--only", " , "], "--only needs an aspect; choose from prompt, outcome"),
        (["--only", "weather"], "unknown aspect 'weather'; choose from prompt, outcome"),
        (["--turn", "9"], "neither run has a turn 9; choose 1 to 1"),
    ],
)
def test_what_there_is_not_is_refused(factwire: Factwire, arguments: list[str], words: str):
    done = factwire("diff", GRANTED, DENIED, *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


@pytest.mark.requirement("cli.diff.sides")
def test_a_side_is_a_file_standard_input_a_journal_or_one_of_its_threads(factwire: Factwire):
    runs = [*facts(turn("t1")), *facts(turn("t2", say="Not done."))]
    path = make(factwire.folder / "j.db", runs)
    both = write_facts(factwire, runs, "both.ndjson")
    only = write_facts(factwire, facts(turn("t1")), "t1.ndjson")
    expected = compare(facts(turn("t1")), facts(turn("t2", say="Not done.")))
    sides: list[tuple[str | Path, str, list[str | Path]]] = [
        (f"sqlite:{path}#t1", f"{path}#t2", []),
        ("t1", "t2", ["--journal", f"sqlite:{path}"]),
        (only, "t2", ["--journal", path]),
        (f"{both}#t1", f"sqlite:{path}#t2", []),
        ("-", f"{both}#t2", []),
    ]
    for a, b, options in sides:
        done = factwire("diff", a, b, *options, "--json", stdin=only.read_bytes())
        assert (done.code, done.err) == (1, ""), a
        assert parse_output(done.out) == expected, a


@pytest.mark.requirement("cli.diff.sides")
def test_a_side_is_an_evidence_pack(factwire: Factwire):
    pack = factwire.folder / "granted.factpack.zip"
    options = ("--facts", GRANTED, "--output", pack, "--unsigned")
    assert factwire("evidence", "export", *options).code == 0
    assert factwire("diff", pack, GRANTED).code == 0
    done = factwire("diff", pack, DENIED, "--json")
    expected = compare(stream("approval_granted"), stream("approval_denied"))
    assert (done.code, parse_output(done.out)) == (1, expected)


@pytest.mark.requirement("cli.diff.exit-codes")
@pytest.mark.requirement("cli.benchmark.compare")
@pytest.mark.parametrize("verb", [("diff",), ("benchmark", "compare")])
def test_what_cannot_be_read_is_never_called_different(factwire: Factwire, verb: tuple[str, ...]):
    whole, edited = factwire.folder / "whole.zip", factwire.folder / "edited.zip"
    pack_facts(whole, stream("approval_granted"))
    entries = contents(whole)
    repack(edited, {**entries, FACTS: entries[FACTS].replace(b"gone", b"lost", 1)})
    journal = make(factwire.folder / "j.db", facts(turn())[:5], facts(turn())[5:])
    damage(journal, 6)
    unusable: dict[str | Path, str] = {
        factwire.file(whole.read_bytes()[:900], "cut.zip"): "pack_truncated",
        factwire.file(zip_content(b"a note"), "other.zip"): "manifest_missing",
        edited: "entry_changed",
        journal: "journal_corrupt",
        factwire.file("{\n{", "broken.ndjson"): "broken.ndjson: line",
    }
    for side, words in unusable.items():
        for pair in ((side, GRANTED), (GRANTED, side)):
            done = factwire(*verb, *pair)
            assert (done.code, done.out, words in done.err) == (2, "", True), (side, done)


@pytest.mark.requirement("cli.diff.sides")
def test_how_to_choose_a_thread_is_told_as_a_side_is_written(factwire: Factwire):
    runs = [*facts(turn("t1")), *facts(turn("t2"))]
    both = write_facts(factwire, runs, "both.ndjson")
    assert f"choose one with {both}#THREAD" in factwire("diff", both, GRANTED).err
    url = f"sqlite:{make(factwire.folder / 'j.db', runs)}"
    done = factwire("diff", GRANTED, url)
    assert (done.code, "choose one with JOURNAL#THREAD" in done.err) == (2, True)
    assert "choose one with --thread ID" in factwire("project", both).err


@pytest.mark.requirement("cli.diff.sides")
def test_a_path_may_hold_the_mark_of_a_thread(factwire: Factwire):
    path = write_facts(factwire, facts(turn("t1")), "run#1.ndjson")
    assert factwire("diff", path, path).code == 0
    assert factwire("diff", f"{path}#t1", path).code == 0


@pytest.mark.requirement("cli.diff.sides")
@pytest.mark.requirement("cli.diff.exit-codes")
def test_a_side_that_is_not_there_is_named(factwire: Factwire, home: Home):
    path = make(factwire.folder / "j.db", facts(turn("t1")))
    several = write_facts(factwire, [*facts(turn("t1")), *facts(turn("t2"))], "several.ndjson")
    for arguments, words in [
        (("gone.ndjson", GRANTED), "file not found: gone.ndjson"),
        (
            ("thr_1", GRANTED),
            "thr_1 is not a file, and there is no journal to look for a thread thr_1 in",
        ),
        (("t9", "t1", "--journal", path), "the journal has no thread 't9'"),
        ((several, GRANTED), "contains several threads"),
        (("-", "-"), "standard input can be one of the two runs, not both"),
    ]:
        done = factwire("diff", *arguments)
        assert (done.code, done.out) == (2, ""), words
        assert words in done.err
    assert home.folder.is_dir()


@pytest.mark.requirement("cli.diff.sides")
def test_nothing_is_compared_with_a_note(factwire: Factwire):
    empty = factwire.file("", "empty.ndjson")
    done = factwire("diff", empty, empty)
    assert (done.code, done.out.splitlines()[2]) == (0, "same")
    assert "contains no facts" in done.err


@pytest.mark.requirement("cli.diff.harmless")
def test_nothing_in_a_fact_steers_the_terminal(factwire: Factwire):
    a = [TurnSpec(prompt=HOSTILE, answer=f"{HOSTILE} one", warnings=[HOSTILE])]
    b = [TurnSpec(prompt=HOSTILE, answer=f"{HOSTILE} two\n{HOSTILE}", artifacts=[HOSTILE])]
    one, other = (
        write_facts(factwire, facts_of(a), "a"),
        write_facts(factwire, facts_of(b, "b"), "b"),
    )
    done = factwire("diff", one, other)
    assert done.code == 1
    assert "[bold]x[/]" in done.out
    assert not set("\x1b\x07\u202e\u200b") & set(done.out + done.err)
