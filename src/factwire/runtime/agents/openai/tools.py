"""The tools as a model is told of them: the one place where their words and schemas stand."""

from typing import Any, Final

import msgspec

Schema = dict[str, Any]


class ToolText(msgspec.Struct, frozen=True, kw_only=True):
    """`alone` is whether it runs while no other tool does: what it does, others could see half
    done.
    """

    description: str
    properties: dict[str, Schema]
    required: tuple[str, ...]
    alone: bool = False

    @property
    def schema(self) -> Schema:
        return {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
            "additionalProperties": False,
        }


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _count(description: str) -> Schema:
    return {"type": "integer", "minimum": 1, "description": description}


_EDIT: Final[Schema] = {
    "type": "object",
    "properties": {
        "path": _text("The file, relative to the workspace."),
        "old": _text("The text to replace; it must be there exactly once. Leave out to make."),
        "new": _text("What stands there afterwards."),
    },
    "required": ["path", "new"],
    "additionalProperties": False,
}

TOOL_TEXTS: Final = {
    "patch": ToolText(
        description="Change parts of text files: all edits are made, or none. For each edit, quote "
        "enough of the old text that it is found exactly once.",
        properties={"edits": {"type": "array", "minItems": 1, "items": _EDIT}},
        required=("edits",),
        alone=True,
    ),
    "read": ToolText(
        description="Read a text file, whole or some lines of it.",
        properties={
            "path": _text("The file, relative to the workspace."),
            "start": _count("The first line, from 1."),
            "lines": _count("How many lines."),
        },
        required=("path",),
    ),
    "run": ToolText(
        description="Run a command in the workspace and wait for its end. It has no terminal and "
        "no input. Its output and a failing exit code come back.",
        properties={
            "command": _text("The command line, as for sh."),
            "cwd": _text("The folder to run in, relative to the workspace."),
            "seconds": _count("Stop it after so many seconds."),
        },
        required=("command",),
        alone=True,
    ),
    "search": ToolText(
        description="Find the lines that hold a text, in the files below a folder. The text is "
        "plain, not a pattern. Lines come back as path:line: text.",
        properties={
            "text": _text("The text, of one line."),
            "path": _text("The folder or file to look in; all of the workspace if left out."),
            "glob": _text("Names or paths to look at, such as *.py."),
        },
        required=("text",),
    ),
    "write": ToolText(
        description="Write a whole text file; one that is there is replaced.",
        properties={
            "path": _text("The file, relative to the workspace."),
            "content": _text("All of its text."),
        },
        required=("path", "content"),
        alone=True,
    ),
}
"""Name of a tool in the toolbox → what a model is told."""
