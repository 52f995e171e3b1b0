"""Notifications about turns, pieces of items, usage, and remarks for people."""

from typing import Any, Final

from factwire.projection.reading import listed, number, table, word
from factwire.sources.codex_app_server.agents import end_agent
from factwire.sources.codex_app_server.errors import category_of, hint_of
from factwire.sources.codex_app_server.session import Session, named, whole

_TOKENS: Final = {
    "inputTokens": "inputTokens",
    "outputTokens": "outputTokens",
    "totalTokens": "totalTokens",
}


def thread_started(session: Session, params: dict[str, Any]) -> None:
    thread = table(params.get("thread")) or {}
    thread_id, parent = word(thread, "id"), word(thread, "parentThreadId")
    if thread_id is None:
        session.tell.unknown("thread without an id", params)
    elif session.thread_id in (None, thread_id):
        session.thread_id = thread_id
        session.tell.known(session_id=word(thread, "sessionId") or thread_id)
        said = {name: word(thread, name) for name in ("model", "cwd", "cliVersion")}
        session.tell.fact("thread.started", said)
    elif parent is not None:
        name, role = word(thread, "agentNickname"), word(thread, "agentRole")
        session.open_agent(thread_id, name=name, role=role)


def thread_name(session: Session, params: dict[str, Any]) -> None:
    session.tell.fact("thread.updated", {"title": word(params, "threadName")})


def turn_started(session: Session, params: dict[str, Any]) -> None:
    thread, turn = word(params, "threadId"), table(params.get("turn")) or {}
    session.thread_id = session.thread_id or thread
    if thread in (None, session.thread_id):
        session.begun = True
        session.settle()
        session.pending = word(turn, "id") or "turn"
    else:
        session.speaker(params)


def turn_completed(session: Session, params: dict[str, Any]) -> None:
    turn, speaker = table(params.get("turn")) or {}, session.speaker(params)
    status, error = word(turn, "status") or "", table(turn.get("error")) or {}
    _record_usage(session, params, speaker)
    if speaker is not None:
        end_agent(session, speaker, status or "completed", word(error, "message"))
        return
    said = {"durationMs": whole(turn.get("durationMs"))}
    if status == "interrupted":
        session.tell.cancel("interrupted", **said)
    elif status == "failed":
        category = category_of(error.get("codexErrorInfo"))
        message = word(error, "message") or "the turn failed"
        session.tell.fail(category, message, hint_of(category), **said)
    else:
        session.tell.complete(**said)


def _record_usage(session: Session, params: dict[str, Any], speaker: str | None) -> None:
    """What the turn used: the sum of the thread so far, less the sum before the turn."""
    thread = word(params, "threadId") or ""
    total, before = session.total.get(thread), session.used.get(thread, {})
    if total is None:
        return
    spent = {name: max(0, count - before.get(name, 0)) for name, count in total.items()}
    session.used[thread] = total
    session.tell.within(speaker, "cost.recorded", dict(spent))
    if speaker is None:
        session.tell.usage = dict(spent)


def token_usage(session: Session, params: dict[str, Any]) -> None:
    usage, thread = table(params.get("tokenUsage")) or {}, word(params, "threadId") or ""
    session.total[thread] = total = _counts(usage.get("total"))
    if thread in session.resumed:
        # The sum counts from before this stream; the last request is the first that is ours.
        session.resumed.discard(thread)
        last = _counts(usage.get("last")) if session.begun else {}
        session.used[thread] = {name: count - last.get(name, 0) for name, count in total.items()}


def _counts(usage: object) -> dict[str, int]:
    counts = {name: whole((table(usage) or {}).get(theirs)) for name, theirs in _TOKENS.items()}
    return {name: count for name, count in counts.items() if count is not None and count >= 0}


def message_delta(session: Session, params: dict[str, Any]) -> None:
    speaker, delta = session.speaker(params), word(params, "delta")
    if delta is not None:
        session.tell.text(word(params, "itemId") or "message", delta, subagent_id=speaker)


def reasoning_delta(session: Session, params: dict[str, Any]) -> None:
    speaker, delta = session.speaker(params), word(params, "delta")
    item_id = word(params, "itemId") or "reasoning"
    session.reasoned.add(item_id)
    if delta is not None:
        session.tell.reasoning(item_id, delta, subagent_id=speaker)


def plan_delta(session: Session, params: dict[str, Any]) -> None:
    item_id = word(params, "itemId") or "plan"
    said = {"delta": word(params, "delta"), "planId": item_id}
    session.tell.within(session.speaker(params), "plan.delta", said, part_id=item_id)


def plan_updated(session: Session, params: dict[str, Any]) -> None:
    """The whole plan as it stands, with what is done of it."""
    steps = [row for row in map(table, listed(params.get("plan")) or ()) if row]
    done = [word(step, "status") == "completed" for step in steps]
    rows = [
        f"[{'x' if is_done else ' '}] {word(step, 'step') or ''}"
        for step, is_done in zip(steps, done, strict=True)
    ]
    plan_id = f"{word(params, 'turnId') or 'turn'}:plan"
    said = {"text": "\n".join(rows), "planId": plan_id, "summary": word(params, "explanation")}
    event_class = "plan.final" if steps and all(done) else "plan.delta"
    session.tell.within(session.speaker(params), event_class, said, part_id=plan_id)


