"""Reports, the pytest suite for authors, and agents that cannot be had."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from factwire.conformance import (
    ConformanceError,
    NotAProvider,
    encode_report,
    html_report,
    load_factory,
    report_schema,
    try_facts,
    try_provider,
)
from factwire.conformance.report import report_files
from tests.conformance import broken_providers as agents
from tests.conformance.reference_provider import Keeps, Reference

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "</pre><script src=https://example.org/x></script><img src=x onerror=alert(1)>&\ud800"


def hostile_report() -> Any:
    event = {
        "id": HOSTILE[:-1],
        "kind": "tool",
        "status": "completed",
        "title": HOSTILE[:-1],
        "createdAt": "2026-06-10T09:00:00Z",
        "schemaVersion": "v",
        "runtimeId": "r",
        "sequence": 1,
        "eventClass": "tool.started",
        "payload": {"toolName": HOSTILE[:-1]},
    }
    return try_facts([event], name=HOSTILE)


class Page(HTMLParser):
    """What a browser would see: every tag with its attributes, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.requirement("conformance.report.html")
def test_the_page_loads_nothing_and_shows_what_agents_wrote_as_text():
    page = html_report(hostile_report())
    seen = Page(page)
    assert {tag for tag, _ in seen.tags} & {"script", "img", "link", "iframe", "object"} == set()
    attributes = {name for _, tag_attributes in seen.tags for name in tag_attributes}
    assert attributes & {"src", "href", "onerror", "onclick", "style"} == set()
    assert "url(" not in page
    assert "<script src=https://example.org/x>" in seen.text
    policies = [
        tag_attributes["content"]
        for _, tag_attributes in seen.tags
        if tag_attributes.get("http-equiv")
    ]
    assert [policy and policy.split(";")[0] for policy in policies] == ["default-src 'none'"]
    page.encode("utf-8")


@pytest.mark.requirement("conformance.report.html")
def test_the_page_tells_what_failed_with_its_fact_and_what_was_not_tried():
    page = Page(html_report(try_provider(agents.GuessesStatus, name="mine", seconds=20.0)))
    assert "Not conformant" in page.text
    assert "tool.started cannot have the status completed" in page.text
    assert '"eventClass": "tool.started"' in page.text
    assert re.search(r"\d+ not judged, and why", page.text)
    assert "prefers-color-scheme: dark" in page.text


@pytest.mark.requirement("conformance.report.html")
def test_a_page_without_failures_has_no_list_of_them():
    page = Page(html_report(try_provider(Keeps, name="mine", seconds=20.0)))
    assert "What failed" not in page.text
    assert "Runtime compatible" in page.text


@pytest.mark.requirement("conformance.report.json")
@pytest.mark.parametrize("make", [Keeps, agents.LeaksSecret, agents.NeverAsks])
def test_the_report_in_json_is_what_its_schema_says(make: type[Reference]):
    report = try_provider(make, name="mine", seconds=20.0)
    document = msgspec.json.decode(encode_report(report))
    schema = report_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    assert document["schemaVersion"] == "factwire-conformance/v1"
    assert document["conformant"] is (make is Keeps)


SUITE = """
from factwire.conformance.pytest import conformance_suite
from tests.conformance.broken_providers import InlinesALittle

test_my_agent = conformance_suite(InlinesALittle)
"""


def author_runs(folder: Path, suite: str) -> "subprocess.CompletedProcess[str]":
    """An author's own test run, as a process of its own."""
    (folder / "test_agent.py").write_text(suite)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "-q", "test_agent.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.requirement("conformance.pytest")
def test_each_requirement_is_a_test_that_passes_fails_with_the_fact_or_is_skipped(tmp_path: Path):
    done = author_runs(tmp_path, SUITE)
    assert done.returncode == 1
    assert "PASSED test_agent.py::test_my_agent[provider.approval]" in done.stdout
    assert "FAILED test_agent.py::test_my_agent[provider.tool]" in done.stdout
    assert "1 failed" in done.stdout
    assert "no output is behind a ref" in done.stdout
    assert '"eventClass":"tool.result"' in done.stdout
    assert re.search(r"SKIPPED .*no fact states a ref", done.stdout)


