"""What the `factwire` command promises."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

_FACTS: Final = requirements(
    "issue 2",
    {
        "cli.validate.forms": "One fact, an array, one fact to a line and a fixture are all read.",
        "cli.validate.json": "With --json the report is one object of valid, issues and facts.",
        "cli.validate.table": "For people the report is a table of code, path and message.",
        "cli.validate.shape": "The shape is found by itself or given.",
        "cli.validate.mode": "The lifecycle is collected, failed closed or not looked at.",
        "cli.validate.unreadable": "Input that cannot be read is named with line and reason.",
        "cli.validate.stdin": "A dash reads standard input.",
        "cli.validate.constant-memory": "A longer stream does not take more memory.",
        "cli.validate.progress": "A terminal sees a progress bar, a pipe does not.",
        "cli.validate.bounded-issues": "Issues past a bound are counted, not listed.",
        "cli.exit-codes": "Valid is 0, issues are 1, unusable input or usage is 2.",
        "cli.convert.shapes": "Facts are converted between all shapes, one to a line.",
        "cli.convert.ui-events": "Converting to the UI writes the UI events of each fact.",
        "cli.convert.problems": "What cannot be converted is named and the exit code is 1.",
        "cli.schema": "Each schema is printed, or all are written to a folder.",
        "cli.errors.no-traceback": "Every failure is a line for people, never a traceback.",
        "cli.errors.harmless-text": "Text from the input cannot steer the terminal.",
        "cli.errors.closed-pipe": "A reader that leaves early is no failure worth words.",
        "cli.help": "Every verb explains itself, and the version is told.",
    },
)

_PROJECT: Final = requirements(
    "facts.md §4",
    {
        "cli.project.forms": "Every form, shape and backend of the same facts gives one state.",
        "cli.project.json": "With --json the snapshot is printed, and nothing else.",
        "cli.project.summary": "For people each part of the state that says something is shown.",
        "cli.project.threads": "One thread is taken by itself, several are listed to choose from.",
        "cli.project.children": "Child threads are part of their parent, others are left out.",
        "cli.project.at": "A state up to a place shows every fact up to it and none beyond.",
        "cli.project.journal": "Of a journal only the thread and its children are read.",
        "cli.project.compacted": "A compacted journal shows what the whole one did.",
        "cli.project.constant-memory": "A longer journal takes no more memory than its state.",
        "cli.project.empty": "Input without facts is an empty state and a note.",
        "cli.project.invalid": "Facts that break rules are shown as far as that goes.",
        "cli.project.unreadable": "What is no fact is named with its line or its number.",
    },
)

_PLAY: Final = requirements(
    "facts.md §4",
    {
        "cli.play.view": "Conversation, process, approvals, team and position are seen.",
        "cli.play.sizes": "Every size of terminal shows something, and none more than it can.",
        "cli.play.pace": "Facts follow each other as recorded, scaled, with long pauses cut.",
        "cli.play.keys": "Keys pause, step, jump, seek, change the speed, help and quit.",
        "cli.play.seek": "A place looks the same whichever way one got there.",
        "cli.play.bounded-seek": "Going back replays a bounded stretch, not the run.",
        "cli.play.plain": "Without a terminal the last view is printed once, as text.",
        "cli.play.terminal": "The terminal is restored however the command ends.",
        "cli.play.harmless": "Nothing in a fact steers the terminal or ends the command.",
    },
)

CLI_REQUIREMENTS: Final[tuple[Requirement, ...]] = (*_FACTS, *_PROJECT, *_PLAY)
