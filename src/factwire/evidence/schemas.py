"""The contracts of packs for readers in other languages.

A pack shows views of the projection as they are; its declarations take those from there.
"""

from typing import Final, get_args

import msgspec

from factwire.evidence.assertions import AnyAssertion, ReplayCase
from factwire.evidence.manifest import Manifest, Signature
from factwire.evidence.summary import EvidencePack
from factwire.evidence.verification import PackReport
from factwire.facts.schemas.declarations import Glossary, alias, contained, interface
from factwire.facts.schemas.files import document_text
from factwire.facts.schemas.json_schema import Schema, schema_documents, struct_schema
from factwire.facts.schemas.words import Spoken
from factwire.projection.schemas import SPOKEN as PROJECTION_SPOKEN

ASSERTIONS: Final[tuple[type[msgspec.Struct], ...]] = get_args(AnyAssertion)
ROOTS: Final = (EvidencePack, Manifest, Signature, PackReport, ReplayCase)

SPOKEN: Final[Spoken] = {
    **PROJECTION_SPOKEN,
    "ContextNote": {"eventClass": "EventClass", "status": "Status"},
    "DecisionNote": {"eventClass": "EventClass", "status": "Status"},
    "Verification": {"eventClass": "EventClass"},
}
_GLOSSARY: Final = Glossary(SPOKEN, {}, {"AnyAssertion": ASSERTIONS})
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
            "evidence-pack": struct_schema(EvidencePack, SPOKEN),
            "pack-manifest": struct_schema(Manifest),
            "pack-report": struct_schema(PackReport),
            "pack-signature": struct_schema(Signature),
            "replay-case": struct_schema(ReplayCase),
        }
    )


def evidence_typescript() -> str:
    """The text of `evidence.d.ts`."""
    inside = contained(ROOTS)
    own = [kind for kind in inside if kind.__module__.startswith(_OWN)]
    others = sorted(kind.__name__ for kind in inside if kind not in own)
    body = [
        *(interface(kind, _GLOSSARY) for kind in own),
        alias(
            "AnyAssertion",
            "One assertion; narrow it by `assert`.",
            [k.__name__ for k in ASSERTIONS],
        ),
        *(interface(root, _GLOSSARY) for root in ROOTS),
    ]
    text = "\n".join(body)
    words = sorted({word for row in SPOKEN.values() for word in row.values()} | {"JsonObject"})
    imports = _import([name for name in others if _mentions(text, name)], "./projection.js")
    imports += _import([word for word in words if _mentions(text, word)], "./factwire.js")
    return _PRELUDE + imports + "\n" + text


def _import(names: list[str], file: str) -> str:
    lines = "".join(f"  {name},\n" for name in names)
    return f'import type {{\n{lines}}} from "{file}";\n'


def _mentions(text: str, name: str) -> bool:
    return any(f"{before}{name}{after}" in text for before in ": <(|" for after in ";[,>)| ")
