"""The upload of an Edge's journal to a Hub: the chain as it is, in order, from where the Hub is.

The Hub says how far its mirror has come; the Edge sends what follows there, a bounded part at a
time, each after the one before it was acknowledged. Blobs go before the facts that name them. What
cannot be sent now is sent later: after a pause that grows from half a second to half a minute,
shortened by chance so that not all Edges of a Hub come back at once.

Of private threads, nothing is sent but that something is there: the chain passes their commits by
their hashes alone.

Retention waits for what the Hub has acknowledged, up to a bound. Where the chain no longer passes
the end of the mirror, the mirror begins anew with what is left here. An Edge without a Hub has none
of this.
"""

import asyncio
import random
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec

from factwire.edge.edge_context import EdgeContext
from factwire.edge.hub_access import (
    HubAccess,
    HubRefused,
    UploadUnsupported,
    send_request,
)
from factwire.edge.limits import (
    UPLOAD_BLOBS_REMEMBERED,
    UPLOAD_BYTES,
    UPLOAD_HOLD_FACTS,
    UPLOAD_PAUSE_SECONDS,
    UPLOAD_PAUSE_SECONDS_MOST,
    UPLOAD_ROWS,
    UPLOAD_SECONDS,
)
from factwire.facts.refs import parse_ref
from factwire.journal import (
    CatalogueRecord,
    ChainPoint,
    ChainPointUnknown,
    RemovedFact,
)
from factwire.journal.atomic_files import replace_file
from factwire.journal.blobs import BlobMissing
from factwire.journal.blobs.blob_store import find_refs, run_disk_work
from factwire.journal.chunks import ChainBatch
from factwire.journal.followers import ReaderPosition
from factwire.journal.sqlite.journal import SqliteJournal
from factwire.serving.logs import logger

if TYPE_CHECKING:
    import httpx

UPLOAD_FILE: Final = "hub-upload.json"
CHAIN_MEDIA_TYPE: Final = "application/vnd.factwire.chain+msgpack"

_log: Final = logger("factwire.edge.hub")


class UploadStart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Begins a session of uploads; `restart` where the chain does not pass the mirror's end."""

    # The mirror's file is named after it.
    epoch: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]*$", min_length=16, max_length=16)]
    runtime_id: str
    restart: bool = False


