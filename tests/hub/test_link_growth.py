"""What a Hub does again and again reads what is open, however long the past is: with a long past in
the tables, the rows are counted that each statement reads, on SQLite and PostgreSQL.
"""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import pytest_asyncio
from sqlalchemy import BigInteger, Boolean, Table, event, insert, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from factwire.edge.hub_frames import AgentDone, EdgeHeartbeat
from factwire.hub.approvals import approval_records
from factwire.hub.frames.event_log import (
    read_all_events,
    read_membership_changes,
    remove_old_events,
)
from factwire.hub.frames.hub_connections import HubConnections, OpenSocket
from factwire.hub.link.edge_link import Overdue
from factwire.hub.link.runner_records import list_kept
from factwire.hub.link.task_streams import select_open_streams
from factwire.hub.notifications.notification_ledger import claim_deliveries, note_screens
from factwire.hub.record_retention import remove_old_records
from factwire.hub.records.approval_tables import approvals
from factwire.hub.records.device_tables import devices, edges, runners
from factwire.hub.records.event_tables import audience_members, event_counter, events
from factwire.hub.records.grant_records import find_revoked_grants
from factwire.hub.records.hub_database import open_database
from factwire.hub.records.hub_tables import people, sessions
from factwire.hub.records.link_tables import agent_tasks, deliveries, execution_targets
from factwire.hub.records.notification_tables import notification_deliveries, notifications
from factwire.hub.records.people_records import find_ended_sessions
from factwire.hub.records.team_tables import (
    supervisor_turns,
    team_assignments,
    team_runs,
    team_tasks,
    teams,
)
from factwire.hub.teams.supervisor_turns import find_led_runs
from factwire.hub.teams.team_runs import find_due_tasks
from tests.hub.hubs import SteppedClock
from tests.hub.linked_devices import OWNER, EdgeSide, LinkedHub
from tests.hub.test_hub_records import (
    create_postgres_database,
    describe_device,
    describe_edge,
    person,
)
from tests.journal import postgres_server
from tests.journal.postgres_server import PostgresServer

postgres = postgres_server.postgres
pytestmark = [pytest.mark.asyncio, pytest.mark.requirement("link.growth")]

PAST = 2_000
"""Rows that have ended, of each table."""

READ_MOST = 400
"""Rows that a statement may read; there are a few that are open."""

STEPS_OF_ROW = 8
"""Steps that SQLite takes at least to read a row and find that it is not wanted."""

GROWING = (
    *("agent_tasks", "deliveries", "approvals", "devices", "execution_targets"),
    *("sessions", "runners", "events", "audience_members", "notifications"),
    *(
        "notification_deliveries",
        "team_runs",
        "supervisor_turns",
        "team_assignments",
        "grants",
        "edges",
        "people",
    ),
)
WAITING = "dev_waiting"
LONG_AGO = 1_000
FAR = 2**60
NOW = 10**12


def past_device(number: int) -> dict[str, Any]:
    values = {"edge_id": f"edge_past_{number // 2}", "revoked_at": LONG_AGO}
    return {**describe_device(f"dev_past_{number}"), **values}


def past_task(number: int, device_id: str) -> dict[str, Any]:
    status = ("done", "failed", "cancelled", "timed_out", "expired")[number % 5]
    times = ("created", "updated", "expires", "delivered", "heard", "deadline", "ended", "closing")
    return {
        "task_id": f"tsk_past_{number}",
        "person_id": OWNER,
        "device_id": device_id,
        "target_id": f"tgt_{number}",
        "agent_instance_id": "agent",
        "agent_type": "demo",
        "prompt": "go on",
        "status": status,
        "edge_run_id": f"run_past_{number}",
        "stream_seq": 0,
        "stream_until": LONG_AGO,
        "timeout_seconds": 1,
        **{f"{name}_at": LONG_AGO for name in times},
    }


def past_target(number: int, device_id: str) -> dict[str, Any]:
    return {
        "target_id": f"tgt_{number}",
        "person_id": OWNER,
        "device_id": device_id,
        "name": f"Target {number}",
        "created_at": LONG_AGO,
        "approvals_required": 2,
    }


def past_delivery(number: int, device_id: str) -> dict[str, Any]:
    kind = ("dispatch", "cancel", "control", "relay")[number % 4]
    return {
        "delivery_id": f"dlv_past_{number}",
        "device_id": device_id,
        "person_id": OWNER,
        "kind": kind,
        "task_id": f"tsk_past_{number}",
        "payload": "{}",
        "state": ("acked", "refused", "expired")[number % 3],
        "attempts": 1,
        **{f"{name}_at": LONG_AGO for name in ("created", "next", "expires", "sent", "ended")},
    }


