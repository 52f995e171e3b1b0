"""Teams of agents on several devices: members, runs, decisions under guardrails, facts."""

__all__ = []
