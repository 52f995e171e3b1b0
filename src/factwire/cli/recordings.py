"""A recorded run, wherever it is kept: a file of facts in any form, a pack, or a journal.

Every fact comes with its place, by which a person names a point of the run. In a journal that is
the journal's seq. In a file it is the fact's sequence in its thread; a fact that has none there,
because it carries no sequence or belongs to a child thread, stands at the furthest place that came
before it, or before all others. Where each run of a thread counts by itself, places go on counting
from run to run. Up to a place means every fact whose place is not beyond it.

A thread is the child of another when a fact of it names that one as its parent thread, or when a
subagent of that one runs on it. A thread with its children, and theirs, is one family, and what a
person means by one run. All of this follows from facts; nothing is guessed from names or times.

A file is read twice, first for the threads it holds and then for the facts of one, and so not held
in memory when it has one thread, one fact to a line and its facts in order. The facts of any other
file are put in order first, as `order_facts` does. What cannot be read twice is put into a
temporary file. A journal is read by filter: a thread and its children, and nothing of the others.
"""

import asyncio
import heapq
import shutil
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final, NamedTuple, Protocol, cast

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from factwire.cli.fact_files import (
    FactSource,
    open_source,
    read_document,
    reread_items,
    watch_progress,
)
from factwire.cli.targets import open_for_reading
from factwire.cli.terminal import CliError, print_remark, terminal_safe
from factwire.facts import (
    FIELDS_FILLED_IN,
    SECRETS_REDACTED,
    Fact,
    InvalidFacts,
    LenientReader,
    NameRedactor,
    RecordingRedactor,
    UnreadableInput,
    redact_text,
    redacted_remark,
)
from factwire.facts.fact import id_of
from factwire.facts.shapes import RepeatNumbers
from factwire.journal import JOURNAL_SCHEMES, CatalogueThread, Cursor, FactBatch, Filter, Journal
from factwire.journal.filter import find_thread_id
from factwire.projection.ordering import (
    TEAMMATE_CLASSES,
    OrderCheck,
    child_thread_of,
    order_facts,
)

_TITLED: Final = frozenset({"thread.started", "thread.updated"})


class ThreadKin(msgspec.Struct, kw_only=True):
    """One thread: the parent that its facts name, and the threads its subagents run on."""

    thread_id: str
    title: str | None = None
    facts: int = 0
    parent: str | None = None
    named: set[str] = msgspec.field(default_factory=set[str])


class ThreadFamily(msgspec.Struct, frozen=True, kw_only=True):
    """A thread and all threads below it. `alone` is whether the input holds no other: then facts
    that name no thread are part of it, too. Without `thread_id` no fact names any.
    """

    thread_id: str | None
    members: frozenset[str]
    alone: bool

    def has(self, fact: Fact) -> bool:
        thread = find_thread_id(fact)
        return self.alone if thread is None else thread in self.members

    def is_main(self, fact: Fact) -> bool:
        """Whether the fact is counted by the thread's own sequence."""
        return find_thread_id(fact) in (None, self.thread_id)


class ThreadKinship:
    """All threads of an input, in the order in which they were met."""

    def __init__(self) -> None:
        self.threads: dict[str, ThreadKin] = {}
        self.facts = 0

    def note(self, fact: Fact) -> None:
        """Take in the next fact of the input."""
        self.facts += 1
        thread = find_thread_id(fact)
        if thread is None:
            return
        kin = self.threads.get(thread)
        if kin is None:
            kin = self.add(ThreadKin(thread_id=thread))
        kin.facts += 1
        kin.parent = kin.parent or id_of(fact, "parentThreadId")
        if fact.event_class in _TITLED and isinstance(fact.payload.get("title"), str):
            kin.title = fact.payload["title"]
        kin.named.update(named_children(fact))

    def add(self, kin: ThreadKin) -> ThreadKin:
        return self.threads.setdefault(kin.thread_id, kin)

    def roots(self) -> list[ThreadKin]:
        """The threads that are nobody's child; of threads in a circle the first met."""
        children = self._children()
        below = {child for each in children.values() for child in each}
        free = [thread for thread in self.threads if thread not in below]
        reached = _reach(free, children)
        for thread in self.threads:
            if thread not in reached:
                free.append(thread)
                reached |= _reach([thread], children)
        return [self.threads[thread] for thread in free]

    def family(self, thread_id: str | None) -> ThreadFamily:
        found = set[str]() if thread_id is None else _reach([thread_id], self._children())
        alone = len(found) == len(self.threads)
        return ThreadFamily(thread_id=thread_id, members=frozenset(found), alone=alone)

    def _children(self) -> dict[str, set[str]]:
        """Thread → its children that are there, itself never among them."""
        children = {
            kin.thread_id: kin.named & self.threads.keys() - {kin.thread_id}
            for kin in self.threads.values()
        }
        for kin in self.threads.values():
            if kin.parent in children and kin.parent != kin.thread_id:
                children[kin.parent].add(kin.thread_id)
        return children


