"""Run the benchmarks: `python -m bench [NAME …]`."""

import sys
from collections.abc import Callable

from bench import (
    edge_fanout,
    edge_loop,
    edge_path,
    evidence,
    facts,
    journal_nats,
    journal_postgres,
    journal_sqlite,
    mirror,
    projection,
    runtime,
    sources,
    workbench,
)
from bench.measure import Row, show

GROUPS: dict[str, tuple[str, Callable[[], list[Row]]]] = {
    "facts": ("Facts: one core, decode to encode", facts.rows),
    "sqlite": ("Journal on SQLite, synced on every commit", journal_sqlite.rows),
    "postgres": ("Journal on PostgreSQL", journal_postgres.rows),
    "nats": ("Journal on NATS JetStream", journal_nats.rows),
    "projection": ("Projection: one core, decoded facts", projection.rows),
    "runtime": ("Runtime: one turn, journal on SQLite", runtime.rows),
    "sources": ("Sources: one core, lines of other agents to facts", sources.rows),
    "edge": ("Edge: from a request to every reader", edge_path.rows),
    "loop": ("Edge: how long the event loop is held", edge_loop.rows),
    "fanout": ("Edge: one core, facts to many sockets", edge_fanout.rows),
    "hub": ("Hub: a journal to its mirror", mirror.rows),
    "evidence": ("Evidence: a pack of a million facts", evidence.rows),
    "workbench": ("Workbench: in Chromium, from a key to the picture", workbench.rows),
}


def main() -> None:
    """Run the named groups, or all of them."""
    wanted = sys.argv[1:] or list(GROUPS)
    unknown = [name for name in wanted if name not in GROUPS]
    if unknown:
        sys.exit(f"no benchmark called {', '.join(unknown)}; there are {', '.join(GROUPS)}")
    for name in wanted:
        title, rows = GROUPS[name]
        show(title, rows())


if __name__ == "__main__":
    main()
