"""`factwire conformance`: what people and machines are told, and how it ends."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.cli.cli_commands import Factwire, run
from tests.cli.journal_files import make, streamed_turn
from tests.conformance.reference_provider import PROMPTS

ROOT = Path(__file__).resolve().parents[2]
AGENTS = "tests.conformance.broken_providers"
REFERENCE = "tests.conformance.reference_provider"
REDUCERS = "tests.conformance.broken_reducers"
BROKEN = ROOT / "examples" / "broken_turn.ndjson"
SOUND = ROOT / "examples" / "first_turn.ndjson"


@pytest.mark.requirement("cli.conformance")
@pytest.mark.requirement("cli.conformance.exit")
def test_an_agent_that_conforms_is_told_so(factwire: Factwire):
    done = factwire("conformance", "--provider", f"{REFERENCE}:Keeps")
    assert (done.code, done.err) == (0, "")
    assert f"conformant: {REFERENCE}:Keeps, level: runtime compatible" in done.out
    assert "0 failed" in done.out


@pytest.mark.requirement("cli.conformance")
@pytest.mark.requirement("cli.conformance.exit")
def test_what_fails_is_named_with_the_fact_that_shows_it(factwire: Factwire):
    done = factwire("conformance", "--provider", f"{AGENTS}:GuessesStatus")
    assert done.code == 1
    assert "✗ stream.status" in done.out
    assert "stream.status: tool: tool.started cannot have the status completed" in done.out
    assert "        tool.started " in done.out
    assert '"eventClass"' not in done.out
    assert "not conformant" in done.out


@pytest.mark.requirement("cli.conformance")
def test_a_recorded_stream_is_tried(factwire: Factwire):
    done = factwire("conformance", "--facts", BROKEN)
    assert done.code == 1
    assert "✗ stream.scope-ids" in done.out
    assert "tool.started needs toolCallId" in done.out
    assert factwire("conformance", "--facts", SOUND).code == 0
    assert factwire("conformance", "--facts", "-", stdin=SOUND.read_bytes()).code == 0


@pytest.mark.requirement("cli.conformance")
def test_a_fixture_is_tried_with_what_it_expects(factwire: Factwire):
    path = ROOT / "src/factwire/conformance/fixtures/text-basic.json"
    done = factwire("conformance", "--facts", path)
    assert (done.code, "✓ screen.expected" in done.out) == (0, True)


@pytest.mark.requirement("cli.conformance")
def test_reports_are_written_as_json_and_as_a_page(factwire: Factwire, tmp_path: Path):
    page = tmp_path / "report.html"
    done = factwire("conformance", "--facts", BROKEN, "--json", "--html", page)
    report = json.loads(done.out)
    assert (done.code, report["conformant"], report["subject"]["kind"]) == (1, False, "facts")
    assert "<!doctype html>" in page.read_text()


@pytest.mark.requirement("cli.conformance")
def test_only_as_far_as_was_asked_for(factwire: Factwire):
    done = factwire("conformance", "--facts", SOUND, "--level", "facts", "--json")
    assert {each["level"] for each in json.loads(done.out)["results"]} == {"facts"}


@pytest.mark.requirement("cli.conformance")
def test_prompts_can_be_given(factwire: Factwire):
    options = [f"--prompt={name}={text}" for name, text in PROMPTS.items()]
    done = factwire("conformance", "--provider", f"{REFERENCE}:Promptless", "--json", *options)
    assert (done.code, json.loads(done.out)["level"]) == (0, "runtime")


@pytest.mark.requirement("cli.conformance")
@pytest.mark.requirement("conformance.own")
def test_without_a_word_factwire_itself_is_tried_and_conforms(factwire: Factwire):
    done = factwire("conformance", "--json")
    report = json.loads(done.out)
    assert (done.code, report["level"], report["subject"]["kind"]) == (0, "runtime", "factwire")
    left = {each["id"] for each in report["results"] if each["status"] != "passed"}
    assert left == {"demo.stream.sequence", "demo.provider.read-model"}


@pytest.mark.requirement("cli.conformance.reducer")
def test_a_reducer_is_judged_by_what_its_states_show(factwire: Factwire):
    own = "factwire.conformance.reducers:factwire_reducer"
    done = factwire("conformance", "--reducer", own, "--json")
    report = json.loads(done.out)
    assert (done.code, report["conformant"], report["subject"]["kind"]) == (0, True, "reducer")
    broken = factwire("conformance", "--reducer", f"{REDUCERS}:draws_no_edges_of_calls")
    assert broken.code == 1
    assert (
        "screen.edges: action-pending: no edge leads from tool:call_1 to action:act_1" in broken.out
    )
    assert "not conformant" in broken.out


LINES = """
import json, sys
for line in sys.stdin:
    json.loads(line)
    print("{}", flush=True)
