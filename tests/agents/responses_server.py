"""A model on loopback that calls tools of a namespace, which the fake model cannot: Codex's agents
are such tools.
"""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Item = dict[str, Any]
Model = Callable[[list[Item]], Item]
"""What was said so far → what the model says to it."""


def text(words: str) -> Item:
    content: list[Item] = [{"type": "output_text", "text": words, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": content}


def call(namespace: str, name: str, call_id: str, **arguments: Any) -> Item:
    settings = json.dumps(arguments)
    named = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name}
    return {**named, "namespace": namespace, "arguments": settings, "status": "completed"}


@contextmanager
def responses_server(model: Model) -> Generator[str]:
    """The address of a server that answers `/responses` by this model."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["content-length"])
            payloads = json.loads(self.rfile.read(size))
            item = model(payloads["input"])
            usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
            response = {"id": "resp_1", "object": "response", "output": [item], "usage": usage}
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for event in (
                {"type": "response.created", "response": {**response, "output": []}},
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {"type": "response.completed", "response": {**response, "status": "completed"}},
            ):
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its own name
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
