"""What the `factwire` command promises."""

from typing import Final

from factwire.conformance.requirement import Requirement, requirements

CLI_REQUIREMENTS: Final[tuple[Requirement, ...]] = requirements(
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
