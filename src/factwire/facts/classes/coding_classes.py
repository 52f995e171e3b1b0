"""Classes of work on a machine: processes, commands, files, patches and tests."""

from typing import Final

from factwire.facts.classes.payloads import (
    FileChangePayload,
    PatchPayload,
    ProcessPayload,
    TestRunPayload,
)
from factwire.facts.classes.required_fields import (
    ARTIFACT,
    COMMAND,
    EXIT_CODE,
    FAILURE_CATEGORY,
    OUTPUT_REF,
    PATCH,
    PATH,
    RESULT,
    TEST_RUN,
)
from factwire.facts.classes.specification import (
    Family,
    TextEnd,
    TextPieces,
    closes,
    opens,
    row,
    uses,
)

FAMILIES: Final = (
    Family("process", payload=ProcessPayload, ui_fallback="run.status"),
    Family("command", kind="tool", payload=ProcessPayload, requires=(COMMAND,), is_execution=True, ui_fallback="run.status"),
    Family("file", kind="tool", payload=FileChangePayload, is_execution=True, ui_fallback="run.status"),
    Family("patch", kind="tool", payload=PatchPayload, requires=(PATCH,), is_execution=True, ui_fallback="run.status"),
    Family("test", kind="tool", payload=TestRunPayload, requires=(TEST_RUN,), is_execution=True, ui_fallback="run.status"),
)  # fmt: skip

CLASSES: Final = (
    row("process.started", "runtime run acting inline_process transcript", "tool.progress"),
    row("process.output", "runtime run acting inline_process ephemeral_live", "tool.output.delta",
        pieces=TextPieces("process", "text", ("processId", "toolCallId"), "stream")),
    row("process.input", "runtime run acting inline_process transcript", "tool.progress"),
    row("process.completed", "runtime run completed inline_process transcript", "tool.progress",
        ends_text=TextEnd("process.output", "")),
    row("process.failed", "runtime run failed inline_process transcript", "tool.progress",
        ends_text=TextEnd("process.output", "")),
    row("process.terminated", "runtime run cancelled inline_process transcript", "tool.progress",
        ends_text=TextEnd("process.output", "")),
    row("command.started", "tool tool_call acting inline_process transcript", "tool.progress",
        move=opens("command", "command_started_already_active")),
    row("command.output", "tool tool_call acting inline_process ephemeral_live", "tool.output.delta",
        requires=(OUTPUT_REF,), move=uses("command", "command_output_without_start"),
        pieces=TextPieces("command", "text", ("toolCallId",), "stream")),
    row("command.exited", "tool tool_call completed inline_process transcript", "tool.progress",
        requires=(EXIT_CODE,), move=closes("command", "command_exited_without_start"),
        ends_text=TextEnd("command.output", "")),
    row("file.read", "tool tool_call acting inline_process transcript", "tool.progress",
        requires=(PATH,)),
    row("file.changed", "artifact artifact producing artifact_workspace artifact_store", "artifact.changed",
        requires=(ARTIFACT, PATH)),
    row("patch.started", "tool tool_call acting inline_process transcript", "tool.progress",
        move=opens("patch", "patch_started_already_active")),
    row("patch.applied", "tool tool_call completed inline_process transcript", "tool.progress",
        move=closes("patch", "patch_terminal_without_start")),
    row("patch.failed", "tool tool_call failed inline_process transcript", "tool.progress",
        requires=(FAILURE_CATEGORY,), move=closes("patch", "patch_terminal_without_start")),
    row("test.started", "tool tool_call acting inline_process transcript", "tool.progress",
        move=opens("test", "test_started_already_active")),
    row("test.completed", "tool tool_call completed inline_process transcript", "tool.progress",
        requires=(RESULT,), move=closes("test", "test_completed_without_start")),
)  # fmt: skip
