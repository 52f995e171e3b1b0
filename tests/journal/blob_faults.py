"""Programs that fault tests run as processes of their own, by name: `python blob_faults.py NAME …`.

Each byte on standard output marks a step, so that a test can kill at any of them; `=HASH` follows
every acknowledged put.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from factwire.facts.refs import Ref
from factwire.journal.blobs import BlobUnwritable, FileBlobs, MemoryObjects, ObjectBlobs
from factwire.journal.blobs.blob_store import BLOCK, Sealer, build_ref

MEGABYTE = 1024 * 1024


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def count_steps(call: Callable[..., Any]) -> Callable[..., Any]:
    def call_and_count(*args: Any, **kwargs: Any) -> Any:
        say(".")
        return call(*args, **kwargs)

    return call_and_count


async def random_content(seed: int, size: int) -> AsyncIterator[bytes]:
    source = Random(seed)
    for at in range(0, size, 100_000):
        yield source.randbytes(min(100_000, size - at))


class Unprotected(FileBlobs):
    """Writes straight to the place where readers look."""

    async def put(self, content: Any, *, kind: Any) -> Ref:
        data = b"".join([piece async for piece in content])
        sealer = Sealer()
        sealer.feed(data)
        path = self._path(sha256(data).hexdigest())
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT)
        for at in range(0, len(data), BLOCK):
            os.write(file, data[at : at + BLOCK])
        os.write(file, sealer.footer())
        os.fsync(file)
        os.close(file)
        return build_ref(kind, path.name, len(data))


async def put_for_ever(folder: str, seed: str, protection: str) -> None:
    """Put one blob after the other until killed, with a mark before each call to the system."""
    for name in ("write", "fsync", "open"):
        setattr(os, name, count_steps(getattr(os, name)))
    Path.replace = count_steps(Path.replace)
    store = (FileBlobs if protection == "on" else Unprotected)(folder)
    for number in range(int(seed) * 1000, int(seed) * 1000 + 1000):
        ref = await store.put(random_content(number, 4 * BLOCK + 7), kind="output")
        say(f"={ref.ref[-64:]}")


class FolderObjects(MemoryObjects):
    """An object store that does not keep its objects in this process."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = Path(folder)
        self._folder.mkdir()

    async def put_object(
        self, key: str, content: AsyncIterator[bytes], size: int, *, if_none_match: bool
    ) -> bool:
        with (self._folder / key.replace("/", "-")).open("wb") as file:
            async for piece in content:
                file.write(piece)
        self._sizes = {key: size}
        return await super().put_object(key, empty_stream(), 0, if_none_match=if_none_match)

    async def get_object(self, key: str, start: int, end: int) -> AsyncIterator[bytes]:
        with (self._folder / key.replace("/", "-")).open("rb") as file:
            file.seek(start)
            while start < end and (piece := file.read(min(BLOCK, end - start))):
                yield piece
                start += len(piece)

    async def head(self, key: str) -> Any:
        found = await super().head(key)
        if found is None:
            return None
        return type(found)(size=self._sizes[key], modified=found.modified, version=found.version)


async def empty_stream() -> AsyncIterator[bytes]:
    for piece in ():
        yield piece


def highest_memory() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


async def stream(folder: str, store: str, megabytes: str, hoard: str) -> None:
    """Put and get that much; says the highest memory before and after."""
    blobs = FileBlobs(folder) if store == "files" else ObjectBlobs(FolderObjects(folder))
    size = int(megabytes) * MEGABYTE
    kept: list[bytes] = []
    for wanted in (20 * MEGABYTE, size):
        ref = await blobs.put(random_content(wanted, wanted), kind="output")
        read = 0
        async for piece in blobs.get(ref):
            read += len(piece)
            kept += [piece] if hoard == "yes" else []
        assert read == wanted
        say(f"{highest_memory()} ")


def bytes_in(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


async def fill_disk(folder: str, limit: str) -> None:
    """Put more than the system lets a file hold, then less; says the code and what is left."""
    import resource

    store = FileBlobs(folder)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
    try:
        await store.put(random_content(1, 2 * int(limit)), kind="output")
    except BlobUnwritable as error:
        say(f"{error.code} {bytes_in(folder)} ")
    ref = await store.put(random_content(2, 1000), kind="output")
    say(f"{(await store.stat(ref)).bytes}")


if __name__ == "__main__":
    programs = {"put_for_ever": put_for_ever, "stream": stream, "fill_disk": fill_disk}
    asyncio.run(programs[sys.argv[1]](*sys.argv[2:]))