def waiting_delivery() -> dict[str, Any]:
    """What is to be done on a device that is off, by somebody who has many devices."""
    open_values = {"state": "pending", "next_at": FAR, "expires_at": FAR, "needed_role": "operator"}
    return {**past_delivery(3, WAITING), **open_values, "delivery_id": "dlv_open", "ended_at": None}


def past_approval(number: int, device_id: str) -> dict[str, Any]:
    state, code = (
        ("applied", None),
        ("expired", "overdue"),
        ("refused", "approval_decided"),
        ("withdrawn", None),
    )[number % 4]
    return {
        "approval_id": f"apr_past_{number}",
        "device_id": device_id,
        "edge_id": f"edge_{device_id}",
        "action_id": f"act_{number}",
        "request_id": f"act_{number}",
        "fact_id": f"fct_{number}",
        "state": state,
        "kind": "command",
        "risk_level": "high",
        "args_hash": "sha256:0",
        "required": 1,
        "code": code,
        **{f"{name}_at": LONG_AGO for name in ("asked", "expires", "ended")},
    }


def past_row(table: Table, number: int, **values: Any) -> dict[str, Any]:
    """A row of long ago; ids are its number's, and foreign ones too where nothing else is said."""
    ids = {each.name: f"{each.name}_{number}" for each in table.c if not each.nullable}
    times = {each: LONG_AGO for each in ids if isinstance(table.c[each].type, BigInteger)}
    flags = {each: True for each in ids if isinstance(table.c[each].type, Boolean)}
    return {**ids, **times, **flags, **values}


PAST_RECORDS: dict[Table, Callable[[int], dict[str, Any]]] = {
    sessions: lambda _: {"person_id": OWNER, "ended_at": LONG_AGO},
    events: lambda number: {"seq": number + 1, "audience": f"chat:ses_{number % 50}"},
    audience_members: lambda number: {
        "person_id": OWNER,
        "from_seq": number,
        "until_seq": number + 1,
    },
    notifications: lambda number: {
        "person_id": OWNER,
        "created_at": NOW,
        "expires_at": FAR,
        "seen_at": NOW,
        "closed_at": NOW if number % 2 else None,
    },
    notification_deliveries: lambda _: {
        "channel": "socket",
        "state": "delivered",
        "is_fallback": False,
        "attempts": 1,
    },
    runners: lambda number: {
        "person_id": OWNER,
        "keeper_id": "kpr_1",
        "state": "released",
        "device_id": f"dev_past_{number}",
    },
    team_runs: lambda _: {"team_id": "team_1", "person_id": OWNER, "status": "finished"},
    supervisor_turns: lambda number: {
        "team_run_id": f"team_run_id_{number}",
        "status": "decided",
        "ended_at": LONG_AGO,
        "settled_at": LONG_AGO,
    },
    team_tasks: lambda _: {"kind": "work"},
    team_assignments: lambda number: {
        "team_id": "team_1",
        "device_id": f"dev_past_{number}",
        "agent_task_id": f"tsk_past_{number}",
        "status": "completed",
    },
}
"""Table → what its rows of long ago say, beside their ids."""


@contextmanager
def record_statements(hub: LinkedHub) -> Generator[list[tuple[str, Any]]]:
    """The statements that are executed while the block lasts."""
    found: list[tuple[str, Any]] = []

    def record(_: Any, __: Any, statement: str, parameters: Any, ___: Any, many: Any) -> None:
        if statement.startswith(("SELECT", "UPDATE", "DELETE")):
            found.append((statement, parameters[0] if many else parameters))

    engine = hub.database._engine.sync_engine
    event.listen(engine, "before_cursor_execute", record)
    try:
        yield found
    finally:
        event.remove(engine, "before_cursor_execute", record)


