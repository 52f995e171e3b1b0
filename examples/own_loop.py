"""Your own loop as facts: say what it does, and everything else follows.

Run it: `python examples/own_loop.py`. Then look: `factwire play JOURNAL`.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from factwire.projection import attention, conversation
from factwire.runtime.recording import Recorder


async def answer(journal: str) -> None:
    """One turn of an agent that looks at a log, asks, mends and reports."""

    async def decide(action: object) -> str:
        print(f"asked: {getattr(action, 'shown', '')!r} → approve")
        return "approve"

    async with Recorder(journal, thread_id="thr_report", on_ask=decide) as recorder:
        async with recorder.turn("Why does the nightly report fail?") as turn:
            turn.text("I look at the log ")
            turn.text("first.")
            async with turn.tool("read_log", {"lines": 50}) as call:
                call.result(summary="KeyError: 'date'")
            async with turn.tool("restart", {"service": "report"}) as call:
                decision = await turn.ask("Restart it?", args={"service": "report"}, call=call)
                call.result(summary="restarted" if decision.allowed else "left alone")
            async with turn.subagent("reviewer", "check the fix") as reviewer:
                reviewer.say("The fix is sound.")
            await turn.artifact("fix.diff", "-date\n+day\n", kind="diff")
            turn.say("A column was renamed; the fix is attached.")

        for message in conversation(recorder.state):
            print(f"{message.role}: {[str(getattr(part, 'text', '')) for part in message.parts]}")
        print("needs attention:", [item.title for item in attention(recorder.state)])


if __name__ == "__main__":
    place = sys.argv[1] if len(sys.argv) > 1 else str(Path(tempfile.mkdtemp()) / "runs.db")
    asyncio.run(answer(f"sqlite:{place}"))
