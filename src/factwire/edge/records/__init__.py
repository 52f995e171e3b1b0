"""Records: what an Edge lists of all its threads, derived from facts alone."""

from factwire.edge.records.edge_records import CLASSES, Records, RecordStore, read_records

__all__ = ["CLASSES", "RecordStore", "Records", "read_records"]