def _reach(threads: Iterable[str], children: dict[str, set[str]]) -> set[str]:
    found, waiting = set[str](), list(threads)
    while waiting:
        thread = waiting.pop()
        if thread not in found:
            found.add(thread)
            waiting += children[thread]
    return found


def named_children(fact: Fact) -> list[str]:
    """The thread that a fact about a subagent says it runs on."""
    child = child_thread_of(fact)
    return [] if child is None else [child]


OPTION: Final = "choose one with --thread ID"

LISTED: Final = 20
"""Threads that are listed for a person to choose from."""

_SQLITE: Final = b"SQLite format 3\x00"
_ARCHIVE: Final = b"PK\x03\x04"
_SCHEMES: Final = tuple(f"{scheme}:" for scheme in JOURNAL_SCHEMES)


class PlacedRow(NamedTuple):
    """A fact and its place; None is before all others."""

    place: int | None
    fact: Fact


class Recording(Protocol):
    """An open recording. `unit` is what a place is called. In one that is `kept`, facts come in
    order, and what is missing between them was removed on purpose.
    """

    name: str
    unit: str
    kept: bool

    async def kinship(self, thread: str | None) -> ThreadKinship:
        """The threads there are: all, or as many as can be listed; with `thread`, those that can
        be of its family.
        """
        ...

    async def family(self, kinship: ThreadKinship, thread: str | None) -> ThreadFamily: ...

    def facts(self, family: ThreadFamily, at: int | None = None) -> AsyncIterator[PlacedRow]:
        """The facts of a family up to a place, in the order of the recording."""
        ...


@asynccontextmanager
async def open_recording(where: str) -> AsyncGenerator[Recording]:
    """Open what a command was given, to be shown: nothing that comes out of it is a secret."""
    async with open_raw_recording(where) as recording:
        yield RedactedRecording(recording)


@asynccontextmanager
async def open_raw_recording(where: str) -> AsyncGenerator[Recording]:
    """Open a path, `-`, an evidence pack, or a journal's URL, to be examined as it is."""
    if is_journal(where):
        async with open_for_reading(where) as journal:
            yield JournalRecording(journal)
    elif is_pack(where):
        from factwire.cli.evidence_packs import open_pack_recording

        with open_pack_recording(where) as recording:
            yield recording
    else:
        with open_file(where) as recording:
            yield recording


def is_journal(where: str) -> bool:
    """Whether a text names a journal: by its scheme, or because the file is a SQLite database."""
    if where.startswith(_SCHEMES) or "://" in where:
        return True
    return _begins_with(where, _SQLITE)


def is_pack(where: str) -> bool:
    """Whether a text names a file that is meant as an evidence pack."""
    return _begins_with(where, _ARCHIVE)


def _begins_with(where: str, start: bytes) -> bool:
    path = Path(where)
    if where == "-" or not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            return stream.read(len(start)) == start
    except OSError:
        return False


async def choose_family(
    recording: Recording, thread: str | None, how: str = OPTION
) -> ThreadFamily:
    """The family of a thread; without one, of the only thread there is.

    Raises `CliError`, and lists the threads, where that does not say which; `how` tells a person
    what the command takes to choose one.
    """
    kinship = await recording.kinship(thread)
    if thread is not None and thread not in kinship.threads:
        roots = (await recording.kinship(None)).roots()
        _print_threads(roots)
        raise CliError(f"{recording.name} has no thread {terminal_safe(thread, 80)!r}")
    if thread is None:
        roots = kinship.roots()
        if len(roots) > 1:
            _print_threads(roots)
            raise CliError(f"{recording.name} contains several threads; {how}")
        thread = roots[0].thread_id if roots else None
    return await recording.family(kinship, thread)


def _print_threads(roots: list[ThreadKin]) -> None:
    if not roots:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("thread", overflow="fold")
    table.add_column("facts", justify="right")
    table.add_column("title", overflow="ellipsis", no_wrap=True)
    for kin in roots[:LISTED]:
        title = Text(terminal_safe(redact_text(kin.title or "")[0], 80))
        name = Text(terminal_safe(redact_text(kin.thread_id)[0]))
        table.add_row(name, f"{kin.facts:,}", title)
    if len(roots) > LISTED:
        table.caption = "and more"
    Console(stderr=True, highlight=False).print(table)