class GrowthContract:
    """What holds on every database."""

    @pytest_asyncio.fixture
    async def hub(self, url: str, tmp_path: Path) -> AsyncGenerator[LinkedHub]:
        async with open_database(url) as database:
            async with database.write() as connection:
                await connection.execute(insert(people).values(person(1)))
            hub = LinkedHub(database, SteppedClock(), tmp_path)
            await hub.add_devices(1)
            # As a Hub has them, beside what is due of tasks and deliveries.
            for select in (
                approval_records.select_open_overdue,
                approval_records.select_lost_overdue,
            ):
                hub.link.overdue.append(Overdue(select, self.settle_nothing))
            await self.fill(hub, hub.sides[0].device.device_id)
            yield hub
            await hub.close_devices()

    async def settle_nothing(self, *_: Any) -> None:
        raise NotImplementedError

    async def fill(self, hub: LinkedHub, device_id: str) -> None:
        async with hub.database.write() as connection:
            numbers = range(PAST)
            await connection.execute(insert(devices), [past_device(each) for each in numbers])
            rows: tuple[tuple[Any, Callable[[int, str], dict[str, Any]]], ...] = (
                (execution_targets, past_target),
                (agent_tasks, past_task),
                (deliveries, past_delivery),
                (approvals, past_approval),
            )
            names = [WAITING, *(f"dev_past_{each}" for each in numbers)]
            await connection.execute(insert(devices).values(describe_device(WAITING)))
            await connection.execute(insert(edges), [describe_edge(each) for each in names])
            await connection.execute(insert(deliveries).values(waiting_delivery()))
            for table, build in rows:
                values = [build(each, device_id) for each in numbers]
                await connection.execute(insert(table), values)
        await self.gather_statistics(hub)

    async def gather_statistics(self, hub: LinkedHub) -> None: ...

    async def count_read(self, connection: AsyncConnection, statement: str, values: Any) -> int:
        """How many rows of one table a statement reads, at most."""
        raise NotImplementedError

    async def check(self, hub: LinkedHub, statements: list[tuple[str, Any]]) -> None:
        assert statements
        async with hub.database.write() as connection:
            read = [
                (await self.count_read(connection, statement, values), statement)
                for statement, values in statements
            ]
        for number, statement in read:
            assert number <= READ_MOST, f"reads {number} rows: {statement}"

    async def begin(self, hub: LinkedHub) -> tuple[EdgeSide, str]:
        side = hub.sides[0]
        await hub.connect(side)
        task_id = await hub.create(side)
        await hub.settle()
        return side, task_id

    async def look(self, hub: LinkedHub) -> list[tuple[str, Any]]:
        """The statements of a look for what is due, and for the runs and the rules of an Edge."""
        side, _ = await self.begin(hub)
        hub.clock.advance(5)
        edge_id, run_id = side.device.edge_id, next(iter(side.work.runs))
        queries = (
            select_open_streams(edge_id, hub.link._now()),
            approval_records.select_target_rule(edge_id, run_id),
        )
        with record_statements(hub) as statements:
            await hub.link.tick()
            async with hub.database.read() as connection:
                streams, rules = [(await connection.execute(each)).all() for each in queries]
        assert (len(streams), rules) == (1, [])
        # One for each thing that can be due, one for the queues of devices, and these two.
        assert len(statements) == len(hub.link.overdue) + 3
        return statements

    async def test_a_look_for_what_is_due_reads_what_is_open_alone(self, hub: LinkedHub):
        await self.check(hub, await self.look(hub))

    @pytest.mark.parametrize(
        "index",
        [
            "ix_deliveries_ended_at",
            "ix_agent_tasks_device_id_stream_until",
            "ix_agent_tasks_edge_run_id",
            "ix_approvals_code_expires_at",
        ],
    )
    async def test_an_index_that_is_missing_is_noticed(self, hub: LinkedHub, index: str):
        async with hub.database.write() as connection:
            await connection.execute(text(f"DROP INDEX {index}"))
        with pytest.raises(AssertionError, match=r"reads \d+ rows"):
            await self.check(hub, await self.look(hub))

    async def test_what_is_due_is_found_and_settled_without_reading_the_past(self, hub: LinkedHub):
        side, _ = await self.begin(hub)
        await hub.create(side)
        await hub.join_again(side)
        hub.clock.advance(13 * 3_600)
        with record_statements(hub) as statements:
            await hub.link.tick()
        assert any(statement.startswith("UPDATE") for statement, _ in statements)
        await self.check(hub, statements)

    async def test_what_a_device_says_is_taken_without_reading_the_past(self, hub: LinkedHub):
        side, task_id = await self.begin(hub)
        beat = EdgeHeartbeat(
            edge_id=side.device.edge_id,
            device_id=side.device.device_id,
            version="1",
            agents=["demo"],
            tasks=[task_id],
        )
        end = AgentDone(task_id=task_id, result_summary="", usage={})
        with record_statements(hub) as statements:
            await hub.link.note_connected(side.device)
            await hub.link.take_frame(side.device, "edge.heartbeat", beat)
            await hub.link.take_frame(side.device, "agent.done", end)
        await self.check(hub, statements)

    async def fill_records(self, hub: LinkedHub) -> None:
        """Have a long past of people, too, of which what may go has gone."""
        team = past_row(teams, 1, team_id="team_1", person_id=OWNER)
        async with hub.database.write() as connection:
            await connection.execute(insert(teams).values(team))
            for table, describe in PAST_RECORDS.items():
                rows = [past_row(table, each, **describe(each)) for each in range(PAST)]
                await connection.execute(insert(table), rows)
            await connection.execute(update(event_counter).values(seq=PAST + 1))
        while await remove_old_records(hub.database, NOW, 1):
            pass
        await self.gather_statistics(hub)

    async def look_around(self, hub: LinkedHub) -> list[tuple[str, Any]]:
        """The statements of a round of everything that a Hub does beside the link."""
        connections = HubConnections(hub.database, hub.events, lambda: NOW / 1_000)
        here = OpenSocket(OWNER, "ses_1", None, cast("Any", None))
        connections._by_device[hub.sides[0].device.device_id] = here
        with record_statements(hub) as statements:
            await connections.note_devices()
            await remove_old_records(hub.database, NOW, 1)
            await remove_old_events(hub.database, LONG_AGO, 100)
            async with hub.database.write() as connection:
                await find_ended_sessions(connection, NOW, NOW)
                await find_revoked_grants(connection, NOW)
                await note_screens(connection, [OWNER], NOW)
                await claim_deliveries(connection, NOW)
                await find_due_tasks(connection, NOW)
                await find_led_runs(connection)
                await read_all_events(connection, PAST, PAST + 1, 100)
                await read_membership_changes(connection, PAST, PAST + 1)
                await list_kept(connection, "kpr_1")
        return statements

    @pytest.mark.requirement("hub.growth")
    async def test_whatever_a_hub_looks_for_reads_what_is_open_alone(self, hub: LinkedHub):
        await self.fill_records(hub)
        await self.check(hub, await self.look_around(hub))
        # The later of two statements first: the earlier one that reads too much is what is named.
        for index, table in (
            ("ix_notifications_person_id_expires_at", "notifications"),
            ("ix_approvals_ended_at", "approvals"),
            ("ix_devices_last_seen_at", "devices"),
        ):
            async with hub.database.write() as connection:
                await connection.execute(text(f"DROP INDEX {index}"))
            with pytest.raises(AssertionError, match=rf"reads \d+ rows: [^;]*FROM {table} "):
                await self.check(hub, await self.look_around(hub))


