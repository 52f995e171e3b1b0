"""Figures in words: how long, how many, how much."""

from factwire.evidence.comparison import Figures

_SECOND = 1_000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE


def figures(a: Figures, b: Figures) -> str:
    """The figures of both sides, as far as either has any."""
    rows = (
        ("time", duration(a.duration_ms), duration(b.duration_ms)),
        ("tokens", _count(a.total_tokens), _count(b.total_tokens)),
        ("cost", cost(a.cost_usd), cost(b.cost_usd)),
    )
    told = [f"{name} {pair(one, other)}" for name, one, other in rows if one or other]
    return ", ".join(told)


def pair(a: str, b: str) -> str:
    """Both, or one where they are the same."""
    return a if a == b else f"{a or 'unknown'} → {b or 'unknown'}"


def duration(milliseconds: float | None) -> str:
    if milliseconds is None:
        return ""
    if milliseconds < _SECOND:
        return f"{milliseconds:.0f} ms"
    if milliseconds < _MINUTE:
        return f"{round(milliseconds / _SECOND, 1):g} s"
    if milliseconds < _HOUR:
        return f"{milliseconds // _MINUTE:.0f} min {milliseconds % _MINUTE // _SECOND:.0f} s"
    return f"{milliseconds // _HOUR:.0f} h {milliseconds % _HOUR // _MINUTE:.0f} min"


def cost(dollars: float) -> str:
    """Dollars with as many digits as small sums need."""
    return "" if not dollars else f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.4g}"


def _count(number: int) -> str:
    return f"{number:,}" if number else ""
