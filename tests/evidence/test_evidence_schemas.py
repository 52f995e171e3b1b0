"""The documents of a pack are what their schemas say, and their declarations compile strictly."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from factwire.evidence import parse_case, verify_pack
from factwire.evidence.pack_format import MANIFEST, SIGNATURE, SUMMARY
from factwire.evidence.schemas import evidence_schemas, evidence_typescript
from factwire.facts.schemas import typescript
from factwire.projection.schemas import projection_typescript
from tests.evidence.sample_packs import CASE, contents, pack_journal
from tests.typescript import compile_strictly

SCHEMAS = evidence_schemas()

USES = """\
import type { AnyAssertion, EvidencePack, Manifest, PackReport, ReplayCase } from "./evidence";
import type { ThreadReadModel, TimelineEntry } from "./projection";

export const threads = (pack: EvidencePack): ThreadReadModel[] => pack.threads;
export const last = (pack: EvidencePack): TimelineEntry | undefined => pack.timeline.at(-1);
export const names = (manifest: Manifest): string[] => manifest.entries.map((each) => each.name);
export const who = (report: PackReport): string => report.signer.name ?? report.signer.state;
export function text(assertion: AnyAssertion): string {
  switch (assertion.assert) {
    case "answer.contains":
    case "answer.equals":
      return assertion.text;
    case "count":
      return assertion.eventClass;
    default:
      return assertion.assert;
  }
}
export const wrong: ReplayCase = {
  name: "case",
  // @ts-expect-error there is no such assertion
  assertions: [{ assert: "answer.rhymes" }],
};
// @ts-expect-error a pack that came from a file has no journal
export const epoch = (pack: EvidencePack): string => pack.journal.epoch;
"""


def faults(name: str, document: bytes) -> list[str]:
    validator: Any = Draft202012Validator(SCHEMAS[f"{name}.schema.json"])
    return [error.message for error in validator.iter_errors(msgspec.json.decode(document))]


@pytest.mark.requirement("evidence.schemas")
def test_every_document_of_a_pack_is_what_its_schema_says(tmp_path: Path):
    path = tmp_path / "p.zip"
    pack_journal(path)
    entries = contents(path)
    assert faults("evidence-pack", entries[SUMMARY]) == []
    assert faults("pack-manifest", entries[MANIFEST]) == []
    assert faults("pack-signature", entries[SIGNATURE]) == []
    assert faults("pack-report", msgspec.json.encode(verify_pack(path))) == []
    case = msgspec.json.encode({"name": "case", "assertions": CASE})
    assert faults("replay-case", case) == []
    assert parse_case(case, "case").name == "case"
    assert faults("replay-case", case.replace(b"answer.equals", b"answer.rhymes"))
    assert faults("evidence-pack", b"{}")


@pytest.mark.requirement("evidence.schemas")
def test_the_declarations_compile_and_refuse_wrong_uses(tmp_path: Path):
    declarations = {
        "factwire.d.ts": typescript(),
        "projection.d.ts": projection_typescript(),
        "evidence.d.ts": evidence_typescript(),
    }
    assert compile_strictly(tmp_path, declarations, USES) == []
