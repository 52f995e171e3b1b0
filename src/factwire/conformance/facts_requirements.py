"""What `factwire.facts` promises: facts, fixtures, refs, schemas and the lifecycle verifier."""

from typing import Final

from factwire.conformance.suite_requirements import Requirement, requirements

_SHAPES: Final = requirements(
    "facts.md §1",
    {
        "facts.shapes.required": "Each wire shape names the fields without which it is refused.",
        "facts.shapes.detection": "The shape of an object is found by the fields only it has.",
        "facts.shapes.round-trip": "A fact written in a shape and read again is the same fact.",
        "facts.shapes.conversion": "A fact that passes through another shape loses nothing.",
        "facts.shapes.repeated-events": "Two events of a stream that name no id are two "
        "events, and get the same ids each time it is read.",
        "facts.shapes.null-is-absent": "A known field that is null counts as absent.",
        "facts.shapes.fast-is-slow": "JSON text and the object it decodes to are judged alike.",
        "facts.aliases": "Four other spellings of classes become the standard ones on the way in.",
        "facts.ids.list": "Every correlation id has a field of its own on a fact.",
        "facts.ids.lookup": "An id is found at the top level first, then in the payload, in camel "
        "and snake case and under its other names.",
        "facts.kind-default": "A fact that names only a class gets its kind from the first word.",
        "facts.status-default": "A fact that names only a class gets its status from the last "
        "word.",
        "facts.title-default": "A fact without a title is titled with its class.",
        "facts.legacy-terminals": "Old spellings of a turn's end are refused.",
        "facts.outcome-mismatch": "A status or an error flag that contradicts the class is an "
        "issue.",
        "facts.unknown-fields": "Top-level fields that nobody knows survive every round trip.",
        "facts.unknown-classes": "A class that nobody knows is kept as it is.",
        "facts.sequence.range": "A sequence is a whole number every reader keeps exact, from zero "
        "in runtime events.",
        "facts.text-increments": "An increment and a whole text stand under different keys.",
    },
)

_WORDS: Final = requirements(
    "facts.md §2",
    {
        "vocabulary.words": "Every list of words is complete, in order and without repeats.",
        "vocabulary.open": "A word outside its list is kept and makes nothing invalid.",
        "vocabulary.runtime-classes": "Every runtime class has a row and a family.",
        "vocabulary.ui-classes": "Every Agent UI class has a row.",
        "classification.rows": "Every row uses words of the vocabulary.",
        "classification.fill": "Classification fills only what the source left open.",
        "classification.unknown": "What a table cannot know is the word unknown.",
        "payloads.types": "Known payload fields have the type that a reader relies on.",
    },
)

_UI: Final = requirements(
    "seed 002",
    {
        "ui.agent-runtime-profile": "The facts of a runtime spine become the UI events their row "
        "names.",
        "ui.source-ideas": "Every idea of the mapping table has a runtime class that becomes its "
        "UI classes.",
        "ui.complete": "Every runtime class becomes at least one UI event of a known class.",
        "ui.ids-kept": "A UI event keeps every id, the payload and the order of its fact.",
        "ui.artifact-card": "A tool fact that names an artifact also is an artifact event.",
        "ui.never-promoted": "A fact that lacks what a UI class needs is a diagnostic or a status, "
        "never that class.",
        "ui.unknown-class": "A class that nobody knows becomes a diagnostic.",
        "ui.stable": "A UI event stays the UI event that it is.",
        "ui.foreign": "A UI event of another maker means what its class, status and phase state.",
        "ui.round-trip": "Read again, the UI events of a fact are that fact: the same screen, and "
        "nothing twice.",
    },
)

