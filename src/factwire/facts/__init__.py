"""Facts: one typed event that every agent can be turned into and every surface drawn from.

Pure throughout: no input or output, no clock, no state beyond what a caller feeds in.
"""

from factwire.facts.capabilities import (
    MANIFEST_VERSION,
    CapabilityManifest,
    Streaming,
    manifest_issues,
)
from factwire.facts.class_rows import ClassRow
from factwire.facts.classification import KNOWN_CLASSES, classify
from factwire.facts.edge_classes import EDGE_CLASSES
from factwire.facts.fact import Fact
from factwire.facts.fixtures import (
    FIXTURE_VERSION,
    Expected,
    Fixture,
    inspect_fixture,
    is_fixture,
    validate_fixture,
)
from factwire.facts.ids import CORRELATION_IDS, id_in_payload, id_of
from factwire.facts.inputs import (
    AssetInput,
    CapabilityInput,
    InputPart,
    TextInput,
    WorkspaceInput,
    input_issues,
    read_input,
    write_input,
)
from factwire.facts.inspection import (
    Item,
    Reading,
    StreamInspector,
    inspect_fact,
    inspect_stream,
    read_and_inspect,
    read_item,
    validate_fact,
    validate_stream,
)
from factwire.facts.intake import Intake, Taken
from factwire.facts.issues import (
    INFORMATION,
    ISSUE_CODES,
    FactError,
    InvalidFacts,
    Issue,
    IssueCode,
    UnreadableInput,
    is_valid,
)
from factwire.facts.json_text import decode_json
from factwire.facts.lifecycle import (
    VERIFIER_MODES,
    VIOLATION_CODES,
    LifecycleError,
    LifecycleVerifier,
    VerifierMode,
    Violation,
    verify,
)
from factwire.facts.needs import Need, missing_needs, needs_of
from factwire.facts.notes import note_about
from factwire.facts.redaction import REDACTED, Finding, redact_text, redact_value
from factwire.facts.redactor import Redacted, Redactor, redact_fact
from factwire.facts.refs import (
    REF_KINDS,
    InvalidRef,
    Ref,
    RefKind,
    content_ref,
    parse_ref,
    ref_issue,
)
from factwire.facts.resume import (
    RESUME_CODES,
    OpenAction,
    OpenActions,
    ResumeAnswer,
    ResumeIssue,
    resume_issues,
)
from factwire.facts.rules import PAYLOAD_TYPES, class_issues, rule_issues, secret_issues
from factwire.facts.runtime_classes import RUNTIME_CLASSES
from factwire.facts.sequences import SequenceTracker
from factwire.facts.shapes import (
    REQUIRED_FIELDS,
    SHAPES,
    AnyShape,
    Shape,
    decode_fact,
    encode_fact,
    read_fact,
    shape_issues,
    shape_of,
    write_fact,
)
from factwire.facts.spill import Blob, Spill, json_characters, plan_spill
from factwire.facts.ui_classes import UI_CLASSES
from factwire.facts.ui_events import ui_events
from factwire.facts.vocabulary import kind_of, status_of

__all__ = [
    "CORRELATION_IDS",
    "EDGE_CLASSES",
    "FIXTURE_VERSION",
    "INFORMATION",
    "ISSUE_CODES",
    "KNOWN_CLASSES",
    "MANIFEST_VERSION",
    "PAYLOAD_TYPES",
    "REDACTED",
    "REF_KINDS",
    "REQUIRED_FIELDS",
    "RESUME_CODES",
    "RUNTIME_CLASSES",
    "SHAPES",
    "UI_CLASSES",
    "VERIFIER_MODES",
    "VIOLATION_CODES",
    "AnyShape",
    "AssetInput",
    "Blob",
    "CapabilityInput",
    "CapabilityManifest",
    "ClassRow",
    "Expected",
    "Fact",
    "FactError",
    "Finding",
    "Fixture",
    "InputPart",
    "Intake",
    "InvalidFacts",
    "InvalidRef",
    "Issue",
    "IssueCode",
    "Item",
    "LifecycleError",
    "LifecycleVerifier",
    "Need",
    "OpenAction",
    "OpenActions",
    "Reading",
    "Redacted",
    "Redactor",
    "Ref",
    "RefKind",
    "ResumeAnswer",
    "ResumeIssue",
    "SequenceTracker",
    "Shape",
    "Spill",
    "StreamInspector",
    "Streaming",
    "Taken",
    "TextInput",
    "UnreadableInput",
    "VerifierMode",
    "Violation",
    "WorkspaceInput",
    "class_issues",
    "classify",
    "content_ref",
    "decode_fact",
    "decode_json",
    "encode_fact",
    "id_in_payload",
    "id_of",
    "input_issues",
    "inspect_fact",
    "inspect_fixture",
    "inspect_stream",
    "is_fixture",
    "is_valid",
    "json_characters",
    "kind_of",
    "manifest_issues",
    "missing_needs",
    "needs_of",
    "note_about",
    "parse_ref",
    "plan_spill",
    "read_and_inspect",
    "read_fact",
    "read_input",
    "read_item",
    "redact_fact",
    "redact_text",
    "redact_value",
    "ref_issue",
    "resume_issues",
    "rule_issues",
    "secret_issues",
    "shape_issues",
    "shape_of",
    "status_of",
    "ui_events",
    "validate_fact",
    "validate_fixture",
    "validate_stream",
    "verify",
    "write_fact",
    "write_input",
]
