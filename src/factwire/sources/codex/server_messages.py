"""Notifications and requests of Codex's app server, and the answers to its requests."""

from typing import Any, Final

from factwire.facts.json_values import (
    list_at,
    number_at,
    object_at,
    objects_of,
    text_at,
    whole_number_at,
)
from factwire.sources.codex.exec_convert import read_structure
from factwire.sources.codex.thread_items import (
    CodexSession,
    end_agent,
    failure_category,
    failure_hint,
    read_input_text,
    read_name,
)
from factwire.sources.kit.fact_builder import OpenTool

_TOKENS: Final = {
    "inputTokens": "inputTokens",
    "outputTokens": "outputTokens",
    "totalTokens": "totalTokens",
}


def on_thread_started(session: CodexSession, params: dict[str, Any]) -> None:
    thread = object_at(params.get("thread")) or {}
    thread_id, parent = text_at(thread, "id"), text_at(thread, "parentThreadId")
    if thread_id is None:
        session.builder.warn_unknown("thread without an id", params)
    elif session.thread_id in (None, thread_id):
        session.thread_id = thread_id
        session.builder.set_ids(session_id=text_at(thread, "sessionId") or thread_id)
        payload = {name: text_at(thread, name) for name in ("model", "cwd", "cliVersion")}
        session.builder.add_fact("thread.started", payload)
    elif parent is not None:
        name, role = text_at(thread, "agentNickname"), text_at(thread, "agentRole")
        session.announce_agent(thread_id, name=name, role=role)


def on_thread_name(session: CodexSession, params: dict[str, Any]) -> None:
    session.builder.add_fact("thread.updated", {"title": text_at(params, "threadName")})


def on_turn_started(session: CodexSession, params: dict[str, Any]) -> None:
    thread, turn = text_at(params, "threadId"), object_at(params.get("turn")) or {}
    session.thread_id = session.thread_id or thread
    if thread in (None, session.thread_id):
        session.begun = True
        session.begin_prompt()
        session.pending = text_at(turn, "id") or "turn"
    else:
        session.find_speaker(params)


def on_turn_completed(session: CodexSession, params: dict[str, Any]) -> None:
    turn, speaker = object_at(params.get("turn")) or {}, session.find_speaker(params)
    status, error = text_at(turn, "status") or "", object_at(turn.get("error")) or {}
    _record_usage(session, params, speaker)
    if speaker is not None:
        end_agent(session, speaker, status or "completed", text_at(error, "message"))
        return
    session.builder.report_context(*session.context, session.window)
    payload = {
        "durationMs": whole_number_at(turn, "durationMs"),
        "stopReason": status or None,
        "structuredOutput": read_structure(session.answer) if session.wants_structure else None,
    }
    if status == "interrupted":
        session.builder.cancel_turn("interrupted", **payload)
    elif status == "failed":
        category = failure_category(error.get("codexErrorInfo"))
        message = text_at(error, "message") or "the turn failed"
        session.builder.fail_turn(category, message, failure_hint(category), **payload)
    else:
        session.builder.complete_turn(**payload)


def _record_usage(session: CodexSession, params: dict[str, Any], speaker: str | None) -> None:
    """What the turn used: the sum of the thread so far, less the sum before the turn."""
    thread = text_at(params, "threadId") or ""
    total, before = session.total.get(thread), session.used.get(thread, {})
    if total is None:
        return
    spent = {name: max(0, count - before.get(name, 0)) for name, count in total.items()}
    session.used[thread] = total
    session.builder.add_subagent_fact(speaker, "cost.recorded", dict(spent))
    if speaker is None:
        session.builder.usage = dict(spent)


def on_token_usage(session: CodexSession, params: dict[str, Any]) -> None:
    usage, thread = object_at(params.get("tokenUsage")) or {}, text_at(params, "threadId") or ""
    session.total[thread] = total = _read_counts(usage.get("total"))
    if thread == session.thread_id:
        latest = _read_counts(usage.get("last"))
        session.context = (latest.get("inputTokens", 0), latest.get("outputTokens", 0))
        session.window = whole_number_at(usage, "modelContextWindow") or session.window
    if thread in session.resumed:
        # The sum counts from before this stream; the last request is the first that is ours.
        session.resumed.discard(thread)
        last = _read_counts(usage.get("last")) if session.begun else {}
        session.used[thread] = {name: count - last.get(name, 0) for name, count in total.items()}


