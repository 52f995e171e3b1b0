"""Lists of an Edge: the same from any start, and nothing but what facts say."""

from pathlib import Path

import pytest

from factwire.edge.records import Records
from factwire.journal.chunk import decode_line

STREAMS = sorted(
    (Path(__file__).resolve().parent.parent.parent / "examples" / "streams").glob("*.ndjson")
)
EPOCH = "0123456789abcdef"


@pytest.mark.requirement("edge.records.pure")
@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_records_that_were_saved_go_on_like_those_that_were_not(path: Path):
    facts = [decode_line(line) for line in path.read_bytes().splitlines()]
    whole = Records()
    for seq, fact in enumerate(facts, 1):
        whole.note(seq, fact)
    for cut in {1, len(facts) // 3, len(facts) // 2, len(facts) - 1} - {0}:
        first = Records()
        for seq, fact in enumerate(facts[:cut], 1):
            first.note(seq, fact)
        later = Records.restore(first.save(EPOCH), EPOCH)
        assert later is not None
        for seq, fact in enumerate(facts[cut:], cut + 1):
            later.note(seq, fact)
        assert later.save(EPOCH) == whole.save(EPOCH)


@pytest.mark.requirement("edge.records.pure")
def test_what_was_saved_of_another_journal_or_is_damaged_is_not_read():
    data = Records().save(EPOCH)
    assert Records.restore(data, "f" * 16) is None
    assert Records.restore(data[:-1], EPOCH) is None
    assert Records.restore(b"", EPOCH) is None