class RedactedRecording:
    """A recording, wherever it came from, with its secrets replaced."""

    def __init__(self, recording: Recording) -> None:
        self.name, self.unit, self.kept = recording.name, recording.unit, recording.kept
        self._recording = recording

    async def kinship(self, thread: str | None) -> ThreadKinship:
        return await self._recording.kinship(thread)

    async def family(self, kinship: ThreadKinship, thread: str | None) -> ThreadFamily:
        return await self._recording.family(kinship, thread)

    async def facts(self, family: ThreadFamily, at: int | None = None) -> AsyncIterator[PlacedRow]:
        redactor, names = RecordingRedactor(), NameRedactor()
        places: deque[int | None] = deque()
        found = cast("AsyncGenerator[PlacedRow]", self._recording.facts(family, at))
        async with aclosing(found) as rows:
            async for place, fact in rows:
                places.append(place)
                for clean in redactor.feed(names.feed(fact)):
                    yield PlacedRow(places.popleft(), clean)
        for clean in redactor.finish(cut=at is not None):
            yield PlacedRow(places.popleft(), clean)
        print_remark(SECRETS_REDACTED, self.name, redacted_remark(names.count + redactor.count))


_COPIED: Final = 1024 * 1024


@contextmanager
def open_file(path: str) -> Generator["FileRecording"]:
    """Open a file, or standard input for `-`; raises `CliError` for what cannot be opened."""
    with open_seekable(path) as source:
        yield FileRecording(source)


@contextmanager
def open_seekable(path: str) -> Generator[FactSource]:
    """Open a file, or standard input for `-`, as something that can be read twice."""
    with open_source(path) as source:
        if source.stream.seekable():
            yield source
            return
        with TemporaryFile() as copy:
            copied = _copy_source(source, copy)
            copy.seek(0)
            yield copied


class FileRecording:
    """The facts of one file."""

    unit = "sequence"
    kept = False

    def __init__(self, source: FactSource) -> None:
        self.name = source.name
        self._source = source
        self._in_order = False

    async def kinship(self, thread: str | None) -> ThreadKinship:
        del thread
        found, check = ThreadKinship(), OrderCheck()
        for fact in self._read("reading", remarks=False):
            found.note(fact)
            check.follows(fact)
        self._in_order = check.in_order
        return found

    async def family(self, kinship: ThreadKinship, thread: str | None) -> ThreadFamily:
        return kinship.family(thread)

    async def facts(self, family: ThreadFamily, at: int | None = None) -> AsyncIterator[PlacedRow]:
        facts: Iterable[Fact] = filter(family.has, self._read("projecting"))
        if not self._in_order:
            facts = order_facts(facts, family.thread_id)
        for row in place_facts(facts, family):
            if at is None or row.place is None or row.place <= at:
                yield row

    def ordered_facts(self) -> Iterable[Fact]:
        """The facts of every thread, in order."""
        check = OrderCheck()
        if all(check.follows(fact) for fact in self._read("reading", remarks=False)):
            return self._read("reading")
        return order_facts(self._read("reading"))

    def _read(self, doing: str, *, remarks: bool = True) -> Iterator[Fact]:
        self._source.stream.seek(0)
        return read_facts(self._source, doing, remarks=remarks)


def place_facts(facts: Iterable[Fact], family: ThreadFamily) -> Iterator[PlacedRow]:
    """Facts in order with their places."""
    furthest: int | None = None
    latest, before = None, 0
    for fact in facts:
        if fact.sequence is not None and family.is_main(fact):
            if latest is not None and fact.sequence < latest:
                before = furthest or 0  # Another run, which counts by itself.
            latest = fact.sequence
            furthest = before + fact.sequence
        yield PlacedRow(furthest, fact)


def read_facts(
    source: FactSource, doing: str | None = None, *, remarks: bool = True
) -> Iterator[Fact]:
    """The facts of an open input; raises `CliError`, which names it, for what cannot be read.

    With `doing`, how far it got is shown under this word. Fields that only a provider's gate
    requires are filled in and remarked. Ids hold no secret; texts still may.
    """
    reader, names = LenientReader(reread=reread_items(source)), NameRedactor()
    try:
        items = read_document(source).facts
        shown = items if doing is None else watch_progress(items, source, doing)
        repeats = RepeatNumbers()
        for number, (line, item) in enumerate(shown, 1):
            fact = _to_fact(reader, item, line, number)
            if fact is not None:
                yield names.feed(repeats.number(fact))
    except UnreadableInput as error:
        raise CliError(f"{terminal_safe(source.name)}: {redact_text(str(error))[0]}") from error
    if remarks:
        print_remark(FIELDS_FILLED_IN, source.name, reader.remark)
        print_remark(SECRETS_REDACTED, source.name, redacted_remark(names.count))


