"""Event classes: a row for each, and everything that is looked up by class."""

__all__: list[str] = []
