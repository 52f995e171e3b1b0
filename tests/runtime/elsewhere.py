"""A world that is not below the system's folder for temporary files, which every sandbox empties:
what protects it must be the protection that is tested.
"""

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.runtime.programs import World

ROOT = Path(__file__).resolve().parent.parent.parent


@contextmanager
def world_elsewhere() -> Generator[World]:
    around = ROOT / ".pytest_cache"
    around.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=around))
    try:
        yield World(folder)
    finally:
        shutil.rmtree(folder)
