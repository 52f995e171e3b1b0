"""A server of the older protocol without any library, which misbehaves as it is told.

Starts quickly, needs nothing but Python, and can send what no library would.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]

HOW = sys.argv[1] if len(sys.argv) > 1 else "plain"
OBJECT: Json = {"type": "object", "properties": {"text": {"type": "string"}}}
NAME: Json = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
HELLO: Json = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "raw", "version": "1"},
}


def send(message: Json) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def read() -> Json:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def tool(name: str, schema: Json = OBJECT, **fields: Any) -> Json:
    return {"name": name, "description": f"the tool {name}", "inputSchema": schema, **fields}


def result(text: str, **fields: Any) -> Json:
    return {"content": [{"type": "text", "text": text}], **fields}


def ask_client(params: Json) -> Json:
    """Ask the client something, and give back what it answers."""
    send({"id": "q", "method": "elicitation/create", "params": params})
    while (message := read()).get("id") != "q":
        if message.get("method") == "notifications/cancelled":
            Path("cancelled").touch()
    return result(json.dumps(message.get("result") or message.get("error")))


def die_once(args: Json) -> Json:
    if Path("died").exists():
        return echo(args)
    Path("died").touch()
    sys.stderr.write("out of paper\n")
    sys.stderr.flush()
    os._exit(3)


def wait(_: Json) -> Json:
    """Say that it waits, and note when it is told not to."""
    params = {"level": "warning", "data": "waiting"}
    send({"method": "notifications/message", "params": params})
    while True:
        if read().get("method") == "notifications/cancelled":
            Path("cancelled").touch()


def write_without_end(_: Json) -> Json:
    while True:
        sys.stdout.write("a" * 1_000_000)


def sample(_: Json) -> Json:
    """Ask for a model and for the roots, and tell what comes of it."""
    words = {"role": "user", "content": {"type": "text", "text": "say yes"}}
    wanted = {"messages": [words], "maxTokens": 5}
    send({"id": "s", "method": "sampling/createMessage", "params": wanted})
    send({"id": "r", "method": "roots/list"})
    answers = {each["id"]: each for each in (read(), read())}
    roots = [root["uri"] for root in answers["r"]["result"]["roots"]]
    return result(json.dumps([answers["s"].get("error", {}).get("code"), roots]))


def many_parts(_: Json) -> Json:
    picture = {"type": "image", "data": "not base64!", "mimeType": "image/png"}
    return {"content": [picture, *[{"type": "text", "text": "."}] * 150]}


def deep(_: Json) -> Json:
    value: Any = 1
    for _level in range(60):
        value = [value]
    return result("ok", structuredContent={"text": "a" * 40 + "!", "deep": value})


def open_link(args: Json) -> Json:
    link = {"mode": "url", "message": "Sign in", "url": args["text"], "elicitationId": "e1"}
    return ask_client(link)


def echo(args: Json) -> Json:
    return result(f"{args['tool']}: {args.get('text', '')}")


CALLS: dict[str, Callable[[Json], Json]] = {
    "dies": die_once,
    "silent": wait,
    "huge": lambda _: result("a" * 3_000_000),
    "endless": write_without_end,
    "wrong": lambda _: {"content": "no list"},
    "link": open_link,
    "form": lambda _: ask_client({"message": "Who are you?", "requestedSchema": NAME}),
    "pattern": deep,
    "samples": sample,
    "binary": many_parts,
}
"""How to misbehave → what a call comes to."""

SLOW_PATTERN: Json = {
    "type": "object",
    "properties": {"text": {"type": "string", "pattern": "^(a+)+$"}},
}

LISTS: dict[str, Json] = {
    "pages": {"tools": [tool("echo")], "nextCursor": "more"},
    "pattern": {"tools": [tool("echo", outputSchema=SLOW_PATTERN)]},
    "odd": {
        "tools": [
            tool("echo"),
            tool("echo", description="an impostor"),
            tool("read file/now!"),
            tool("x" * 100),
            tool("endless", {"type": "object", "description": "y" * 40_000}),
            tool("talkative", description="z" * 9_000),
        ]
    },
}


def begin() -> None:
    if HOW == "garbage":
        sys.stdout.write('Welcome to the server!\n{"jsonrpc": 12\n')
    elif HOW == "slow":
        time.sleep(600)
    elif HOW == "broken":
        sys.stderr.write("no licence for " + os.environ.get("SERVER_TOKEN", "") + "\n")
        sys.exit(7)


def answer(method: str, params: Json) -> Json:
    """The answer to a request, as the fields of its message."""
    if method == "initialize":
        return {"result": HELLO}
    if method == "tools/list":
        return {"result": LISTS.get(HOW, {"tools": [tool("echo")]})}
    if method == "tools/call" and HOW != "refuses":
        args: Json = {"tool": params["name"], **params.get("arguments", {})}
        return {"result": CALLS.get(HOW, echo)(args)}
    return {"error": {"code": -32601, "message": f"never heard of {method}"}}


def main() -> None:
    begin()
    while True:
        request = read()
        if "id" in request and "method" in request:
            send({"id": request["id"], **answer(request["method"], request.get("params") or {})})


main()