def _to_fact(reader: LenientReader, item: Any, line: int | None, number: int) -> Fact | None:
    """The fact of an item, or None for a UI event whose fact came with the event before it; what
    is no fact is named with its line, or its number in the document.
    """
    try:
        reading = reader.feed(item)
    except UnreadableInput as error:
        raise UnreadableInput(error.reason, line=line) from error
    if reading.fact is not None:
        return None if reading.is_repeat else reading.fact
    reason = str(InvalidFacts(reading.issues))
    raise UnreadableInput(reason if line else f"fact {number}: {reason}", line=line)


def _copy_source(source: FactSource, copy: IO[bytes]) -> FactSource:
    shutil.copyfileobj(source.stream, copy, _COPIED)
    return msgspec.structs.replace(source, stream=copy, size=copy.tell() or None)


_PAGE: Final = 100

Row = tuple[int, Fact]
"""A seq and its fact."""


class JournalRecording:
    """The facts of one journal, up to the head that it had at first."""

    name = "the journal"
    unit = "seq"
    kept = True

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._head: Cursor | None = None

    async def kinship(self, thread: str | None) -> ThreadKinship:
        await self._load_head()
        found = ThreadKinship()
        began = 0
        if thread is not None:
            row = await self._journal.thread(thread)
            if row is None:
                return found
            found.add(await self._kin(row))
            began = row.first_seq
        async for page in self._pages():
            for kin in await asyncio.gather(*map(self._kin, page)):
                found.add(kin)
            enough = thread is None and len(found.roots()) > LISTED
            if enough or page[-1].last_seq < began:
                break
        return found

    async def family(self, kinship: ThreadKinship, thread: str | None) -> ThreadFamily:
        family = kinship.family(thread)
        threads = (await self._journal.stats()).threads
        alone = len(family.members) == threads
        return ThreadFamily(thread_id=thread, members=family.members, alone=alone)

    async def facts(self, family: ThreadFamily, at: int | None = None) -> AsyncIterator[PlacedRow]:
        head = await self._load_head()
        last = head.seq if at is None else min(at, head.seq)
        if family.alone:
            filters: list[Filter | None] = [None]
        else:
            filters = [Filter(thread=thread) for thread in sorted(family.members)]
        async with AsyncExitStack() as stack:
            streams = [
                await stack.enter_async_context(aclosing(self._read(wanted, last)))
                for wanted in filters
            ]
            async with aclosing(_merge_pages(streams)) as merged:
                async for seq, fact in merged:
                    yield PlacedRow(seq, fact)

    async def _load_head(self) -> Cursor:
        if self._head is None:
            self._head = await self._journal.head()
        return self._head

    async def _pages(self) -> AsyncIterator[tuple[CatalogueThread, ...]]:
        page = await self._journal.threads(limit=_PAGE)
        while page.threads:
            yield page.threads
            if page.after is None:
                return
            page = await self._journal.threads(after=page.after, limit=_PAGE)

    async def _kin(self, row: CatalogueThread) -> ThreadKin:
        kin = ThreadKin(thread_id=row.thread_id, title=row.title, facts=row.fact_count)
        own = Filter(thread=row.thread_id)
        async for batch in self._journal.read(filter=own, limit=1):
            for _, fact in batch.facts():
                kin.parent = fact.parent_thread_id
        teammates = Filter(thread=row.thread_id, classes=TEAMMATE_CLASSES)
        async for batch in self._journal.read(filter=teammates):
            for _, fact in batch.facts():
                kin.named.update(named_children(fact))
        return kin

    async def _read(self, wanted: Filter | None, last: int) -> AsyncGenerator[Row]:
        # It may be left before its end, and shall not outlive the journal.
        found = cast("AsyncGenerator[FactBatch]", self._journal.read(filter=wanted))
        async with aclosing(found) as batches:
            async for batch in batches:
                for seq, fact in batch.facts():
                    if seq > last:
                        return
                    yield seq, fact
                if batch.last >= last:
                    return


async def _merge_pages(streams: list[AsyncGenerator[Row]]) -> AsyncGenerator[Row]:
    """Facts of several streams in the order of their seqs, one of each stream held at a time."""
    waiting: list[tuple[int, int, Fact]] = []
    for index, stream in enumerate(streams):
        await _hold(waiting, index, stream)
    while waiting:
        seq, index, fact = heapq.heappop(waiting)
        yield seq, fact
        await _hold(waiting, index, streams[index])


async def _hold(
    waiting: list[tuple[int, int, Fact]], index: int, stream: AsyncGenerator[Row]
) -> None:
    found = await anext(stream, None)
    if found is not None:
        # A seq stands once in a journal, so facts themselves are never compared.
        heapq.heappush(waiting, (found[0], index, found[1]))