_NEEDS: Final = requirements(
    "facts.md §2 required ids",
    {
        "needs.tool": "Tool facts name their call; the catalog needs none.",
        "needs.action": "Action facts name their action.",
        "needs.artifact": "Artifact facts name an artifact, by id or by refs.",
        "needs.evidence": "Evidence facts name evidence, by id or by refs.",
        "needs.review": "Review facts name the review as well as its evidence.",
        "needs.file-read": "A file that was read has a path.",
        "needs.file-changed": "A file that was changed has a path and an artifact.",
        "needs.patch": "Patch facts name a patch or a call; a failed one its category.",
        "needs.command": "Command facts name a command or a call; output has a ref, an exit a code "
        "or a status.",
        "needs.test": "Test facts name a run or a call; a completed one its result.",
        "needs.reason-code": "A block by the sandbox and a denied permission give a reason code.",
        "needs.task": "Task facts name the task, attempts also the run or the attempt.",
        "needs.subagent": "Subagent facts name the subagent and the task.",
        "needs.handoff": "Handoff facts name the handoff, at the top level or in the payload.",
        "needs.runtime-event-scope": "In runtime events, five families name thread and turn.",
    },
)

_VALIDATION: Final = requirements(
    "facts.md §3",
    {
        "validation.schema_mismatch": "A missing field, a wrong type and a legacy terminal are "
        "mismatches.",
        "validation.missing_scope_id": "A fact that lacks an id of its class is reported at it.",
        "validation.timestamp": "A time that is none by RFC 3339 is a schema_mismatch.",
        "validation.sequence_gap": "A sequence that does not follow the one before is a gap.",
        "validation.sequence_violation": "What the lifecycle verifier finds is an issue of the "
        "fact that does it.",
        "validation.secret_leak_risk": "Keys that name a secret and values that are one are "
        "reported at any depth; counters are not.",
        "validation.large_payload_inline": "A payload or a preview over its limit is reported.",
        "validation.unknown_event_type": "An unknown class is information and leaves a fact valid.",
        "validation.paths": "An issue stands at the exact place, also inside streams and fixtures.",
        "validation.collector": "The collector returns issues for any input and raises nothing.",
        "validation.strict": "The strict variant raises one error that carries every issue.",
        "validation.refs": "A ref that is a path, inline data or a secret is reported.",
        "fixtures.fields": "A fixture's own fields are held to its format.",
        "fixtures.events": "The events of a fixture are inspected as a stream, in place.",
        "fixtures.read-model": "What an initial read model lists as open may be closed, and what "
        "it covers may come again.",
        "fixtures.declared-gaps": "A fixture that expects a gap or a repair may have holes.",
        "sequences.beside-threads": "An Edge's own facts stand in no thread and need no sequence.",
        "sequences.start-anywhere": "The first fact of a thread may have any sequence.",
        "sequences.per-thread": "Every thread has its own order; subagents share their thread's.",
        "sequences.unnamed-thread": "A fact without a thread belongs to the one before it.",
        "sequences.unassigned": "A fact without a sequence is neither a gap nor counted.",
        "sequences.repaired": (
            "A repair settles the gaps in the range that it states, if it carries the messages of "
            "that range or the missing facts came after all. A repair that carries nothing settles "
            "nothing."
        ),
        "sequences.bounded": "Following many threads and gaps takes bounded memory.",
        "sequences.invalid-facts": "A refused fact still holds its place in the order.",
        "validation.inline-size": "Title, detail, refs and unknown fields are held to the limit of "
        "a payload.",
        "validation.secret-places": "A secret in a title, a detail, a ref or an unknown field is "
        "reported at it.",
        "validation.split-secrets": "A secret that is split over the pieces of a text is reported.",
        "reading.lenient": "A reader of files fills in what seeds 000 and 001 leave out, from the "
        "file alone, and remarks it.",
        "reading.gate-strict": "What a reader of files fills in is refused at the gate.",
    },
)

