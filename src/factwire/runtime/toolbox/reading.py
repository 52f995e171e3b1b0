"""`read`: the text of a file, whole or some lines of it."""

from typing import Any

from factwire.journal.blobs.disk import on_disk
from factwire.runtime.policy import Request
from factwire.runtime.toolbox.calls import Call
from factwire.runtime.toolbox.limits import FILE_BYTES
from factwire.runtime.toolbox.outcomes import Done
from factwire.runtime.toolbox.works import (
    Bench,
    Work,
    check_names,
    count_argument,
    text_argument,
)


async def read(bench: Bench, args: dict[str, Any]) -> Work:
    """`path`, and maybe the first line `start` (from 1) and how many `lines`."""
    check_names(args, "path", "start", "lines")
    path = await on_disk(bench.files.locate, text_argument(args, "path"))
    start, count = count_argument(args, "start", 1), count_argument(args, "lines", FILE_BYTES)

    async def perform(call: Call) -> Done:
        whole = await on_disk(bench.files.text, path)
        await call.acted()
        rows = whole.split("\n")
        wanted = "\n".join(rows[start - 1 : start - 1 + count])
        call.put("file.read", {"path": path, "bytes": len(whole.encode())})
        summary = f"{path}, {len(rows)} lines"
        return Done(text=wanted, summary=summary, data={"path": path, "lines": len(rows)})

    request = Request(tool="read", workspace=bench.workspace, paths=(path,))
    return Work(request=request, prompt=f"Read {path}?", perform=perform)
