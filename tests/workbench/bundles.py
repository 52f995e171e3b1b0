"""A small build of the workbench, so that how it is served can be told from what it is."""

from pathlib import Path

INDEX = b'<!doctype html><title>Factwire</title><script src="/assets/index-Ab3_x9Zq.js"></script>'
SCRIPT = b"const words = 'many words';\n" * 400
SECRET = b"what no address leads to"


def small_build(folder: Path) -> Path:
    """The folder of a build; beside it lies a file that is not for everybody."""
    (folder / "secret.txt").write_bytes(SECRET)
    build = folder / "workbench"
    (build / "assets").mkdir(parents=True)
    (build / "index.html").write_bytes(INDEX)
    (build / "mark.svg").write_bytes(b"<svg/>")
    (build / ".hidden").write_bytes(SECRET)
    (build / "assets" / "index-Ab3_x9Zq.js").write_bytes(SCRIPT)
    (build / "assets" / "font-Cd4_y8Wp.woff2").write_bytes(b"w" * 4_096)
    return build
