"""What the lifecycle verifier promises: one requirement a code, and the rules around them."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

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
        "lifecycle.subjects": "A patch, command or test is known by its own id, else by its call, "
        "in camel and snake case.",
    },
)