_REDACTION: Final = requirements(
    "facts.md §3",
    {
        "redaction.key": "The value under a key that names a secret is replaced.",
        "redaction.value": "A value that is a secret is replaced, whatever its key.",
        "redaction.nested": "Secrets are found at any depth of lists and objects.",
        "redaction.idempotent": "Redacting twice is redacting once.",
        "redaction.split-deltas": "A secret split over consecutive deltas of a text is found.",
        "redaction.linear-time": "Searching takes time linear in the text, for hostile text too.",
        "redaction.counters-untouched": "Counters that merely mention tokens stay as they are.",
        "redaction.named": "A value that a field or an item beside it names a secret is replaced.",
        "redaction.foreign-files": "A secret anywhere in a file comes out of no command.",
        "redaction.recordings": "Redacting a complete recording redacts each text as a whole and "
        "loses none of it.",
        "redaction.running-texts": "A text that arrives in pieces is redacted as a whole, in facts "
        "of any class, and shown to its end.",
        "redaction.import": "Importing a journal redacts it; one without secrets keeps its bytes.",
        "redaction.ways-out": "No command, import or pack shows a secret or two halves of one.",
        "redaction.spans": "In a command a mask covers nothing that a shell would read as a sign.",
        "redaction.own": "The operator's own patterns and never-stored values are replaced in "
        "every form and across every split; a pattern without a linear search is refused.",
        "redaction.own-settings": "Own patterns and never-stored values come from settings, add up "
        "over all sources, and are shown and kept nowhere.",
        "redaction.own-everywhere": "What the operator names comes out of no route, log, file, "
        "pack or command.",
        "redaction.edge-requests": "A secret in any text of any request to an Edge is kept in no "
        "file and shown in no answer; one in an id is refused.",
        "redaction.recall": "Of secrets made by rule 95 in 100 of common kinds and 80 in 100 of "
        "rarer ones are hidden, and at most 2 in 100 look-alikes.",
        "redaction.digests": "A digest is not hidden, however it begins.",
        "redaction.lazy": "A pattern of the table of secrets is compiled when it is first used.",
        "spill.fits": "A payload that was spilled fits the limit.",
        "spill.nothing-lost": "The blobs and the smaller payload together hold the whole payload.",
        "spill.refs-verify": "Every blob is stored under the hash of its content.",
        "spill.preview": "A preview is the beginning of its content, at most 512 characters.",
        "spill.idempotent": "A payload that fits is left alone.",
        "spill.keeps-needs": "A fact that was spilled still carries what its class needs.",
        "spill.note": "What was spilled is noted in a fact of its own.",
        "intake.mends": "Taking a fact redacts and spills instead of refusing.",
        "intake.refuses": "Taking a fact refuses what no mending makes valid, without a trace.",
    },
)

_CONTRACTS: Final = requirements(
    "docs/intake.md, docs/schemas.md",
    {
        "refs.content-addressed": "A ref is the kind and the hash of its content.",
        "refs.kinds": "There are six kinds of refs, and other forms are refused.",
        "refs.no-paths": "A ref is never a path, a file URL or a home folder.",
        "refs.no-inline-data": "A ref never holds the content itself.",
        "refs.no-secrets": "A ref never holds a secret.",
        "refs.found": "Every ref of a fact is found, in any field and either spelling.",
        "resume.covers-all": "A resume answers every open action of its turn.",
        "resume.codes": "Unknown, repeated and expired answers are distinguished.",
        "resume.open-actions": "Open actions are those asked for and not closed, in order.",
        "capabilities.unknown": "What a manifest does not say is unknown, not no.",
        "capabilities.words": "Words outside the vocabulary are information.",
        "capabilities.contradictions": "Claims that contradict each other are mismatches.",
        "schemas.json": "The types are exported as JSON Schema that facts in each shape satisfy.",
        "schemas.typescript": "The types are exported as TypeScript declarations.",
        "schemas.asyncapi": "The streams are described in AsyncAPI 3.",
        "schemas.current": "The committed schemas are those that the types give.",
    },
)

