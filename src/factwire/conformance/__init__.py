"""Conformance: what Factwire promises, as data that tests and documents refer to."""

from factwire.conformance.requirement import Requirement
from factwire.conformance.requirements import KNOWN_GAPS, REQUIREMENTS

__all__ = ["KNOWN_GAPS", "REQUIREMENTS", "Requirement"]
