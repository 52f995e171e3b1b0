"""Write every story down: `python record.py` renews the streams and their list in this folder.

The same stories give the same bytes, so that a difference is a change of a story.
"""

import sys
from pathlib import Path

from stories import STORIES
from stories.catalogue import catalogue

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent

for story in STORIES:
    (folder / f"{story.name}.ndjson").write_bytes(story.lines())
(folder / "README.md").write_text(catalogue(STORIES), "utf-8", newline="\n")
print(f"{len(STORIES)} streams")