class TestOnSqlite(GrowthContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:{tmp_path / 'hub.db'}"

    async def count_read(self, connection: AsyncConnection, statement: str, values: Any) -> int:
        """By the steps of SQLite's machine, of which it takes several for a row."""
        rows = 0

        def count() -> int:
            nonlocal rows
            rows += 1
            return 0

        driver: Any = (await connection.get_raw_connection()).driver_connection
        await driver.set_progress_handler(count, STEPS_OF_ROW)
        async with connection.begin_nested() as point:
            (await connection.exec_driver_sql(statement, values)).close()
            await point.rollback()
        await driver.set_progress_handler(None, 0)
        return rows


class TestOnPostgres(GrowthContract):
    @pytest_asyncio.fixture
    async def url(self, postgres: PostgresServer) -> str:
        return await create_postgres_database(postgres)

    async def gather_statistics(self, hub: LinkedHub) -> None:
        async with hub.database.write() as connection:
            await connection.execute(text("ANALYZE"))

    async def count_read(self, connection: AsyncConnection, statement: str, values: Any) -> int:
        explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}"
        async with connection.begin_nested() as point:
            found = (await connection.exec_driver_sql(explain, values)).scalar_one()
            await point.rollback()
        plan = msgspec.json.decode(found) if isinstance(found, str) else found
        return max(_count_rows(plan[0]["Plan"]), default=0)


def _count_rows(node: dict[str, Any]) -> Generator[int]:
    """The rows that each step of a plan read of a table."""
    if node.get("Relation Name") in GROWING and node["Node Type"] != "ModifyTable":
        removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Join Filter", 0)
        yield round((node["Actual Rows"] + removed) * node["Actual Loops"])
    for child in node.get("Plans", ()):
        yield from _count_rows(child)