_INPUTS: Final = requirements(
    "seed 003",
    {
        "inputs.text": "Text travels inline, as it was written.",
        "inputs.assets": "Images, sound, film and documents travel as refs.",
        "inputs.workspace": "Objects of the application travel as workspace refs.",
        "inputs.capabilities": "Sensitive attachments travel as capability refs.",
        "inputs.refused": "Bytes, data URLs, local paths and unknown parts are refused in place.",
        "inputs.carried": "Attachments, parts, queued turns and answers in facts are held to the "
        "same rules.",
    },
)

_FUZZ: Final = requirements(
    "guarantees R11",
    {
        "fuzz.decoder": "No input makes the decoder raise anything but its documented errors.",
        "fuzz.inspector": "No input makes the inspector raise anything.",
    },
)

FACTS_REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *_SHAPES,
    *_WORDS,
    *_UI,
    *_NEEDS,
    *_VALIDATION,
    *_REDACTION,
    *_CONTRACTS,
    *_INPUTS,
    *_FUZZ,
)


LIFECYCLE_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
    "facts.md §3 lifecycle verifier",
    {
        "lifecycle.duplicate_event_id": "An id that came before is reported.",
        "lifecycle.tool_result_without_start": "A result needs an open tool.",
        "lifecycle.tool_failed_without_start": "A tool's failure needs an open tool.",
        "lifecycle.patch_terminal_without_start": "A patch's end needs an open patch.",
        "lifecycle.command_output_without_start": "Output needs an open command.",
        "lifecycle.command_exited_without_start": "An exit needs an open command.",
        "lifecycle.test_completed_without_start": "A test's end needs an open test.",
        "lifecycle.action_resolved_without_request": "Closing an action needs an open one.",
        "lifecycle.tool_started_already_active": "An open tool cannot be started.",
        "lifecycle.patch_started_already_active": "An open patch cannot be started.",
        "lifecycle.command_started_already_active": "An open command cannot be started.",
        "lifecycle.test_started_already_active": "An open test cannot be started.",
        "lifecycle.action_required_already_active": "An open action cannot be asked for again.",
        "lifecycle.tool_unclosed_at_turn_end": "A turn does not end over an open tool.",
        "lifecycle.patch_unclosed_at_turn_end": "A turn does not end over an open patch.",
        "lifecycle.command_unclosed_at_turn_end": "A turn does not end over an open command.",
        "lifecycle.test_unclosed_at_turn_end": "A turn does not end over an open test.",
        "lifecycle.action_unresolved_at_turn_end": "A turn does not end over an open action.",
        "lifecycle.execution_after_turn_terminal": "Execution does not follow a turn's end.",
        "lifecycle.turn_terminal_repeated": "A turn ends once.",
        "lifecycle.codes": "There are no codes but these.",
        "lifecycle.unclosed-order": "What is unclosed is reported family by family, then cleared.",
        "lifecycle.reopen": "An id that was closed may be opened again.",
        "lifecycle.after-terminal": "Snapshots, state, artifacts, evidence and sessions may follow "
        "a turn's end.",
        "lifecycle.per-turn": "What is open in one turn says nothing about another.",
        "lifecycle.incompleteness": "A stream that simply stops is not wrong.",
        "lifecycle.modes": "Failing closed raises and takes nothing; collecting goes on; off does "
        "not look.",
        "lifecycle.incremental": "Fact by fact, at once and in any split, the answer is the same.",
        "lifecycle.duplicates-change-nothing": "A repeated fact is reported and has no effect.",
        "lifecycle.bounded": "Memory does not grow with the stream.",
        "lifecycle.turn-owner": "The end of somebody else's turn does not end the thread's own.",
        "lifecycle.subjects": "A patch, command or test is known by its own id, else by its call, "
        "in camel and snake case.",
        "lifecycle.action_already_decided": "An action that was answered is not answered "
        "otherwise; the same answer again is a repeat.",
        "lifecycle.tool_result_after_denial": "A call that was denied, or whose request "
        "expired, has no successful result.",
    },
)
