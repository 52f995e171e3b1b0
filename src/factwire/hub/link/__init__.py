"""The link to Edges: tasks for exact devices, deliveries, decisions and relayed requests."""

__all__ = []
