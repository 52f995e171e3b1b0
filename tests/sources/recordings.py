"""Recorded streams of real agents, and what each comes to on a screen.

A recording lies in `examples/recordings/SOURCE/NAME.EXT`; beside it `NAME.screen.json` is what was
reviewed: the answer, the tools and how they ended, what was asked and decided, how the turn ended.
`python -m tests.sources.recordings RECORDING` prints what a recording shows, to be reviewed.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from factwire.facts import Fact
from factwire.projection import ProjectionState, conversation, project
from factwire.projection.messages import TextPart
from factwire.sources import convert_recording, find_source

FOLDER = Path(__file__).resolve().parent.parent.parent / "examples" / "recordings"
RECORDINGS = sorted(path for path in FOLDER.glob("*/*") if path.suffix in (".jsonl", ".sse"))


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def facts_of(path: Path, lines: Sequence[bytes] | None = None) -> list[Fact]:
    """The facts of a recording, or of its first lines."""
    settings = path.read_bytes().splitlines(keepends=True) if lines is None else lines
    return list(convert_recording(find_source(path.parent.name), settings, thread_id=path.stem))


def screen_of(facts: Sequence[Fact]) -> dict[str, Any]:
    """What a person sees of some facts."""
    state = project(facts)
    return {
        "status": state.runtime.latest_turn_status,
        "conversation": [_spoken(message) for message in conversation(state)],
        "tools": [
            {"name": tool.tool_name, "state": tool.state, "args": tool.args}
            for tool in state.tools.values()
        ],
        "actions": [
            {"type": action.action_type, "status": action.status, "decision": action.decision}
            for action in state.actions.values()
        ],
        "subagents": [thread.subagent_id for thread in state.subagents.threads.values()],
        "files": sorted(_files(state)),
        "warnings": sorted(
            str(fact.payload.get("code")) for fact in facts if fact.event_class == "runtime.warning"
        ),
    }


def _spoken(message: Any) -> list[str]:
    texts = [str(part.text) for part in message.parts if isinstance(part, TextPart)]
    return [message.role, "".join(texts)]


def _files(state: ProjectionState) -> list[str]:
    return [artifact.path for artifact in state.artifacts.values() if artifact.path]


if __name__ == "__main__":
    screen = screen_of(facts_of(Path(sys.argv[1])))
    sys.stdout.write(f"{json.dumps(screen, indent=1, ensure_ascii=False)}\n")