MODULES = {
    "fails_to_load": "raise RuntimeError('no key')\n",
    "leaves": "import sys\nsys.exit(3)\n",
    "has_things": (
        "def raises():\n    raise ValueError('no key')\n"
        "def nothing():\n    return None\n"
        "number = 5\n"
        "class Half:\n    pass\n"
        "def leaves():\n    raise SystemExit(4)\n"
        "from tests.conformance.reference_provider import Keeps\n"
        "class Awaited(Keeps):\n    async def start_turn(self, turn):\n        return None\n"
    ),
}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


@pytest.mark.usefixtures("modules")
@pytest.mark.requirement("conformance.subjects")
@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("no colon", "unknown_factory"),
        (":factory", "unknown_factory"),
        ("module:", "unknown_factory"),
        ("there.is.none:make", "unknown_module"),
        ("fails_to_load:make", "unknown_module"),
        ("leaves:make", "unknown_module"),
        ("has_things:absent", "unknown_factory"),
        ("has_things:leaves", "broken_factory"),
        ("has_things:Awaited", "not_a_provider"),
        ("has_things:raises", "broken_factory"),
        ("has_things:nothing", "not_a_provider"),
        ("has_things:number", "not_a_provider"),
        ("has_things:Half", "not_a_provider"),
    ],
)
def test_an_agent_that_cannot_be_had_is_an_error_with_a_code(where: str, code: str):
    with pytest.raises(ConformanceError) as error:
        load_factory(where)()
    assert error.value.code == code


@pytest.mark.usefixtures("modules")
@pytest.mark.requirement("conformance.subjects")
@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("has_things:Half", "no start_turn, no cancel_turn, no respond_action, no read_thread"),
        ("has_things:Awaited", "must be an async generator (use yield), got a coroutine"),
        ("has_things:number", "got a value of type int"),
    ],
)
def test_what_is_no_provider_is_told_with_all_that_it_lacks(where: str, message: str):
    with pytest.raises(NotAProvider) as error:
        load_factory(where)()
    assert str(error.value).endswith(message)


@pytest.mark.requirement("conformance.subjects")
def test_a_factory_a_class_and_an_agent_itself_can_be_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(agents, "agent", Keeps(), raising=False)
    made = load_factory("tests.conformance.reference_provider:Keeps")()
    assert isinstance(made, Keeps)
    assert load_factory("tests.conformance.broken_providers:agent")() is vars(agents)["agent"]


class OddPrompts(Keeps):
    conformance_prompts = {"poem": "write one"}  # noqa: RUF012 - as an author may write


@pytest.mark.requirement("conformance.subjects")
@pytest.mark.parametrize("prompts", [None, {"text": ""}, {"dance": "please"}])
def test_a_prompt_that_is_for_nothing_is_an_error(prompts: dict[str, str] | None):
    make = OddPrompts if prompts is None else Keeps
    with pytest.raises(ConformanceError) as error:
        try_provider(make, name="mine", prompts=prompts)
    assert error.value.code == "unknown_minimum"


@pytest.mark.requirement("conformance.report.json")
def test_the_schema_is_kept_as_a_file():
    for name, text in report_files().items():
        assert (ROOT / "schemas" / name).read_text("utf-8") == text


BROKEN_SUITE = """
from factwire.conformance.pytest import conformance_suite

calls = []


def make():
    calls.append(1)
    raise RuntimeError("no key")


test_my_agent = conformance_suite(make)


def test_it_was_made_once():
    assert len(calls) == 1
"""


@pytest.mark.requirement("conformance.pytest")
def test_an_agent_that_cannot_be_made_is_tried_once_and_says_why(tmp_path: Path):
    done = author_runs(tmp_path, BROKEN_SUITE)
    assert "RuntimeError: no key" in done.stdout
    assert "1 passed" in done.stdout
