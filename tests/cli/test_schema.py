"""`factwire schema`: the contracts, printed or written."""

import json
import sys
from pathlib import Path

import pytest

from factwire.conformance.report import report_files
from factwire.edge.edge_app import build_openapi
from factwire.edge.events.event_schemas import edge_files
from factwire.evidence.schemas import comparison_files, evidence_files
from factwire.facts.schemas import schema_files
from factwire.facts.schemas.schema_files import document_text
from factwire.hub import hub_app
from factwire.hub.frames.hub_asyncapi import hub_files
from factwire.projection.schemas import projection_files
from tests.cli.cli_commands import Factwire

FILES = {
    **schema_files(),
    **projection_files(),
    **comparison_files(),
    **edge_files(),
    **evidence_files(),
    **report_files(),
    **hub_files(),
    "openapi.json": document_text(build_openapi()),
    "hub-openapi.json": document_text(hub_app.build_openapi()),
}
COMMITTED = Path(__file__).resolve().parents[2] / "schemas"
NAMES = [name.removesuffix(".schema.json") for name in FILES if name.endswith(".schema.json")]


@pytest.mark.requirement("cli.schema")
def test_without_a_name_the_schema_of_a_fact_is_printed(factwire: Factwire):
    done = factwire("schema", "json")
    assert (done.code, done.out, done.err) == (0, FILES["fact.schema.json"], "")
    assert json.loads(done.out)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.requirement("cli.schema")
@pytest.mark.parametrize("name", NAMES)
def test_every_json_schema_is_printed_by_its_name(factwire: Factwire, name: str):
    assert factwire("schema", "json", "--name", name).out == FILES[f"{name}.schema.json"]


@pytest.mark.requirement("cli.schema")
@pytest.mark.parametrize(
    ("form", "filename"),
    [
        ("typescript", "factwire.d.ts"),
        ("asyncapi", "asyncapi.json"),
        ("openapi", "openapi.json"),
    ],
)
def test_the_other_contracts_are_printed(factwire: Factwire, form: str, filename: str):
    assert factwire("schema", form) == (0, FILES[filename], "")


@pytest.mark.requirement("cli.schema")
def test_the_document_of_a_hub_is_printed_by_its_name_and_may_be_missing(
    factwire: Factwire, monkeypatch: pytest.MonkeyPatch
):
    printed = factwire("schema", "openapi", "--name", "hub-openapi")
    assert printed == (0, FILES["hub-openapi.json"], "")
    monkeypatch.setitem(sys.modules, "factwire.hub", None)
    done = factwire("schema", "openapi")
    assert (done.code, done.out) == (0, FILES["openapi.json"])
    assert "factwire[hub]" in done.err


@pytest.mark.requirement("cli.schema")
def test_a_schema_is_written_to_a_file(factwire: Factwire):
    target = factwire.folder / "x.json"
    assert factwire("schema", "json", "--output", target) == (0, "", "")
    assert target.read_text("utf-8") == FILES["fact.schema.json"]


@pytest.mark.requirement("cli.schema")
def test_declarations_are_printed_by_their_name(factwire: Factwire):
    named = {name: f"{name}.d.ts" for name in ("factwire", "projection")}
    printed = {name: factwire("schema", "typescript", "--name", name).out for name in named}
    assert printed == {name: FILES[filename] for name, filename in named.items()}


@pytest.mark.requirement("cli.schema")
@pytest.mark.requirement("cli.errors.no-traceback")
def test_without_the_edge_only_documents_of_servers_are_missing(
    factwire: Factwire, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "factwire.edge.edge_app", None)
    done = factwire("schema", "openapi")
    assert (done.code, done.out) == (2, "")
    assert "install factwire[edge]" in done.err
    folder = factwire.folder / "schemas"
    assert factwire("schema", "all", "--output", folder).code == 2
    assert sorted(contents(folder)) == sorted(FILES.keys() - {"openapi.json", "hub-openapi.json"})


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in folder.iterdir()}


@pytest.mark.requirement("cli.schema")
def test_all_are_written_to_a_folder(factwire: Factwire):
    folder = factwire.folder / "new" / "schemas"
    assert factwire("schema", "all", "--output", folder).code == 0
    assert contents(folder) == FILES


@pytest.mark.requirement("schemas.current")
def test_the_committed_folder_holds_exactly_the_generated_files():
    assert sorted(contents(COMMITTED)) == sorted(FILES)


@pytest.mark.requirement("cli.schema")
@pytest.mark.requirement("cli.errors.no-traceback")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["all"], "name a folder"),
        (["json", "--name", "nonsense"], "unknown schema 'nonsense'; choose from"),
        (["json", "--name", "../fact"], "unknown schema"),
        (["json", "--name", "factwire.d.ts"], "unknown schema"),
        (["typescript", "--name", "fact"], "choose from factwire, projection"),
        (["asyncapi", "--name", "fact.schema"], "choose from asyncapi"),
        (["json", "--output", "no/such/folder/x.json"], "no/such/folder/x.json"),
        (["nonsense"], "nonsense"),
        ([], "Missing argument"),
    ],
)
def test_what_cannot_be_done_is_said(factwire: Factwire, arguments: list[str], words: str):
    done = factwire("schema", *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert "Traceback" not in done.err
