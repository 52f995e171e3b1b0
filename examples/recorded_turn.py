"""Read a recorded turn, answer three questions about it without reading any prose."""

from pathlib import Path

from factwire.facts import OpenActions, StreamInspector, decode_fact, id_of

stream = Path(__file__).with_name("first_turn.ndjson")
inspector, actions = StreamInspector(), OpenActions()
tools: dict[str, str] = {}

for line in stream.read_bytes().splitlines():
    for issue in inspector.feed(line):
        print(issue.code, issue.path, issue.message)
    fact = decode_fact(line)
    actions.feed(fact)
    call = id_of(fact, "toolCallId")
    if call and (fact.event_class or "").startswith("tool."):
        tools[call] = fact.status

print(f"{inspector.facts} facts, gaps: {len(inspector.finish())}")
print(f"tools: {tools}")
print(f"waiting for a person: {len(actions.all())}")