def _read_counts(usage: object) -> dict[str, int]:
    counts = {
        name: whole_number_at(object_at(usage) or {}, theirs) for name, theirs in _TOKENS.items()
    }
    return {name: count for name, count in counts.items() if count is not None and count >= 0}


def on_message_delta(session: CodexSession, params: dict[str, Any]) -> None:
    speaker, delta = session.find_speaker(params), text_at(params, "delta")
    if delta is not None:
        session.builder.add_text(text_at(params, "itemId") or "message", delta, subagent_id=speaker)


def on_reasoning_delta(session: CodexSession, params: dict[str, Any]) -> None:
    speaker, delta = session.find_speaker(params), text_at(params, "delta")
    item_id = text_at(params, "itemId") or "reasoning"
    session.reasoned.add(item_id)
    if delta is not None:
        session.builder.add_reasoning(item_id, delta, subagent_id=speaker)


def on_plan_delta(session: CodexSession, params: dict[str, Any]) -> None:
    item_id = text_at(params, "itemId") or "plan"
    payload = {"delta": text_at(params, "delta"), "planId": item_id}
    session.builder.add_subagent_fact(
        session.find_speaker(params), "plan.delta", payload, part_id=item_id
    )


def on_plan_updated(session: CodexSession, params: dict[str, Any]) -> None:
    """The whole plan as it stands, with what is done of it."""
    steps = objects_of(params.get("plan"))
    done = [text_at(step, "status") == "completed" for step in steps]
    rows = [
        f"[{'x' if is_done else ' '}] {text_at(step, 'step') or ''}"
        for step, is_done in zip(steps, done, strict=True)
    ]
    plan_id = f"{text_at(params, 'turnId') or 'turn'}:plan"
    payload = {
        "text": "\n".join(rows),
        "planId": plan_id,
        "summary": text_at(params, "explanation"),
    }
    event_class = "plan.final" if steps and all(done) else "plan.delta"
    session.builder.add_subagent_fact(
        session.find_speaker(params), event_class, payload, part_id=plan_id
    )


def on_output_delta(session: CodexSession, params: dict[str, Any]) -> None:
    speaker, item_id = session.find_speaker(params), text_at(params, "itemId") or ""
    delta = text_at(params, "delta")
    if item_id not in session.builder.tools:
        session.builder.start_tool(item_id, None, subagent_id=speaker)
    if delta is not None:
        session.builder.add_tool_output(item_id, delta)


def on_terminal_input(session: CodexSession, params: dict[str, Any]) -> None:
    item_id = text_at(params, "itemId") or ""
    if item_id in session.builder.tools:
        session.builder.report_tool_progress(item_id, message="it received input", stream="stdin")


def on_patch_updated(session: CodexSession, params: dict[str, Any]) -> None:
    changes = objects_of(params.get("changes"))
    item_id, speaker = text_at(params, "itemId") or "", session.find_speaker(params)
    session.builder.start_tool(item_id, "fileChange", {"changes": changes}, subagent_id=speaker)


def on_mcp_progress(session: CodexSession, params: dict[str, Any]) -> None:
    item_id = text_at(params, "itemId") or ""
    if item_id in session.builder.tools:
        session.builder.report_tool_progress(item_id, message=text_at(params, "message"))


def on_diff_updated(session: CodexSession, params: dict[str, Any]) -> None:
    """All that the turn has changed so far, as one diff; the same one again is no news."""
    speaker, diff = session.find_speaker(params), text_at(params, "diff") or ""
    artifact = f"{text_at(params, 'turnId') or 'turn'}:diff"
    if session.diffs.get(artifact) == diff:
        return
    session.diffs[artifact] = diff
    payload = {"kind": "diff", "title": "changes of the turn", "diff": diff}
    session.builder.add_subagent_fact(speaker, "artifact.diff.ready", payload, artifact_id=artifact)


