"""`factwire journal cat`: facts as they are stored, one to a line."""

import sys
from typing import Annotated

import typer

from factwire.cli.failures import DONE
from factwire.cli.journal.access import Url, reading, run
from factwire.cli.journal.filter import (
    After,
    Classes,
    Project,
    Run,
    Session,
    Task,
    Thread,
    Turn,
    chosen,
)
from factwire.journal import Filter


def cat(
    url: Url,
    *,
    after: After = None,
    project: Project = None,
    session: Session = None,
    thread: Thread = None,
    run_id: Run = None,
    turn: Turn = None,
    task: Task = None,
    classes: Classes = None,
    limit: Annotated[int | None, typer.Option(min=0, help="At most so many facts.")] = None,
) -> None:
    """Write facts to standard output as they are stored, one to a line (NDJSON)."""
    wanted = chosen(
        classes, project=project, session=session, thread=thread, run=run_id, turn=turn, task=task
    )
    run(_cat(url, after, wanted, limit))


async def _cat(url: str, after: str | None, wanted: Filter | None, limit: int | None) -> int:
    async with reading(url) as journal:
        async for stretch in journal.read(after, filter=wanted, limit=limit):
            sys.stdout.buffer.write(stretch.data)
    sys.stdout.buffer.flush()
    return DONE
