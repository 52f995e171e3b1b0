"""Beats of a team: two subagents with work of their own, and a handoff from one to the other."""

from factwire.runtime.agents.demo.stage import Stage
from factwire.runtime.agents.demo.work import FOLDER, notes_path
from factwire.runtime.minting import Scope
from factwire.runtime.toolbox import Outcome

READER, WRITER = "reader", "writer"


def _scope(stage: Stage, who: str) -> Scope:
    return stage.host.scope.within(
        subagent_id=stage.name("sub", who),
        task_id=stage.name("task", who),
        parent_task_id=stage.name("task", "team"),
    )


def _team(stage: Stage) -> Scope:
    return stage.host.scope.within(task_id=stage.name("task", "team"))


async def gather_team(stage: Stage) -> None:
    whole = "Find what the notes say about facts, and write it up"
    stage.put("task.created", {"title": whole, "objective": whole}, _team(stage))
    stage.put("task.started", None, _team(stage))
    for who, task in ((READER, "Find the lines about facts"), (WRITER, "Write them up")):
        scope = _scope(stage, who)
        stage.put("task.created", {"title": task, "objective": task, "assignee": who}, scope)
        spawned = {"name": who, "role": who, "title": task, "topology": "coordinator_team"}
        stage.put("subagent.spawned", spawned, scope)
        stage.put("subagent.started", {"name": who}, scope)
        stage.put("task.started", None, scope)
    await stage.say("Two helpers share this: one reads, one writes.")


async def reader_works(stage: Stage) -> None:
    scope = _scope(stage, READER)
    args = {"text": "act", "path": FOLDER, "glob": notes_path(stage).rpartition("/")[2]}
    outcome = await stage.call("search", args, scope)
    _finish(stage, READER, outcome)


async def hand_over(stage: Stage) -> None:
    _handoff(stage, "requested")
    _handoff(stage, "accepted")
    await stage.say("The reader hands over to the writer.")


async def writer_works(stage: Stage) -> None:
    path = f"{FOLDER}/summary-{stage.turn.turn_id}.md"
    content = f"# Summary\n\nSee `{notes_path(stage)}`: facts have an order, and keep it.\n"
    outcome = await stage.call("write", {"path": path, "content": content}, _scope(stage, WRITER))
    _finish(stage, WRITER, outcome)


async def dismiss_team(stage: Stage) -> None:
    undone = _undone(stage)
    if WRITER not in undone:
        _handoff(stage, "completed")
    if not undone:
        stage.put("task.completed", None, _team(stage))
        await stage.say("Both are done, and each kept to its own work.")
        return
    names = " and the ".join(undone)
    failure = {"failureCategory": "subtask_failed", "message": f"not done: the {names}"}
    stage.put("task.failed", failure, _team(stage))
    await stage.say(f"The {names} could not do what was asked, so the summary is not there.")


def _undone(stage: Stage) -> list[str]:
    """Who failed, in this run of the turn or in one before a restart."""
    history = stage.turn.history
    threads = history.subagents.threads if stage.turn.resumed and history is not None else {}
    return [
        who
        for who in (READER, WRITER)
        if who in stage.undone
        or ((told := threads.get(stage.name("sub", who))) is not None and told.status == "failed")
    ]


def _finish(stage: Stage, who: str, outcome: Outcome) -> None:
    scope = _scope(stage, who)
    if outcome.ok:
        summary = outcome.text.partition("\n")[0]
        stage.put("subagent.completed", {"name": who, "summary": summary}, scope)
        stage.put("task.completed", None, scope)
    else:
        stage.undone.add(who)
        failure = {"failureCategory": outcome.category, "message": outcome.text[:500]}
        stage.put("subagent.failed", {"name": who, **failure}, scope)
        stage.put("task.failed", failure, scope)


def _handoff(stage: Stage, state: str) -> None:
    handoff = stage.name("hnd", "team")
    said = {
        "handoffId": handoff,
        "fromAgent": stage.name("sub", READER),
        "toAgent": stage.name("sub", WRITER),
        "reason": "no line was found" if READER in _undone(stage) else "the lines are found",
        "status": state,
    }
    scope = _scope(stage, WRITER)
    stage.put(f"handoff.{state}", said, scope, handoff_id=handoff)