def on_error(session: CodexSession, params: dict[str, Any]) -> None:
    """An error. Where it is tried again, what the broken try had begun to say is taken back."""
    speaker, error = session.find_speaker(params), object_at(params.get("error")) or {}
    category, message = failure_category(error.get("codexErrorInfo")), text_at(error, "message")
    if category == "rate_limited":
        session.builder.add_fact("rate_limit.hit", {"message": message})
    if params.get("willRetry") is not True:
        payload = {"code": category, "message": message or category}
        session.builder.add_fact("runtime.error", payload)
        return
    ours = [m for m in session.builder.messages.values() if m.scope.subagent_id == speaker]
    if ours:
        session.builder.retract_messages(*dict.fromkeys(message.message_id for message in ours))
    if session.builder.is_open:
        session.builder.add_fact("run.status", {"status": "retrying", "message": message})


def on_warning(session: CodexSession, params: dict[str, Any]) -> None:
    message = text_at(params, "message", "summary") or "Codex sent a notice"
    session.builder.add_fact("runtime.warning", {"code": "codex_warning", "message": message})


def on_hook(session: CodexSession, params: dict[str, Any]) -> None:
    run = object_at(params.get("run")) or {}
    status, entries = text_at(run, "status") or "", list_at(run.get("entries")) or ()
    texts = [text for row in map(object_at, entries) if row and (text := text_at(row, "text"))]
    payload = {
        "hookId": text_at(run, "id"),
        "hookEvent": text_at(run, "eventName"),
        "hookName": text_at(run, "sourcePath"),
        "outcome": status or None,
        "message": text_at(run, "statusMessage") or "\n".join(texts) or None,
    }
    ends = {"running": "hook.started", "completed": "hook.completed"}
    session.builder.add_subagent_fact(
        session.find_speaker(params), ends.get(status, "hook.failed"), payload
    )


def on_rerouted(session: CodexSession, params: dict[str, Any]) -> None:
    payload = {"model": text_at(params, "toModel"), "reason": read_name(params.get("reason"))}
    session.builder.add_fact("routing.fallback.applied", payload)


def on_rate_limits(session: CodexSession, params: dict[str, Any]) -> None:
    limits = object_at(params.get("rateLimits")) or {}
    reached = limits.get("rateLimitReachedType") is not None
    for name in ("primary", "secondary"):
        window = object_at(limits.get(name))
        if window is not None:
            used = number_at(window, "usedPercent")
            payload = {
                "name": f"{text_at(limits, 'limitId') or 'codex'}:{name}",
                "utilization": used / 100 if used is not None else None,
                "message": read_name(limits.get("rateLimitReachedType")),
            }
            session.builder.add_fact("rate_limit.hit" if reached else "limit.changed", payload)


def on_auto_review(session: CodexSession, params: dict[str, Any]) -> None:
    """A reviewer that is no person decided on a call."""
    review = object_at(params.get("review")) or {}
    status = text_at(review, "status") or ""
    payload = {
        "decision": status or None,
        "message": text_at(review, "rationale"),
        "rule": text_at(review, "riskLevel"),
        "reasonCode": "auto_review",
    }
    event_class = "permission.denied" if status == "denied" else "permission.evaluated"
    call_id = text_at(params, "targetItemId")
    session.builder.add_subagent_fact(
        session.find_speaker(params), event_class, payload, tool_call_id=call_id
    )


def on_compacted(session: CodexSession, params: dict[str, Any]) -> None:
    """An older word for what a `contextCompaction` item says; told where no item said it."""
    speaker = session.find_speaker(params)
    if not session.compacted:
        session.builder.add_subagent_fact(speaker, "history.compacted", {})


_MORE: Final = ("additionalPermissions", "networkApprovalContext", "fileChanges")
"""What a request may ask for beside its command."""

ANSWER_FIELDS: Final = frozenset({"decision", "answers", "action", "permissions", "contentItems"})
"""Fields that only answers of a client have."""


def request_key(item: dict[str, Any]) -> str:
    return f"request-{item.get('id')}"


def is_server_request(method: str) -> bool:
    return method in _ASKED or method in _QUIET_ASKED


def on_server_request(session: CodexSession, item: dict[str, Any], method: str) -> None:
    params = object_at(item.get("params")) or {}
    session.requests[request_key(item)] = (method, params)
    ask = _ASKED.get(method)
    if ask is not None:
        ask(session, request_key(item), params)


