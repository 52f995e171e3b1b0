"""A program that serves as OpenCode does, and does what a message says.

It is run by itself, and knows nothing of Factwire. The last word of a message names what it does.
"""

import base64
import hashlib
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SESSION = "ses_1"
PASSWORD = os.environ["OPENCODE_SERVER_PASSWORD"]
KEY = "Basic " + base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()
EVENTS: "queue.Queue[bytes | None]" = queue.Queue()
SAID: "queue.Queue[Any]" = queue.Queue()
COUNT = iter(range(1, 1_000))


def say(kind: str, **properties: Any) -> None:
    event = {"type": kind, "properties": {"sessionID": SESSION, **properties}}
    EVENTS.put(f"data: {json.dumps(event)}\n\n".encode())


def message(role: str) -> str:
    name = f"msg_{next(COUNT)}"
    say("message.updated", info={"id": name, "role": role, "sessionID": SESSION})
    return name


def part(name: str, text: str, **more: Any) -> None:
    settings = {"id": f"prt_{name}", "messageID": name, "sessionID": SESSION, "type": "text"}
    say("message.part.updated", part={**settings, "text": text, **more})


def ask_line(parts: list[Any]) -> None:
    name = message("user")
    part(name, parts[0]["text"])


def text(words: str) -> None:
    part(message("assistant"), words, time={"start": 1, "end": 2})


def starts(words: str) -> None:
    part(message("assistant"), words)


def idle() -> None:
    say("session.idle")


def answers(parts: Any) -> None:
    ask_line(parts)
    text("Done.")
    idle()


def repeats(parts: Any) -> None:
    """What it was given, and how it was started."""
    ask_line(parts)
    outcome: dict[str, Any] = {"argv": sys.argv[1:]}
    outcome["key"] = hashlib.sha256(PASSWORD.encode()).hexdigest()
    outcome["parts"] = [each.get("mime") or each["text"] for each in parts]
    outcome["settings"] = [
        json.loads(os.environ.get(f"OPENCODE_{name}", "null"))
        for name in ("CONFIG_CONTENT", "PERMISSION")
    ]
    outcome["session"] = Handler.begun_with
    outcome["names"] = sorted(name for name in os.environ if "TEST_" in name)
    text(json.dumps(outcome))
    idle()


def dies(parts: Any) -> None:
    ask_line(parts)
    starts("Half an ans")
    time.sleep(0.1)
    sys.stderr.write("out of memory\n")
    sys.stderr.flush()
    os._exit(3)


def leaves(parts: Any) -> None:
    """The stream of events is over, the server is not."""
    ask_line(parts)
    EVENTS.put(None)


def babbles(parts: Any) -> None:
    EVENTS.put(b"data: nonsense\n\ndata: [1]\n\n")
    say("session.unheard-of")
    answers(parts)


def errs(parts: Any) -> None:
    """It does not come to a message."""
    del parts
    error = {"name": "UnknownError", "data": {"message": "no such agent"}}
    say("session.error", error=error)


def hangs(parts: Any) -> None:
    ask_line(parts)
    starts("Let me ")


def asks(parts: Any) -> None:
    """Each question there is; the answers are the answer."""
    ask_line(parts)
    heard: list[Any] = []
    one = {"header": "Colour", "question": "Which?"}
    two = {"header": "Size", "question": "How big?"}
    asking: list[tuple[str, dict[str, Any]]] = [
        ("permission", {"permission": "bash", "metadata": {"command": "make"}}),
        ("permission", {"permission": "edit", "metadata": {"filepath": "a, b"}}),
        ("permission", {"permission": "external_directory", "patterns": ["/etc/*"]}),
        ("question", {"questions": [one]}),
        ("question", {"questions": [one, two]}),
    ]
    for number, (kind, properties) in enumerate(asking):
        say(f"{kind}.asked", id=f"req_{number}", **properties)
        heard.append(SAID.get(timeout=30))
    text(json.dumps(heard))
    idle()


def settles(parts: Any) -> None:
    """It asks, and has the answer before anybody gives one."""
    ask_line(parts)
    say("permission.asked", id="req_1", permission="bash", metadata={"command": "make"})
    say("permission.replied", requestID="req_1", reply="reject")
    text("Done.")
    idle()


def hurries(parts: Any) -> None:
    """The session is idle when something is said into it, and works on that after."""
    ask_line(parts)
    starts("Already ")
    more = SAID.get(timeout=30)
    idle()
    ask_line(more)
    text(more[0]["text"])
    idle()


WORKS: dict[str, Callable[[Any], None]] = {
    each.__name__: each
    for each in (
        answers,
        asks,
        babbles,
        dies,
        errs,
        hangs,
        hurries,
        leaves,
        repeats,
        settles,
    )
}


class Handler(BaseHTTPRequestHandler):
    is_working = False
    begun_with: Any = None

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if not self.is_known():
            return
        if path == "/event":
            self.stream()
        elif path == "/session/status":
            self.answer(200, {})
        else:
            status = 404 if "forgetful" in sys.argv else 200
            self.answer(status, {"id": SESSION, "data": {"message": "no such session"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))) or "null")
        path = self.path.partition("?")[0]
        if not self.is_known():
            return
        if path == "/session":
            Handler.begun_with = body
            self.answer(200, {"id": SESSION})
        elif path.endswith("/prompt_async"):
            self.prompt(body["parts"])
        elif path.endswith(("/reply", "/reject")):
            self.answer(200, True)
            SAID.put([path, body])
        else:
            self.answer(200, True)

    def prompt(self, parts: list[Any]) -> None:
        if parts[0]["text"] == "refuse":
            self.answer(400, {"_tag": "InvalidRequestError", "message": "no such model"})
            return
        self.answer(204, None)
        if Handler.is_working:
            SAID.put(parts)
            return
        Handler.is_working = True
        work = WORKS[parts[0]["text"].split()[-1]]
        threading.Thread(target=work, args=(parts,), daemon=True).start()

    def stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        say("server.connected")
        while (event := EVENTS.get()) is not None:
            self.wfile.write(event)
            self.wfile.flush()
        self.close_connection = True

    def is_known(self) -> bool:
        if self.headers.get("Authorization") == KEY:
            return True
        self.answer(401, None)
        return False

    def answer(self, status: int, body: Any) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name it has
        del format, args


if "broken" in sys.argv:
    sys.exit("error: cannot read opencode.json")
if "silent" in sys.argv:
    time.sleep(600)
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
sys.stdout.write("Warning: nothing\n")
sys.stdout.write(f"opencode server listening on http://127.0.0.1:{server.server_port}\n")
sys.stdout.flush()
server.serve_forever()
