"""The rules of seed 003: the parts of messages, what they hold, and what they never hold."""

from typing import Final

from factwire.conformance.seed_rule import Rule, rules

_TYPES: Final = rules(
    "S003-PART",
    "seed 003, part types and model",
    [
        (
            "Parts are readable content and references; all state has owners of its own.",
            "seed.parts.exact projection.diagnostics.apart",
        ),
        (
            "Text comes from input, increments and final text; the final one settles it.",
            "projection.surface.text projection.text.final projection.message.user",
        ),
        (
            "Reasoning is its summary; the raw chain of thought is not shown.",
            "projection.reasoning projection.surface.reasoning",
        ),
        (
            "A tool is a preview with a ref, and no copy of its output.",
            "projection.tool.preview seed.provider.tool",
        ),
        ("An artifact is a card that refers to it.", "projection.artifact.card"),
        ("Evidence is a citation that refers to it.", "projection.evidence.items"),
        ("A diagnostic is a way to it, and none of its words.", "projection.diagnostics.apart"),
        *(
            (f"A part of type {name} has the fields {fields}.", "seed.parts.exact")
            for name, fields in (
                ("text", "partId, messageId, text, state"),
                ("reasoning", "partId, summary, encryptedRef"),
                ("tool-preview", "partId, toolCallId, outputRef, status"),
                ("artifact-card", "partId, artifactId, versionId"),
                ("evidence-citation", "partId, evidenceId, verdict"),
                ("diagnostic-ref", "partId, diagnosticId"),
            )
        ),
        (
            "Messages can be turned into those of the AI SDK.",
            "projection.ai-sdk.valid projection.ai-sdk.round-trip",
        ),
    ],
)

_FINAL: Final = rules(
    "S003-FIN",
    "seed 003, streaming and final content",
    [
        (
            "Increments, then the final text: one part that ends.",
            "projection.text.final projection.scenario.final-reconciles",
        ),
        (
            "A final text is never added to what streamed.",
            "projection.text.final projection.text.exact",
        ),
        (
            "It confirms, mends or replaces the part of the same message and part id.",
            "projection.message.key projection.text.final",
        ),
    ],
)

_INPUT: Final = rules(
    "S003-IN",
    "seed 003, multimodal input",
    [
        ("Text is a text part of the user's.", "inputs.text projection.message.user"),
        (
            "Images, sound, film and documents are refs, never bytes.",
            "inputs.assets inputs.refused",
        ),
        ("Objects of the business are refs that the application resolves.", "inputs.workspace"),
        (
            "Sensitive attachments are capability refs; no path and no secret.",
            "inputs.capabilities inputs.refused",
        ),
    ],
)

_WORKERS: Final = rules(
    "S003-WRK",
    "seed 003, worker notifications",
    [
        (
            "A notification on the user's channel is no message of the user's.",
            "projection.notification projection.scenario.notification",
        ),
        (
            "It is on the team's surface, with refs to result and transcript.",
            "projection.scenario.notification",
        ),
    ],
)

_PROHIBITED: Final = rules(
    "S003-NOT",
    "seed 003, prohibitions",
    [
        (
            "Kinds, success and decisions are not parsed from text.",
            "seed.prose.reworded projection.scenario.unknown-artifact",
        ),
        (
            "Increments of reasoning are not the answer.",
            "projection.surface.reasoning seed.surfaces.text",
        ),
        (
            "Diagnostics and raw payloads are not in the transcript.",
            "projection.diagnostics.apart seed.surfaces.text",
        ),
        ("Parts hold no collapse, focus or selected tab.", "seed.parts.exact"),
    ],
)

RULES_003: Final[tuple[Rule, ...]] = (*_TYPES, *_FINAL, *_INPUT, *_WORKERS, *_PROHIBITED)