"""


@pytest.mark.requirement("cli.conformance.reducer")
def test_a_program_that_speaks_json_lines_is_judged_too(factwire: Factwire, tmp_path: Path):
    program = tmp_path / "reduce.py"
    program.write_text(LINES)
    command = f"{sys.executable} {program}"
    done = factwire("conformance", "--reducer-command", command, "--json")
    report = json.loads(done.out)
    assert (done.code, report["subject"]["name"]) == (1, command)
    assert {"screen.expected", "screen.facts-shown"} <= {
        row["id"] for row in report["requirements"] if row["status"] == "failed"
    }


@pytest.mark.requirement("conformance.coverage")
def test_what_was_judged_and_what_was_not_adds_up(factwire: Factwire):
    report = json.loads(factwire("conformance", "--facts", SOUND, "--json").out)
    total = sum(level["total"] for level in report["coverage"])
    assert total == len(report["requirements"])
    for level in report["coverage"]:
        left = sum(row["count"] for row in level["notJudged"])
        assert level["judged"] + left == level["total"]
        assert all(row["reason"] for row in level["notJudged"])


@pytest.mark.requirement("cli.conformance.errors")
@pytest.mark.requirement("cli.conformance.exit")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--provider", "nowhere:make"], "unknown_module"),
        (["--provider", f"{AGENTS}:nobody"], "unknown_factory"),
        (["--provider", f"{REFERENCE}:PROMPTS"], "not_a_provider"),
        (["--provider", f"{REFERENCE}:Keeps", "--prompt", "dance=now"], "unknown_minimum"),
        (["--provider", f"{REFERENCE}:Keeps", "--prompt", "text"], "NAME=TEXT"),
        (["--provider", f"{REFERENCE}:Keeps", "--facts", "x"], "choose one"),
        (["--reducer", "nowhere:reduce"], "unknown_module"),
        (["--reducer", f"{REFERENCE}:PROMPTS"], "not_a_reducer"),
        (["--reducer", "a:b", "--facts", "x"], "choose one"),
        (["--reducer-command", "no-such-program-anywhere"], "broken_reducer"),
        (["--reducer-command", " "], "needs a program"),
        (["--reducer-command", "'"], "cannot be split into words"),
        (["--prompt", "text=hello"], "name one with --provider"),
        (["--facts", "/nowhere/at/all"], "does not exist"),
        (["--facts", "/"], "is a folder"),
        (["--facts", str(SOUND), "--html", "/nowhere/at/all.html"], "cannot be written"),
    ],
)
def test_what_cannot_be_tried_is_said_in_one_line(
    factwire: Factwire, arguments: list[str], message: str
):
    done = factwire("conformance", *arguments)
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1


@pytest.mark.requirement("cli.conformance.errors")
@pytest.mark.parametrize(
    ("content", "message"),
    [("", "empty_stream"), ("not json", "unreadable_input"), ("5", "unreadable_input")],
)
def test_a_file_without_facts_is_an_error(factwire: Factwire, content: str, message: str):
    done = factwire("conformance", "--facts", factwire.file(content))
    assert (done.code, done.out) == (2, "")
    assert message in done.err


LINGERS = """
import asyncio, time
from tests.conformance.reference_provider import Keeps

class Lingers(Keeps):
    async def _tool(self, turn):
        asyncio.get_running_loop().run_in_executor(None, time.sleep, 600)
        async for fact in super()._tool(turn):
            yield fact
"""


@pytest.mark.requirement("conformance.time")
def test_a_thread_that_an_agent_leaves_behind_does_not_keep_the_command(tmp_path: Path):
    (tmp_path / "lingering.py").write_text(LINGERS)
    done = run(
        *("conformance", "--provider", "lingering:Lingers", "--json"),
        environment={"PYTHONPATH": f"{tmp_path}:{ROOT}"},
    )
    assert (done.code, json.loads(done.out)["conformant"]) == (0, True)


@pytest.mark.requirement("cli.conformance")
def test_a_pack_and_a_journal_are_tried_as_what_they_hold(factwire: Factwire, tmp_path: Path):
    pack = tmp_path / "run.zip"
    exported = factwire("evidence", "export", "--facts", SOUND, "--unsigned", "--output", pack)
    assert exported.code == 0
    done = factwire("conformance", "--facts", pack)
    assert (done.code, "level: projection compatible" in done.out) == (0, True)

    journal = tmp_path / "journal.db"
    make(journal, streamed_turn(1, "t1", "turn-1"), streamed_turn(20, "t2", "turn-2"))
    several = factwire("conformance", "--facts", journal)
    assert several.code == 2
    assert "choose one with --thread ID" in several.err
    report = json.loads(factwire("conformance", "--facts", journal, "--thread=t2", "--json").out)
    [schema] = [each for each in report["results"] if each["id"] == "stream.schema"]
    assert schema["status"] == "passed"


@pytest.mark.requirement("cli.conformance")
def test_the_summary_counts_only_what_an_agent_is_held_to(factwire: Factwire):
    done = factwire("conformance", "--facts", SOUND)
    counts = re.search(r"(\d+) of (\d+) requirements judged", done.out)
    assert counts is not None
    assert int(counts[1]) < int(counts[2]) < 60
