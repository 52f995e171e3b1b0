"""A program that speaks as Codex's app server does, and does what its prompt says.

It is run by itself, and knows nothing of Factwire. The last word of a prompt names what it does.
"""

import json
import sys
import time
from typing import Any

THREAD, TURN = "thread-1", "turn-1"
ASKED: dict[str, dict[str, Any]] = {
    "item/commandExecution/requestApproval": {
        "command": "make deploy",
        "cwd": ".",
        "availableDecisions": ["accept", "acceptForSession", "cancel"],
    },
    "item/fileChange/requestApproval": {"grantRoot": "/"},
    "item/permissions/requestApproval": {"permissions": {"network": {"enabled": True}}},
    "item/tool/requestUserInput": {"questions": [{"id": "why", "question": "Why?"}]},
    "mcpServer/elicitation/request": {"serverName": "calc", "message": "How many?"},
    "attestation/generate": {},
}


def say(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def tell(method: str, thread: str = THREAD, **params: Any) -> None:
    say(method=method, params={"threadId": thread, "turnId": TURN, **params})


def hear() -> dict[str, Any]:
    """The next line; at the end of the input, so does the program."""
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)


def text(words: str, name: str = "msg-1", thread: str = THREAD) -> None:
    item = {"type": "agentMessage", "id": name, "text": words}
    tell("item/completed", thread, item=item)


def ends(status: str = "completed", thread: str = THREAD) -> None:
    tell("turn/completed", thread, turn={"id": TURN, "status": status})


def answers(parts: Any) -> None:
    text("Done.")
    ends()
    del parts


def repeats(parts: Any) -> None:
    text(json.dumps(parts))
    ends()


def dies(parts: Any) -> None:
    tell("item/agentMessage/delta", itemId="msg-1", delta="Half an ans")
    sys.exit(f"out of memory after {len(parts)} words")


def babbles(parts: Any) -> None:
    sys.stdout.write("Debugger listening\n[1, 2]\n")
    tell("item/unheard/of")
    answers(parts)


def hangs(parts: Any) -> None:
    tell("item/agentMessage/delta", itemId="msg-1", delta="Let me ")
    del parts
    time.sleep(600)


def asks(parts: Any) -> None:
    """Each question there is, one after the other; the answers are the answer."""
    del parts
    heard: list[Any] = []
    for number, (method, params) in enumerate(ASKED.items()):
        say(method=method, id=number, params={"threadId": THREAD, "itemId": "call-1", **params})
        line = hear()
        while "result" not in line and "error" not in line:
            say(id=line["id"], result={})
            line = hear()
        heard.append(line.get("result") or line["error"]["code"])
    text(json.dumps(heard))
    ends()


def deploys(parts: Any) -> None:
    """Asks for one command, with nothing beside it."""
    del parts
    params = {"threadId": THREAD, "itemId": "call-1", "command": "make deploy", "cwd": "."}
    say(method="item/commandExecution/requestApproval", id=0, params=params)
    text(hear()["result"]["decision"])
    ends()


def adds(parts: Any) -> None:
    """Asks for leave to call a tool of a server."""
    del parts
    numbers = {"a": 2, "b": 3}
    item = {"type": "mcpToolCall", "id": "call-1", "server": "calc", "tool": "add"}
    tell("item/started", item={**item, "arguments": numbers})
    meta = {"codex_approval_kind": "mcp_tool_call", "tool_params": numbers}
    params = {"threadId": THREAD, "serverName": "calc", "message": "May it?", "_meta": meta}
    say(method="mcpServer/elicitation/request", id=0, params=params)
    text(hear()["result"]["action"])
    ends()


def withdraws(parts: Any) -> None:
    method = "item/commandExecution/requestApproval"
    say(method=method, id="q", params={"threadId": THREAD, **ASKED[method]})
    tell("serverRequest/resolved", requestId="q")
    answers(parts)


def hurries(parts: Any) -> None:
    """The turn is over when somebody says something into it."""
    tell("item/agentMessage/delta", itemId="msg-1", delta="Already ")
    line = hear()
    text("Already done.")
    ends()
    say(id=line["id"], error={"code": -32600, "message": "no turn to steer"})
    again = hear()
    say(id=again["id"], result={"turn": {"id": "turn-2"}})
    tell("turn/started", turn={"id": "turn-2"})
    text(again["params"]["input"][0]["text"], "msg-2")
    ends()
    del parts


def names(parts: Any) -> None:
    """Gives its thread a name."""
    tell("thread/name/updated", threadName="Three files")
    answers(parts)


def teams_up(parts: Any) -> None:
    """Somebody else works on after the answer."""
    started = {"type": "subAgentActivity", "id": "call-1", "kind": "started"}
    tell("item/started", item={**started, "agentThreadId": "thread-2", "agentPath": "/root/ada"})
    tell("turn/started", "thread-2", turn={"id": "turn-9"})
    answers(parts)
    text("Three files.", "msg-9", "thread-2")
    ends(thread="thread-2")


WORKS = {
    each.__name__: each
    for each in (
        adds,
        answers,
        asks,
        babbles,
        deploys,
        dies,
        hangs,
        hurries,
        names,
        repeats,
        teams_up,
        withdraws,
    )
}


def serve(line: dict[str, Any]) -> None:
    method, number = line["method"], line.get("id")
    params: dict[str, Any] = line.get("params") or {}
    if method == "thread/resume" and "forgetful" in sys.argv:
        say(id=number, error={"code": -32600, "message": "no rollout found"})
    elif method in ("thread/start", "thread/resume"):
        say(id=number, result={"thread": {"id": THREAD}})
    elif method == "turn/start" and params["input"][0]["text"] == "refuse":
        say(id=number, error={"code": -32600, "message": "no such model"})
    elif method == "turn/start":
        say(id=number, result={"turn": {"id": TURN}})
        tell("turn/started", turn={"id": TURN})
        WORKS[params["input"][0]["text"].split()[-1]](params["input"])
    elif number is not None:
        say(id=number, result={})


if __name__ == "__main__":
    if "broken" in sys.argv:
        sys.exit("error: cannot read config.toml")
    if "silent" in sys.argv:
        time.sleep(600)
    while True:
        serve(hear())
