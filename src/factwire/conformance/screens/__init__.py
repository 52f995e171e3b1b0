"""Screens: what facts come to, and whether anything on the way is doubled, lost or made up."""

from factwire.conformance.screens.judging import SCREEN_CHECKS, ScreenCheck, screened

__all__ = ["SCREEN_CHECKS", "ScreenCheck", "screened"]
