"""What an agent asks of its client: leave to do something, files, terminals, answers.

A request is told when its answer makes it true: a file is written when the client says so, and a
command runs when it has a terminal.
"""

from typing import Any, Final

from factwire.projection.reading import listed, table, word, words
from factwire.sources.acp_thread import AcpThread
from factwire.sources.acp_updates import take_call
from factwire.sources.open_work import OpenTool

Params = dict[str, Any]

_KINDS: Final = {
    "allow_once": "approved",
    "allow_always": "approved",
    "reject_once": "denied",
    "reject_always": "denied",
}


def ask_permission(thread: AcpThread, action_id: str, params: Params) -> None:
    """A call that nobody heard of yet begins with the question."""
    call = table(params.get("toolCall")) or {}
    call_id = word(call, "toolCallId") or "call"
    if call_id not in thread.tell.tools and call_id not in thread.closed:
        take_call(thread, {**call, "status": "pending"})
    title = word(call, "title") or thread.titles.get(call_id)
    known = thread.tell.tools.get(call_id)
    said = {
        "actionType": "tool_approval",
        "prompt": f"Allow {title}?" if title else "Allow this call?",
        "toolName": known.name if known is not None else None,
        "args": _about(call, known),
        "options": [
            {"id": word(row, "optionId"), "label": word(row, "name"), "kind": word(row, "kind")}
            for row in _options(params)
        ],
    }
    thread.tell.ask(action_id, said, tool_call_id=call_id)


def _about(call: Params, known: OpenTool | None) -> Params | None:
    """Exactly what would be done: the input of the call, and the diffs that it comes with."""
    before = table(known.args) if known is not None else None
    rows = [row for row in map(table, listed(call.get("content")) or ()) if row]
    diffs = [row for row in rows if word(row, "type") == "diff"]
    changes = {"changes": diffs} if diffs else {}
    return {**(before or {}), **(table(call.get("rawInput")) or {}), **changes} or None


def ask_input(thread: AcpThread, action_id: str, params: Params) -> None:
    said = {
        "actionType": "structured_input",
        "prompt": word(params, "message") or "the agent asks something",
        "responseSchema": table(params.get("requestedSchema")),
        "url": word(params, "url"),
    }
    thread.tell.ask(action_id, said, tool_call_id=word(params, "toolCallId"))


def answer_permission(thread: AcpThread, action_id: str, params: Params, result: Params) -> None:
    outcome = table(result.get("outcome")) or {}
    chosen = word(outcome, "optionId")
    kinds = [word(row, "kind") for row in _options(params) if word(row, "optionId") == chosen]
    decision = _KINDS.get(kinds[0] or "") if kinds else None
    if word(outcome, "outcome") != "selected" or decision is None:
        thread.tell.withdrawn(action_id, "cancelled" if chosen is None else "not an option")
        return
    if decision == "denied":
        call = table(params.get("toolCall")) or {}
        thread.denied.add(word(call, "toolCallId") or "call")
    thread.tell.answered(action_id, decision, response=chosen)


def answer_input(thread: AcpThread, action_id: str, params: Params, result: Params) -> None:
    del params
    action = word(result, "action")
    if action == "accept":
        thread.tell.answered(action_id, "answered", response=table(result.get("content")))
    elif action == "decline":
        thread.tell.answered(action_id, "denied")
    else:
        thread.tell.withdrawn(action_id, "cancelled")


def read_file(thread: AcpThread, action_id: str, params: Params, result: Params) -> None:
    del action_id, result
    thread.tell.fact("file.read", {"path": word(params, "path") or "unknown"})


def wrote_file(thread: AcpThread, action_id: str, params: Params, result: Params) -> None:
    del action_id, result
    path = word(params, "path") or "unknown"
    said = {"path": path, "change": "modified"}
    thread.tell.fact("file.changed", said, artifact_id=f"file:{path}")


def started_command(thread: AcpThread, action_id: str, params: Params, result: Params) -> None:
    del action_id
    command_id = word(result, "terminalId") or "terminal"
    if command_id in thread.commands:
        return
    line = " ".join([word(params, "command") or "", *words(listed(params.get("args")))])
    said = {"commandId": command_id, "command": line, "cwd": word(params, "cwd")}
    thread.tell.fact("command.started", said)
    thread.commands[command_id] = ""


def told_output(thread: AcpThread, action_id: str, params: Params, result: Params) -> None:
    """All the output so far, kept behind a ref; and perhaps the end."""
    del action_id
    command_id, output = word(params, "terminalId") or "terminal", word(result, "output")
    told = thread.commands.get(command_id)
    if told is not None and output is not None and output != told:
        thread.commands[command_id] = output
        ref = thread.tell.keep(output.encode("utf-8", "replace"))
        said = {"commandId": command_id, "outputRef": ref}
        thread.tell.fact("command.output", said, ref_ids=(ref,))
    status = table(result.get("exitStatus"))
    if status is not None or command_id in thread.exits:
        thread.exited(command_id, _exit(status or {}))


def ended_command(thread: AcpThread, action_id: str, params: Params, result: Params) -> None:
    """The output is often asked for only now, and a command has none after its end."""
    del action_id
    command_id = word(params, "terminalId") or "terminal"
    if thread.commands.get(command_id):
        thread.exited(command_id, _exit(result))
    elif command_id in thread.commands:
        thread.exits[command_id] = _exit(result)


def let_go(thread: AcpThread, action_id: str, params: Params, result: Params) -> None:
    """terminal/kill, terminal/release: whatever ran there does no more."""
    del action_id, result
    thread.exited(word(params, "terminalId") or "terminal", {"status": "killed"})


def _exit(status: Params) -> Params:
    code = status.get("exitCode")
    signal = word(status, "signal")
    return {"status": "exited", "signal": signal, "exitCode": code if type(code) is int else None}


def _options(params: Params) -> list[Params]:
    return [row for row in map(table, listed(params.get("options")) or ()) if row]


ASKS: Final = {
    "session/request_permission": ask_permission,
    "elicitation/create": ask_input,
}
ANSWERS: Final = {
    "session/request_permission": answer_permission,
    "elicitation/create": answer_input,
    "fs/read_text_file": read_file,
    "fs/write_text_file": wrote_file,
    "terminal/create": started_command,
    "terminal/output": told_output,
    "terminal/wait_for_exit": ended_command,
    "terminal/kill": let_go,
    "terminal/release": let_go,
}