def output_delta(session: Session, params: dict[str, Any]) -> None:
    speaker, item_id = session.speaker(params), word(params, "itemId") or ""
    delta = word(params, "delta")
    if item_id not in session.tell.tools:
        session.tell.tool(item_id, None, subagent_id=speaker)
    if delta is not None:
        session.tell.tool_output(item_id, delta)


def terminal_input(session: Session, params: dict[str, Any]) -> None:
    item_id = word(params, "itemId") or ""
    if item_id in session.tell.tools:
        session.tell.tool_progress(item_id, message="it was given input", stream="stdin")


def patch_updated(session: Session, params: dict[str, Any]) -> None:
    changes = [row for row in map(table, listed(params.get("changes")) or ()) if row]
    item_id, speaker = word(params, "itemId") or "", session.speaker(params)
    session.tell.tool(item_id, "fileChange", {"changes": changes}, subagent_id=speaker)


def mcp_progress(session: Session, params: dict[str, Any]) -> None:
    item_id = word(params, "itemId") or ""
    if item_id in session.tell.tools:
        session.tell.tool_progress(item_id, message=word(params, "message"))


def diff_updated(session: Session, params: dict[str, Any]) -> None:
    """All that the turn has changed so far, as one diff; the same one again is no news."""
    speaker, diff = session.speaker(params), word(params, "diff") or ""
    artifact = f"{word(params, 'turnId') or 'turn'}:diff"
    if session.diffs.get(artifact) == diff:
        return
    session.diffs[artifact] = diff
    said = {"kind": "diff", "title": "changes of the turn", "diff": diff}
    session.tell.within(speaker, "artifact.diff.ready", said, artifact_id=artifact)


def failed(session: Session, params: dict[str, Any]) -> None:
    """An error. Where it is tried again, what the broken try had begun to say is taken back."""
    speaker, error = session.speaker(params), table(params.get("error")) or {}
    category, message = category_of(error.get("codexErrorInfo")), word(error, "message")
    if category == "rate_limited":
        session.tell.fact("rate_limit.hit", {"message": message})
    if params.get("willRetry") is not True:
        said = {"code": category, "message": message or category}
        session.tell.fact("runtime.error", said)
        return
    ours = [m for m in session.tell.messages.values() if m.scope.subagent_id == speaker]
    if ours:
        session.tell.retract(*dict.fromkeys(message.message_id for message in ours))
    if session.tell.is_open:
        session.tell.fact("run.status", {"status": "retrying", "message": message})


def warning(session: Session, params: dict[str, Any]) -> None:
    message = word(params, "message", "summary") or "Codex remarked something"
    session.tell.fact("runtime.warning", {"code": "codex_warning", "message": message})


def hook(session: Session, params: dict[str, Any]) -> None:
    run = table(params.get("run")) or {}
    status, entries = word(run, "status") or "", listed(run.get("entries")) or ()
    texts = [text for row in map(table, entries) if row and (text := word(row, "text"))]
    said = {
        "hookId": word(run, "id"),
        "hookEvent": word(run, "eventName"),
        "hookName": word(run, "sourcePath"),
        "outcome": status or None,
        "message": word(run, "statusMessage") or "\n".join(texts) or None,
    }
    ends = {"running": "hook.started", "completed": "hook.completed"}
    session.tell.within(session.speaker(params), ends.get(status, "hook.failed"), said)


def rerouted(session: Session, params: dict[str, Any]) -> None:
    said = {"model": word(params, "toModel"), "reason": named(params.get("reason"))}
    session.tell.fact("routing.fallback.applied", said)


def rate_limits(session: Session, params: dict[str, Any]) -> None:
    limits = table(params.get("rateLimits")) or {}
    reached = limits.get("rateLimitReachedType") is not None
    for name in ("primary", "secondary"):
        window = table(limits.get(name))
        if window is not None:
            used = number(window, "usedPercent")
            said = {
                "name": f"{word(limits, 'limitId') or 'codex'}:{name}",
                "utilization": used / 100 if used is not None else None,
                "message": named(limits.get("rateLimitReachedType")),
            }
            session.tell.fact("rate_limit.hit" if reached else "limit.changed", said)


def auto_review(session: Session, params: dict[str, Any]) -> None:
    """A reviewer that is no person decided on a call."""
    review = table(params.get("review")) or {}
    status = word(review, "status") or ""
    said = {
        "decision": status or None,
        "message": word(review, "rationale"),
        "rule": word(review, "riskLevel"),
        "reasonCode": "auto_review",
    }
    event_class = "permission.denied" if status == "denied" else "permission.evaluated"
    call_id = word(params, "targetItemId")
    session.tell.within(session.speaker(params), event_class, said, tool_call_id=call_id)


def compacted(session: Session, params: dict[str, Any]) -> None:
    """An older word for what a `contextCompaction` item says; told where no item said it."""
    speaker = session.speaker(params)
    if not session.compacted:
        session.tell.within(speaker, "history.compacted", {})
