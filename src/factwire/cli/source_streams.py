"""Streams of outside agents as facts, for `factwire convert`."""

import asyncio
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, cast

import msgspec

from factwire.cli.convert import written
from factwire.cli.documents import open_source
from factwire.cli.failures import DONE, UNUSABLE, CliError, report
from factwire.cli.outlet_streams import outlet_stream
from factwire.cli.recording import note
from factwire.facts import Shape
from factwire.journal.blobs import FileBlobs
from factwire.sources import MODULES, START, Source, UnknownSource, converted, name_raw, source_of

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


def convert_stream(
    file: str,
    name: str,
    target: str,
    *,
    sse: bool,
    thread: str | None,
    at: str | None,
    blobs: Path | None,
) -> int:
    """Write the facts of a recorded stream; the exit code."""
    if name == "list":
        return _list()
    if at is not None and not _TIME.fullmatch(at):
        raise CliError(f"--at takes a time such as {START}, not {at!r}")
    source = _mapped(name) if _is_mapping(name) else _source(name)
    if source is None:
        return UNUSABLE
    outlet = outlet_stream(target, sse=sse)
    warnings = 0
    with open_source(file) as opened:
        facts = converted(
            source,
            _lines(opened.stream.readline),
            thread_id=thread or _thread_of(file),
            at=at or START,
            keep=_keeper(blobs),
        )
        for fact in facts:
            warnings += fact.event_class == "runtime.warning"
            if outlet is not None:
                outlet.take(fact)
                continue
            for value in written(fact, "facts", cast("Shape", target)):
                sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    if outlet is not None:
        outlet.finish()
    if warnings:
        note(f"{warnings} warnings are among the facts")
    return DONE


def _source(name: str) -> Source:
    try:
        return source_of(name)
    except UnknownSource as error:
        raise CliError(f"{error.code}: {error}") from error


def _is_mapping(name: str) -> bool:
    """Whether a name is that of a mapping file; the sources keep theirs."""
    return name not in MODULES and (name.endswith(".toml") or Path(name).is_file())


def _mapped(file: str) -> Source | None:
    """The source that a mapping file describes; every problem in it is told."""
    from factwire.sources.mapped import MappingError, mapped_source
    from factwire.sources.mapped.limits import FILE_BYTES

    try:
        with Path(file).open("rb") as opened:
            return mapped_source(opened.read(FILE_BYTES + 1), file)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CliError(f"the mapping {file} cannot be read: {reason}") from error
    except MappingError as error:
        for problem in error.problems:
            report(f"{problem.code}: {problem}")
        return None


def _list() -> int:
    for name in sorted(MODULES):
        source = source_of(name)
        sys.stdout.write(f"{name:18} {source.title}, tested with {source.versions}\n")
    return DONE


def _lines(read: Callable[[], bytes]) -> Iterator[bytes]:
    return iter(read, b"")


def _thread_of(file: str) -> str:
    return _NAME.sub("-", Path(file).stem) if file != "-" else "stdin"


def _keeper(folder: Path | None) -> Callable[[bytes], str]:
    """Keeps content in a folder, where one was named."""
    if folder is None:
        return name_raw
    store = FileBlobs(folder)

    def keep(content: bytes) -> str:
        return asyncio.run(store.put(content, kind="raw")).ref

    return keep
