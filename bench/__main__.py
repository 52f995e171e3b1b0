"""Run the benchmarks: `python -m bench [NAME …]`; `hub` stands for all that is about the Hub."""

import argparse
from collections.abc import Callable
from functools import partial

from bench import (
    edge_fanout,
    edge_loop,
    edge_path,
    evidence,
    facts,
    hub_approvals,
    hub_growth,
    hub_sockets,
    hub_teams,
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

Group = tuple[str, Callable[[], list[Row]]]

HUB = ("sockets", "approvals", "teams", "mirror", "growth")
"""What is measured of a Hub."""


def _list_groups(facts_of_upload: int) -> dict[str, Group]:
    return {
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
        "sockets": ("Hub: events to many sockets", hub_sockets.rows),
        "approvals": ("Hub: from a decision to its effect", hub_approvals.rows),
        "teams": ("Hub: a hundred runs of teams at once, records on SQLite", hub_teams.rows),
        "mirror": ("Hub: a journal to its mirror", partial(mirror.rows, facts_of_upload)),
        "growth": ("Hub: ten times of everything, records on SQLite", hub_growth.rows),
        "evidence": ("Evidence: a pack of a million facts", evidence.rows),
        "workbench": ("Workbench: in Chromium, from a key to the picture", workbench.rows),
    }


def main() -> None:
    """Run the named groups, or all of them."""
    names = [*_list_groups(0), "hub"]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument(
        "--facts", type=int, default=mirror.FACTS, help="facts of the journal that mirror uploads"
    )
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in names]
    if unknown:
        parser.error(f"no benchmark called {', '.join(unknown)}; there are {', '.join(names)}")
    groups = _list_groups(arguments.facts)
    wanted = [each for name in arguments.names for each in (HUB if name == "hub" else (name,))]
    for name in wanted or groups:
        title, rows = groups[name]
        show(title, rows())


if __name__ == "__main__":
    main()