def on_client_request(session: CodexSession, item: dict[str, Any], method: str) -> None:
    """What a client asks for; most of it shows in what the server then does."""
    params = object_at(item.get("params")) or {}
    session.sent[request_key(item)] = method
    text = read_input_text(params.get("input"))
    if method == "turn/start" and text and text_at(params, "threadId") in (session.thread_id, None):
        session.prompts.append(text)
        session.wants_structure = object_at(params.get("outputSchema")) is not None
        session.answer = None
    elif method == "turn/interrupt" and session.builder.is_open:
        session.builder.add_fact("run.status", {"status": "cancelling"})


def on_answer(session: CodexSession, item: dict[str, Any]) -> None:
    """An answer belongs to what was asked under its id; by its form where both sides asked."""
    key, result = request_key(item), object_at(item.get("result")) or {}
    by_client = key in session.requests and (
        key not in session.sent or bool(ANSWER_FIELDS.intersection(result))
    )
    if by_client:
        _resolve_request(
            session, key, session.requests.pop(key), result, object_at(item.get("error"))
        )
        return
    method = session.sent.pop(key, "")
    error = object_at(item.get("error"))
    if error is not None:
        message = text_at(error, "message") or "the request was refused"
        session.builder.add_fact("runtime.error", {"code": "request_refused", "message": message})
        if method == "turn/start" and session.prompts:
            session.prompts.pop()
    elif method in ("thread/start", "thread/resume"):
        thread = text_at(object_at(result.get("thread")) or {}, "id")
        session.thread_id = session.thread_id or thread
        _report_session(session, result)
        if method == "thread/resume" and thread is not None:
            session.resumed.add(thread)


def _report_session(session: CodexSession, result: dict[str, Any]) -> None:
    """What the thread works with, as the server answers it."""
    thread = object_at(result.get("thread")) or {}
    payload = {
        "model": text_at(result, "model"),
        "mode": read_name(result.get("approvalPolicy")),
        "cwd": text_at(result, "cwd"),
        "version": text_at(thread, "cliVersion"),
        "sessionId": text_at(thread, "sessionId", "id"),
    }
    session.builder.add_fact("session.updated", payload)


def on_request_resolved(session: CodexSession, params: dict[str, Any]) -> None:
    """The server takes a request as settled; without the answer, what was decided is unknown."""
    key = f"request-{params.get('requestId')}"
    session.requests.pop(key, None)
    session.builder.resolve_action(key, "unknown")


def _resolve_request(
    session: CodexSession,
    key: str,
    request: tuple[str, dict[str, Any]],
    result: dict[str, Any],
    error: dict[str, Any] | None,
) -> None:
    method, params = request
    verdict = read_name(result.get("decision")) or text_at(result, "action") or ""
    granted = bool(object_at(result.get("permissions")) or object_at(result.get("answers")))
    approved = verdict.startswith(("accept", "approved")) or granted
    decision = "approve" if approved and error is None else "deny"
    reason = text_at(error or {}, "message") or verdict or None
    response = result.get("answers") or result.get("content") or result.get("permissions")
    was_open = key in session.builder.actions
    session.builder.resolve_action(key, decision, reason=reason, response=response)
    if was_open and method in _PERMISSIONS:
        payload = {"decision": decision, "message": reason}
        item_id = text_at(params, "itemId", "callId")
        speaker = session.find_speaker(params)
        session.builder.add_subagent_fact(
            speaker, "permission.resolved", payload, tool_call_id=item_id
        )


def _on_approval(session: CodexSession, key: str, params: dict[str, Any]) -> None:
    command = params.get("command")
    text = " ".join(map(str, command)) if isinstance(command, list) else text_at(params, "command")  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - JSON
    item_id, speaker = text_at(params, "itemId", "callId"), session.find_speaker(params)
    payload = {
        "command": text,
        "path": text_at(params, "grantRoot"),
        "message": text_at(params, "reason"),
    }
    session.builder.add_subagent_fact(
        speaker, "permission.requested", payload, tool_call_id=item_id
    )
    tool = session.builder.tools.get(item_id or "")
    action = {
        "actionType": "tool_approval",
        "prompt": _question_text(text, text_at(params, "reason")),
        "toolName": tool.name if tool is not None else None,
        "command": text,
        "cwd": text_at(params, "cwd"),
        "path": text_at(params, "grantRoot"),
        "args": _call_details(tool, text, params),
        "options": list_at(params.get("availableDecisions")),
    }
    session.builder.require_action(key, action, tool_call_id=item_id, subagent_id=speaker)