class UploadSession(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How far a mirror has come: everything up to `ackedSeq` is durable there. `ackedHash` is the
    hash of the chain behind it, and `record` that of the last record of removed facts.
    """

    session: int
    acked_seq: int
    acked_hash: str
    record: str

    @property
    def point(self) -> ChainPoint:
        return ChainPoint(self.acked_seq, bytes.fromhex(self.acked_hash))


class RemovedPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some of what a journal keeps of removed facts, and of threads."""

    removed: tuple[RemovedFact, ...] = ()
    threads: tuple[CatalogueRecord, ...] = ()


class UploadMark(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What was acknowledged, kept so that retention waits for the rest after a restart too."""

    url: str
    epoch: str
    acked_seq: int


class HubUpload:
    """Uploads for as long as `run` lasts; `sleep` and `chance` are for tests with their own."""

    def __init__(
        self,
        edge: EdgeContext,
        access: HubAccess,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        if not isinstance(edge.journal, SqliteJournal):
            raise UploadUnsupported(
                "only the journal of an Edge on SQLite can be uploaded to a Hub; use sqlite:PATH"
            )
        self.trouble: str | None = None
        self.acked = 0
        self.on_acked: Callable[[str, int, int], None] | None = None
        """Told of what the Hub has acknowledged: the epoch, the first seq and the last."""
        self._edge = edge
        self._journal = edge.journal
        self._access = access
        self._target = access.target
        self._sleep = sleep
        self._chance = chance
        self._pause = 0.0
        self._restart = False
        self._sent: OrderedDict[str, None] = OrderedDict()
        self._path = f"/v1/edges/{edge.edge_id}/mirror"

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Upload for as long as the block lasts; what was not acknowledged is held from now on."""
        self.acked = await run_disk_work(self._read_mark)
        with self._journal.hold_chain("hub-upload", self.acked) as hold:
            task = asyncio.create_task(self._run(hold), name="factwire-hub-upload")
            try:
                yield
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _run(self, hold: ReaderPosition) -> None:
        # Here, because an Edge without a Hub should not load it.
        import httpx  # noqa: PLC0415

        async with httpx.AsyncClient(base_url=self._target.url, timeout=UPLOAD_SECONDS) as http:
            while True:
                await self._try_session(http, hold)

    async def _try_session(self, http: "httpx.AsyncClient", hold: ReaderPosition) -> None:
        try:
            await self._upload(http, hold)
        except ChainPointUnknown:
            _log.warning("hub_mirror_restarted", hub=self._target.url)
            self._restart = True
        except Exception as error:  # noqa: BLE001 - logged, and the next session may succeed
            self._note_trouble(str(error) or type(error).__name__)
            self._pause = min(UPLOAD_PAUSE_SECONDS_MOST, 2 * self._pause or UPLOAD_PAUSE_SECONDS)
            self._move_hold(hold)
            await self._sleep(self._pause * (1 + self._chance()) / 2)

    def _note_trouble(self, trouble: str) -> None:
        if trouble != self.trouble:
            _log.warning("hub_upload_failed", hub=self._target.url, detail=trouble)
        self.trouble = trouble

    def _move_hold(self, hold: ReaderPosition) -> None:
        """Retention waits for the Hub, but not for ever."""
        hold.position = max(self.acked, self._edge.feed.cursor.seq - UPLOAD_HOLD_FACTS)

    async def _upload(self, http: "httpx.AsyncClient", hold: ReaderPosition) -> None:
        """Send what the mirror lacks, and what comes, until something is in the way."""
        start = UploadStart(
            epoch=(await self._journal.head()).epoch,
            runtime_id=self._edge.mint.runtime_id,
            restart=self._restart,
        )
        answer = await self._post(http, "/sessions", msgspec.json.encode(start), "application/json")
        self._restart, tells_removed = False, False
        await self._note_acked(answer, hold)
        while True:
            batch = await self._journal.read_chain(
                answer.point, bytes.fromhex(answer.record), UPLOAD_BYTES
            )
            if not batch.chunks and not batch.records:
                await self._edge.feed.wait_for(answer.acked_seq + 1)
                continue
            if not tells_removed and batch.has_gaps(answer.acked_seq):
                await self._send_removed(http, answer.session)
                tells_removed = True
            await self._send_blobs(http, answer.session, batch)
            body = msgspec.msgpack.encode(batch)
            answer = await self._post(http, f"/chain?session={answer.session}", body)
            await self._note_acked(answer, hold)

    async def _note_acked(self, answer: UploadSession, hold: ReaderPosition) -> None:
        if self.trouble is not None:
            _log.info("hub_upload_resumed", hub=self._target.url, acked=answer.acked_seq)
        self.trouble, self._pause = None, 0.0
        if answer.acked_seq != self.acked:
            before, self.acked = self.acked, answer.acked_seq
            epoch = (await self._journal.head()).epoch
            mark = UploadMark(url=self._target.url, epoch=epoch, acked_seq=self.acked)
            await run_disk_work(replace_file, self._mark_path, msgspec.json.encode(mark))
            if self.on_acked is not None and self.acked > before:
                self.on_acked(epoch, before + 1, self.acked)
        self._move_hold(hold)

    @property
    def _mark_path(self) -> Path:
        return self._edge.data / UPLOAD_FILE

    def _read_mark(self) -> int:
        """What was acknowledged before this start; nothing, to another Hub or of another epoch."""
        try:
            mark = msgspec.json.decode(self._mark_path.read_bytes(), type=UploadMark)
        except (FileNotFoundError, msgspec.MsgspecError):
            return 0
        same = (mark.url, mark.epoch) == (self._target.url, self._edge.feed.cursor.epoch)
        return mark.acked_seq if same else 0

    async def _send_removed(self, http: "httpx.AsyncClient", session: int) -> None:
        """Send what is kept of facts that were removed before the mirror had them."""
        address = f"/removed?session={session}"
        async for removed in _cut_pages(self._journal.read_removed()):
            await self._send(http, "POST", address, _encode(RemovedPage(removed=removed)))
        private = await self._journal.private_threads()
        async for rows in _cut_pages(self._journal.records()):
            threads = tuple(row for row in rows if row.thread_id not in private)
            await self._send(http, "POST", address, _encode(RemovedPage(threads=threads)))

    async def _send_blobs(self, http: "httpx.AsyncClient", session: int, batch: ChainBatch) -> None:
        """Send the content that facts refer to, where it is here and not there yet."""
        refs = {parse_ref(ref)[1]: ref for chunk in batch.chunks for ref in find_refs(chunk.data)}
        new = [ref for digest, ref in refs.items() if digest not in self._sent]
        for at in range(0, len(new), UPLOAD_ROWS):
            body = msgspec.json.encode(new[at : at + UPLOAD_ROWS])
            answer = await self._send(
                http, "POST", f"/blobs/missing?session={session}", body, "application/json"
            )
            for ref in msgspec.json.decode(answer.content, type=list[str]):
                await self._send_blob(http, session, ref)
        for digest in refs:
            self._sent[digest] = None
            self._sent.move_to_end(digest)
        while len(self._sent) > UPLOAD_BLOBS_REMEMBERED:
            self._sent.popitem(last=False)

    async def _send_blob(self, http: "httpx.AsyncClient", session: int, ref: str) -> None:
        try:
            await self._edge.blobs.stat(ref)
        except BlobMissing:
            # A fact may name what was never kept; the Hub then says the same of it as the Edge.
            return
        pieces = self._edge.blobs.get(ref)
        await self._send(http, "PUT", f"/blobs/{ref}?session={session}", pieces)

    async def _post(
        self, http: "httpx.AsyncClient", path: str, body: bytes, media_type: str = CHAIN_MEDIA_TYPE
    ) -> UploadSession:
        answer = await self._send(http, "POST", path, body, media_type)
        return msgspec.json.decode(answer.content, type=UploadSession)

    async def _send(
        self,
        http: "httpx.AsyncClient",
        method: str,
        path: str,
        body: Any,
        media_type: str = CHAIN_MEDIA_TYPE,
    ) -> "httpx.Response":
        for is_last in (False, True):
            token = await self._access.token(http)
            headers = {"content-type": media_type, "authorization": f"Bearer {token}"}
            try:
                return await send_request(
                    http, method, self._path + path, content=body, headers=headers
                )
            except HubRefused as error:
                if error.status != HTTPStatus.UNAUTHORIZED:
                    raise
                self._access.forget(token)
                # Content that was streamed cannot be sent again here; the next session does.
                if is_last or not isinstance(body, bytes):
                    raise
        raise AssertionError("unreachable")


_encode: Final = msgspec.msgpack.encode
Row = TypeVar("Row")


async def _cut_pages(rows: AsyncIterator[Row]) -> AsyncIterator[tuple[Row, ...]]:
    page: list[Row] = []
    async for row in rows:
        page.append(row)
        if len(page) == UPLOAD_ROWS:
            yield tuple(page)
            page = []
    if page:
        yield tuple(page)
