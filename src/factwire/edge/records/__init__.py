"""Records: what an Edge lists of all its threads, derived from facts alone."""

from factwire.edge.records.edge_records import CLASSES, Records, RecordStore, read_records
from factwire.edge.records.edge_rows import Page, RowTable, select_rows

__all__ = ["CLASSES", "Page", "RecordStore", "Records", "RowTable", "read_records", "select_rows"]