def _question_text(command: str | None, reason: str | None) -> str:
    """What is asked, in our words: an agent's reason for it is an agent's, and said to be."""
    return _question_reason(
        "Run this command?" if command is not None else "Change these files?", reason
    )


def _question_reason(question: str, reason: str | None) -> str:
    return question if reason is None else f"{question} The agent's reason: {reason}"


def _call_details(
    tool: OpenTool | None, command: str | None, params: dict[str, Any]
) -> dict[str, Any] | None:
    """What would be done beside a command; a request for a patch leaves it to its item to say."""
    known = object_at(tool.args) if tool is not None and command is None else None
    more = {name: params.get(name) for name in _MORE if params.get(name) is not None}
    return {**(known or {}), **more} or None


def _on_permissions(session: CodexSession, key: str, params: dict[str, Any]) -> None:
    item_id, speaker = text_at(params, "itemId"), session.find_speaker(params)
    reason = text_at(params, "reason")
    fields = {"message": reason, "path": text_at(params, "cwd")}
    session.builder.add_subagent_fact(speaker, "permission.requested", fields, tool_call_id=item_id)
    payload = {
        "actionType": "permission_grant",
        "prompt": _question_reason("Grant these permissions?", reason),
        "args": params.get("permissions"),
    }
    session.builder.require_action(key, payload, tool_call_id=item_id, subagent_id=speaker)


def _on_user_input(session: CodexSession, key: str, params: dict[str, Any]) -> None:
    questions = objects_of(params.get("questions"))
    texts = [text for row in questions if (text := text_at(row, "question", "header"))]
    payload = {
        "actionType": "structured_input",
        "prompt": "\n".join(texts) or "An answer is needed.",
        "options": questions,
    }
    item_id, speaker = text_at(params, "itemId"), session.find_speaker(params)
    session.builder.require_action(key, payload, tool_call_id=item_id, subagent_id=speaker)


def _on_elicitation(session: CodexSession, key: str, params: dict[str, Any]) -> None:
    """A server's question; Codex asks in this way, too, for leave to call a tool."""
    meta = object_at(params.get("_meta")) or {}
    is_call = text_at(meta, "codex_approval_kind") == "mcp_tool_call"
    payload = {
        "actionType": "tool_approval" if is_call else "structured_input",
        "prompt": text_at(params, "message"),
        "args": meta.get("tool_params") if is_call else None,
        "requestedBy": text_at(params, "serverName"),
        "responseSchema": object_at(params.get("requestedSchema")),
    }
    session.builder.require_action(key, payload, subagent_id=session.find_speaker(params))


def _on_tool_call(session: CodexSession, key: str, params: dict[str, Any]) -> None:
    """The client runs a tool of its own: no question, but a call."""
    del key
    call_id, speaker = text_at(params, "callId") or "", session.find_speaker(params)
    if call_id not in session.builder.tools:
        session.builder.start_tool(
            call_id, text_at(params, "tool"), params.get("arguments"), subagent_id=speaker
        )


_ASKED: Final = {
    "item/commandExecution/requestApproval": _on_approval,
    "item/fileChange/requestApproval": _on_approval,
    "execCommandApproval": _on_approval,
    "applyPatchApproval": _on_approval,
    "item/permissions/requestApproval": _on_permissions,
    "item/tool/requestUserInput": _on_user_input,
    "mcpServer/elicitation/request": _on_elicitation,
    "item/tool/call": _on_tool_call,
}
_PERMISSIONS: Final = frozenset(
    {
        "item/commandExecution/requestApproval",
        "item/fileChange/requestApproval",
        "item/permissions/requestApproval",
        "execCommandApproval",
        "applyPatchApproval",
    }
)
_QUIET_ASKED: Final = frozenset({"account/chatgptAuthTokens/refresh", "attestation/generate"})
"""What the server asks of the client's own account."""
