"""Threads on a running Edge, made fast: as another runtime sends its facts, thousands at once."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import httpx
import msgspec

from tests.client.edge_processes import PATIENCE, TOKEN

BATCH = 10_000


def client_of(url: str) -> httpx.Client:
    """Asks an Edge, with its token."""
    headers = {"authorization": f"Bearer {TOKEN}"}
    return httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=PATIENCE)


def post(http: httpx.Client, facts: Iterable[dict[str, Any]]) -> None:
    """Send facts, in batches that an Edge takes."""
    rest = iter(facts)
    while batch := list(islice(rest, BATCH)):
        body = msgspec.json.encode({"facts": batch})
        answer = http.post("/v1/facts", content=body, headers={"content-type": "application/json"})
        assert answer.is_success, answer.text


def fact(
    thread_id: str, sequence: int, event_class: str, payload: dict[str, Any], **ids: str
) -> dict[str, Any]:
    """One fact of a thread that another runtime writes."""
    minutes, seconds = divmod(sequence, 60)
    return {
        "id": f"{thread_id}-{sequence}",
        "kind": "state",
        "status": "running",
        "title": event_class,
        "createdAt": f"2026-01-01T{minutes // 60 % 24:02}:{minutes % 60:02}:{seconds:02}Z",
        "schemaVersion": "factwire-fact/v1",
        "runtimeId": "elsewhere",
        "sequence": sequence,
        "eventClass": event_class,
        "threadId": thread_id,
        "turnId": f"{thread_id}-turn",
        "payload": payload,
        **ids,
    }


def message_facts(
    thread_id: str, texts: Iterable[str], title: str = "Told"
) -> Iterator[dict[str, Any]]:
    """A thread in which an agent says these things, each as a message of its own."""
    yield fact(thread_id, 1, "thread.started", {"title": title})
    yield fact(thread_id, 2, "turn.started", {})
    for number, text in enumerate(texts, 3):
        message = f"{thread_id}-message-{number}"
        payload = {"messageId": message, "partId": f"{message}-part", "text": text}
        yield fact(thread_id, number, "text.final", payload, messageId=message)
