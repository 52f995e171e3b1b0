"""The contracts of packs and comparisons for readers in other languages.

A pack shows views of the projection as they are; its declarations take those from there.
"""

from typing import Final, get_args

import msgspec

from factwire.evidence.benchmark_trials import BenchmarkComparison
from factwire.evidence.pack_format import EvidencePack, Manifest, Signature
from factwire.evidence.replay_cases import AnyAssertion, ReplayCase
from factwire.evidence.run_comparison import Comparison
from factwire.evidence.verification import PackReport
from factwire.facts.schemas.json_schema import Schema, schema_documents, struct_schema
from factwire.facts.schemas.schema_files import document_text
from factwire.facts.schemas.typescript import Glossary, nested_structs, write_alias, write_interface
from factwire.facts.schemas.wire_types import FieldVocabularies
from factwire.projection.schemas import SPOKEN as PROJECTION_SPOKEN

ASSERTION_TYPES: Final[tuple[type[msgspec.Struct], ...]] = get_args(AnyAssertion)
SCHEMA_ROOTS: Final = (EvidencePack, Manifest, Signature, PackReport, ReplayCase)

PACK_WORDS: Final[FieldVocabularies] = {
    **PROJECTION_SPOKEN,
    "ContextNote": {"eventClass": "EventClass", "status": "Status"},
    "DecisionNote": {"eventClass": "EventClass", "status": "Status"},
    "Verification": {"eventClass": "EventClass"},
}
_GLOSSARY: Final = Glossary(PACK_WORDS, {}, {"AnyAssertion": ASSERTION_TYPES})
_OWN: Final = "factwire.evidence"

_PRELUDE: Final = """\
// Generated from Factwire's types by `factwire schema typescript --name evidence`; change those
// instead. projection.d.ts and factwire.d.ts belong beside this file.

"""


def evidence_files() -> dict[str, str]:
    """Every file about packs: its name and its text."""
    files = {name: document_text(document) for name, document in evidence_schemas().items()}
    return files | {"evidence.d.ts": evidence_typescript()}


def evidence_schemas() -> dict[str, Schema]:
    """Every JSON Schema document about packs, by its file name."""
    return schema_documents(
        {
            "evidence-pack": struct_schema(EvidencePack, PACK_WORDS),
            "pack-manifest": struct_schema(Manifest),
            "pack-report": struct_schema(PackReport),
            "pack-signature": struct_schema(Signature),
            "replay-case": struct_schema(ReplayCase),
        }
    )


def evidence_typescript() -> str:
    """The text of `evidence.d.ts`."""
    inside = nested_structs(SCHEMA_ROOTS)
    own = [kind for kind in inside if kind.__module__.startswith(_OWN)]
    others = sorted(kind.__name__ for kind in inside if kind not in own)
    body = [
        *(write_interface(kind, _GLOSSARY) for kind in own),
        write_alias(
            "AnyAssertion",
            "One assertion; narrow it by `assert`.",
            [k.__name__ for k in ASSERTION_TYPES],
        ),
        *(write_interface(root, _GLOSSARY) for root in SCHEMA_ROOTS),
    ]
    text = "\n".join(body)
    words = sorted({word for row in PACK_WORDS.values() for word in row.values()} | {"JsonObject"})
    imports = _write_import(
        [name for name in others if _has_mention(text, name)], "./projection.js"
    )
    imports += _write_import([word for word in words if _has_mention(text, word)], "./factwire.js")
    return _PRELUDE + imports + "\n" + text


def _write_import(names: list[str], file: str) -> str:
    lines = "".join(f"  {name},\n" for name in names)
    return f'import type {{\n{lines}}} from "{file}";\n'


def _has_mention(text: str, name: str) -> bool:
    return any(f"{before}{name}{after}" in text for before in ": <(|" for after in ";[,>)| ")


def comparison_schemas() -> dict[str, Schema]:
    """Every JSON Schema document about comparisons, by its file name."""
    return schema_documents(
        {
            "comparison": struct_schema(Comparison),
            "benchmark-comparison": struct_schema(BenchmarkComparison),
        }
    )


def comparison_files() -> dict[str, str]:
    """The same as texts of files."""
    return {name: document_text(document) for name, document in comparison_schemas().items()}
