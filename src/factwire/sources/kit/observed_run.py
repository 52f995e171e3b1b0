"""`ObservedRun`: one run of an SDK, seen from inside the program, and the patches that see it.

`record` is called where the program works, so it only writes down what it sees and never
raises; what it means is worked out by the thread that sends. The thread that the program names
and the run that another one runs in follow the flow of the program, because they stand in
context variables. Nobody here knows what is on the thread already, so turns, facts and
questions have ids of their own. An SDK that the program never imports is never imported for it,
and what was put in place is taken out by its owner alone.
"""

import logging
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import msgspec

from factwire.runtime.mint import Mint, new_id, utc_now
from factwire.sources.kit.fact_builder import FactBuilder
from factwire.sources.kit.sdk_values import failed_line
from factwire.sources.source_registry import Converter, find_source

if TYPE_CHECKING:
    from factwire.sources.observe.outbox import Outbox


_NAMED: Final = ("message_id", "part_id", "tool_call_id")


class ObservedFactBuilder(FactBuilder):
    """Makes the facts of one run. `now` is when what is being told happened."""

    def __init__(
        self, source: str, *, thread_id: str, runtime_id: str, parent: str | None, shared: bool
    ) -> None:
        super().__init__(source, thread_id=thread_id)
        self.now = self.at
        self._shared = shared
        self._action_ids: dict[str, str] = {}
        self._scope = self._scope.within(parent_thread_id=parent)
        self._mint = Mint(runtime_id, clock=lambda: self.now)

    def begin_turn(
        self, prompt: str | None = None, *, turn_id: str | None = None, **extra_fields: Any
    ) -> None:
        super().begin_turn(prompt, turn_id=turn_id or new_id("trn"), **extra_fields)

    def _append_fact(
        self, scope: Any, event_class: str, payload: dict[str, Any], **fields: Any
    ) -> None:
        if self._shared:
            for field in _NAMED:
                if fields.get(field) is not None:
                    fields[field] = f"{fields[field]}:{scope.turn_id}"
        action = fields.get("action_id")
        if action is not None:
            # A source may give the next question the name of one that was answered.
            if event_class == "action.required" or action not in self._action_ids:
                self._action_ids[action] = new_id("act")
            fields["action_id"] = self._action_ids[action]
        super()._append_fact(scope, event_class, payload, **fields)


_NAME: Final[ContextVar[str | None]] = ContextVar("factwire_thread", default=None)
_RUN: Final[ContextVar["ObservedRun | None"]] = ContextVar("factwire_run", default=None)


@contextmanager
def thread(thread_id: str) -> Generator[None]:
    """Runs that begin in here are turns of this thread."""
    if not thread_id:
        raise ValueError("expected the name of a thread, got an empty string")
    token = _NAME.set(thread_id)
    try:
        yield
    finally:
        _NAME.reset(token)


def named_thread() -> str | None:
    """The thread that the program names here."""
    return _NAME.get()


def current_run() -> "ObservedRun | None":
    """The run that this code is a part of."""
    return _RUN.get()


@contextmanager
def enter_run(run: "ObservedRun") -> Generator[None]:
    """What happens in here is a part of a run."""
    token = _RUN.set(run)
    try:
        yield
    finally:
        _RUN.reset(token)


P = ParamSpec("P")
T = TypeVar("T")

log: Final = logging.getLogger("factwire.observe")


def log_errors(function: Callable[P, T]) -> Callable[P, T | None]:
    """What is wrong in here must not become the program's: it is logged, and that is all."""

    @wraps(function)
    def call_guarded(*args: P.args, **kwargs: P.kwargs) -> T | None:
        try:
            return function(*args, **kwargs)
        except Exception:
            log.exception("an event was not observed")
            return None

    return call_guarded


class ObservedRun:
    """A run and, where it is resumed in this process, those that go on with it."""

    def __init__(self, source: str, builder: ObservedFactBuilder, outbox: "Outbox") -> None:
        self.source = source
        self.builder = builder
        self.recorded_ids: set[str] = set()
        self.questions: list[str] = []
        self.dropped = 0
        self.has_begun = False
        self.is_over = False
        self._outbox = outbox
        self._converter: Converter | None = None

    @property
    def converter(self) -> Converter:
        """Made by the thread that sends."""
        if self._converter is None:
            self._converter = find_source(self.source).converter(self.builder)
        return self._converter

    @log_errors
    def record(self, line: dict[str, Any]) -> None:
        """Write down one thing that happened."""
        if not self.is_over:
            self._outbox.put(self, utc_now(), msgspec.json.encode(line))

    def end(self, line: dict[str, Any]) -> None:
        """The run is over; the line says how."""
        self.record(line)
        self.abandon()

    def abandon(self) -> None:
        """Nothing more comes of this run, however it stands."""
        if not self.is_over:
            self.is_over = True
            self._outbox.end(self)

    def end_failed(self, error: BaseException) -> None:
        """The run raised, or was stopped."""
        if isinstance(error, Exception):
            self.end(failed_line(error))
        else:
            self.end({"type": "run.cancelled", "reason": type(error).__name__})

    @contextmanager
    def watch(self) -> Generator[None]:
        """What happens in here is a part of the run; what is raised ends it."""
        try:
            with enter_run(self):
                yield
        except BaseException as error:
            self.end_failed(error)
            raise


Install = Callable[[ModuleType], object]
Around = Callable[[Callable[..., Any]], Callable[..., Any]]


class Patches:
    """Everything that was changed, to be undone at once."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def replace_method(self, owner: type, name: str, around: Around) -> None:
        """Replace a method by `around(original)`."""
        original = owner.__dict__[name]
        replaced: Any = around(original)
        replaced.__name__, replaced.__qualname__ = original.__name__, original.__qualname__
        replaced.__doc__, replaced.__wrapped__ = original.__doc__, original
        setattr(owner, name, replaced)

        def undo() -> None:
            if owner.__dict__.get(name) is replaced:
                setattr(owner, name, original)

        self._undo.append(undo)

    def when_imported(self, name: str, install: Install) -> None:
        """Do it now, or as soon as the module is there."""
        module = sys.modules.get(name)
        if module is not None:
            install(module)
            return
        finder = _Finder(name, log_errors(install))
        sys.meta_path.insert(0, finder)
        self._undo.append(finder.remove)

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()


class _Finder(MetaPathFinder):
    """Stands before the other finders for one module, once."""

    def __init__(self, name: str, install: Install) -> None:
        self._name = name
        self._install = install
        self._is_searching = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname != self._name or self._is_searching:
            return None
        self._is_searching = True
        try:
            spec = find_spec(fullname)
        finally:
            self._is_searching = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._after_load)
        return spec

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def _after_load(self, module: ModuleType) -> None:
        self.remove()
        self._install(module)


class _Loader(Loader):
    """Loads a module as its own loader would, and says so."""

    def __init__(self, inner: Loader, loaded: Install) -> None:
        self._inner = inner
        self._loaded = loaded

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # Whoever asks the module later gets its own loader.
        module.__loader__ = self._inner
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        self._inner.exec_module(module)
        self._loaded(module)
