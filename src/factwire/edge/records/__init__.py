"""Records: what an Edge lists of all its threads, derived from facts alone."""

from factwire.edge.records.edge_records import Records, RecordStore, read_records

__all__ = ["RecordStore", "Records", "read_records"]
