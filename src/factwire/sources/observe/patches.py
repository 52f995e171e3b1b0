"""Changing a class of somebody else's, now or when its module is imported, and changing it back.

An SDK that the program never imports is never imported for it. What was put in place is taken out
by its owner alone: where somebody else has put something on top, it stays and does nothing.
"""

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from factwire.sources.observe.runs import harmless

Install = Callable[[ModuleType], object]
Around = Callable[[Callable[..., Any]], Callable[..., Any]]


class Patches:
    """Everything that was changed, to be undone at once."""

    def __init__(self) -> None:
        self._undone: list[Callable[[], None]] = []

    def method(self, owner: type, name: str, around: Around) -> None:
        """Replace a method by `around(original)`."""
        original = owner.__dict__[name]
        replaced: Any = around(original)
        replaced.__name__, replaced.__qualname__ = original.__name__, original.__qualname__
        replaced.__doc__, replaced.__wrapped__ = original.__doc__, original
        setattr(owner, name, replaced)

        def undo() -> None:
            if owner.__dict__.get(name) is replaced:
                setattr(owner, name, original)

        self._undone.append(undo)

    def when_imported(self, name: str, install: Install) -> None:
        """Do it now, or as soon as the module is there."""
        module = sys.modules.get(name)
        if module is not None:
            install(module)
            return
        finder = _Finder(name, harmless(install))
        sys.meta_path.insert(0, finder)
        self._undone.append(finder.remove)

    def undo(self) -> None:
        while self._undone:
            self._undone.pop()()


class _Finder(MetaPathFinder):
    """Stands before the other finders for one module, once."""

    def __init__(self, name: str, install: Install) -> None:
        self._name = name
        self._install = install
        self._asked = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname != self._name or self._asked:
            return None
        self._asked = True
        try:
            spec = find_spec(fullname)
        finally:
            self._asked = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._loaded)
        return spec

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def _loaded(self, module: ModuleType) -> None:
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
