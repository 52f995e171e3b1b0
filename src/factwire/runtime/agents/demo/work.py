"""Beats in which something is done: files, commands, checks, artifacts."""

from typing import Final

from factwire.facts import redact_text
from factwire.runtime.agents.demo.stage import Stage
from factwire.runtime.toolbox import Outcome

FOLDER: Final = "factwire-demo"
LONG: Final = ["seq", "1", "800000"]
"""A real program that says more than five megabytes."""

SLOW: Final = "for step in 1 2 3 4 5 6; do echo step $step of 6; sleep 1; done"
FAILING: Final = "echo checking the answer; echo expected 42, got 41 >&2; exit 3"


def notes_path(stage: Stage) -> str:
    return f"{FOLDER}/notes-{stage.turn.turn_id}.md"


def notes(stage: Stage) -> str:
    return (
        "# Notes of a demo\n\n"
        "A fact is one thing that happened.\n"
        "Facts of a thread have an order, and keep it.\n"
        f"Written by turn {stage.turn.turn_id}.\n"
    )


async def write_notes(stage: Stage) -> None:
    outcome = await stage.call("write", {"path": notes_path(stage), "content": notes(stage)})
    await stage.say(_told(outcome, f"I wrote `{notes_path(stage)}`; its diff is beside this."))


async def edit_notes(stage: Stage) -> None:
    edit = {"path": notes_path(stage), "old": "one thing", "new": "exactly one thing"}
    outcome = await stage.call("patch", {"edits": [edit]})
    await stage.say(_told(outcome, "One word more, as a patch: *exactly* one thing."))


async def read_notes(stage: Stage) -> None:
    outcome = await stage.call("read", {"path": notes_path(stage)})
    lines = outcome.text.count("\n")
    await stage.say(_told(outcome, f"Read back, the file has {lines} lines."))


async def ask_first(stage: Stage) -> None:
    args = {"command": ["cksum", notes_path(stage)]}
    outcome = await stage.call("run", args, always_ask=True)
    await stage.say(_told(outcome, f"You said yes, so I ran it: `{outcome.text.strip()}`."))


async def run_command(stage: Stage) -> None:
    outcome = await stage.call("run", {"command": ["wc", "-w", notes_path(stage)]})
    await stage.say(_told(outcome, f"A command counted the words: `{outcome.text.strip()}`."))


async def check(stage: Stage) -> None:
    """A check that is really run, as a test and as evidence with its verdict."""
    path = notes_path(stage)
    command = ["grep", "-c", stage.turn.turn_id, path]
    run = {"testRunId": stage.name("test", "notes"), "command": " ".join(command)}
    begun = stage.fact("test.started", run)
    outcome = await stage.call("run", {"command": command})
    verdict = _verdict(outcome)
    counts = {"passed": int(verdict == "passed"), "failed": int(verdict == "failed")}
    stage.host.emit(begun, stage.fact("test.completed", {**run, "result": verdict, **counts}))
    report = f"$ {' '.join(command)}\n{outcome.text}\n{verdict}\n"
    ref = await stage.host.means.blobs.put(redact_text(report)[0].encode(), kind="evidence")
    stage.put(
        "evidence.changed",
        {
            "kind": "verification",
            "title": "The notes name the turn that wrote them",
            "status": "recorded",
            "verdict": verdict,
            "summaryRef": ref.ref,
        },
        evidence_id=stage.name("evd", "notes"),
        evidence_refs=(ref.ref,),
        tool_call_id=outcome.call_id,
    )
    await stage.say(f"I checked that the notes name this turn: {verdict}.")


async def make_artifact(stage: Stage) -> None:
    report = f"# Report\n\nA demo of turn {stage.turn.turn_id}.\n\nNothing in it was made up.\n"
    ref = await stage.host.means.blobs.put(report.encode(), kind="artifact")
    stage.put(
        "artifact.created",
        {
            "kind": "document",
            "title": "Report of the demo",
            "mediaType": "text/markdown",
            "versionId": "1",
            "contentRef": ref.ref,
        },
        artifact_id=stage.name("art", "report"),
        artifact_refs=(ref.ref,),
    )
    await stage.say("The report is an artifact; its content is behind a ref.")


async def say_a_lot(stage: Stage) -> None:
    outcome = await stage.call("run", {"command": LONG})
    ref = outcome.data.get("outputRef", "nowhere")
    told = f"Here you see {len(outcome.text)} characters of it; all of it is in `{ref}`."
    await stage.say(_told(outcome, told))


async def take_long(stage: Stage) -> None:
    outcome = await stage.call("run", {"command": ["sh", "-c", SLOW]})
    await stage.say(_told(outcome, "Six steps, one a second; there was time to stop me."))


async def break_down(stage: Stage) -> None:
    outcome = await stage.call("run", {"command": ["sh", "-c", FAILING]})
    if outcome.category == "nonzero_exit":
        message = "the answer was to be 42 and is 41, as you asked for"
        hint = "Ask for another demo; this one always fails."
    else:
        message = f"the check that was to fail did not run: {outcome.text[:500]}"
        hint = "Let the check run; then it fails as you asked for."
    stage.fail(outcome.category or "nonzero_exit", message, hint)


def _verdict(outcome: Outcome) -> str:
    if outcome.ok:
        return "passed"
    return "failed" if outcome.category == "nonzero_exit" else "unknown"


def _told(outcome: Outcome, text: str) -> str:
    """What is said of a call: that it worked, or why it did not."""
    if outcome.ok:
        return text
    if outcome.category == "permission_denied":
        return "That was not allowed, so I left it."
    return f"That did not work ({outcome.category}), so I go on without it."
