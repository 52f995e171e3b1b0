"""The report as one page: no request leaves it, and nothing in it runs.

What agents write is shown as text. A policy in the page forbids scripts and requests, so that even
a mistake in here could not make a fact do anything.
"""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Final

import msgspec

from factwire.conformance.case import LEVELS, Finding, Level, Result
from factwire.conformance.report import Report, Standings

STYLE: Final = """\
:root {
  color-scheme: light dark;
  --ground: #ffffff; --raised: #f5f6f8; --line: #d9dce1; --ink: #1b1f24; --quiet: #59636e;
  --good: #116329; --good-ground: #dafbe1; --bad: #a40e26; --bad-ground: #ffebe9;
  --mute-ground: #eaeef2;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0f1216; --raised: #181c22; --line: #2f363f; --ink: #e8ecf1; --quiet: #9aa5b1;
    --good: #56d364; --good-ground: #12301a; --bad: #ff8182; --bad-ground: #3d1418;
    --mute-ground: #232a33;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { margin: .25rem 0 1rem; font-size: 1.7rem; overflow-wrap: anywhere; }
h2 { margin: 2.5rem 0 .75rem; font-size: 1.15rem; }
h3 { margin: 0 0 .5rem; font-size: 1rem; }
code, pre { font-family: ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace;
  font-size: .85em; overflow-wrap: anywhere; }
.quiet, footer { color: var(--quiet); }
.quiet { font-size: .9em; overflow-wrap: anywhere; }
.verdict { display: inline-block; margin: 0; padding: .15rem .7rem; border-radius: 1rem;
  font-weight: 600; }
.verdict.passed { background: var(--good-ground); color: var(--good); }
.verdict.failed { background: var(--bad-ground); color: var(--bad); }
.counts { display: flex; flex-wrap: wrap; gap: 1.5rem; margin: 0; padding: 0; list-style: none; }
.counts b { font-size: 1.3rem; }
.ladder { display: grid; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); gap: .75rem;
  margin: 1.5rem 0 0; padding: 0; list-style: none; }
.ladder li { display: flex; flex-direction: column; padding: .8rem 1rem; border-radius: .5rem;
  background: var(--mute-ground); }
.ladder span { color: var(--quiet); font-size: .9em; }
.ladder em { margin-top: .4rem; font-style: normal; font-weight: 600; color: var(--quiet); }
.ladder .reached { background: var(--good-ground); }
.ladder .reached em { color: var(--good); }
b.passed { color: var(--good); }
b.failed, .counts .failed b { color: var(--bad); }
b.not-applicable, b.not-tried { color: var(--quiet); }
.failure { margin: 0 0 1rem; padding: 1rem; border: 1px solid var(--line);
  border-left: 4px solid var(--bad); border-radius: .5rem; background: var(--raised); }
.finding + .finding { margin-top: 1rem; padding-top: 1rem; border-top: 1px solid var(--line); }
.finding p { margin: 0 0 .3rem; overflow-wrap: anywhere; }
.req { color: var(--bad); font-weight: 600; }
details { margin: .4rem 0; }
summary { cursor: pointer; color: var(--quiet); }
pre { margin: .4rem 0 0; padding: .75rem; border-radius: .4rem; background: var(--ground);
  border: 1px solid var(--line); white-space: pre-wrap; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .45rem .6rem .45rem 0; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
th { color: var(--quiet); font-weight: 600; font-size: .9em; }
td:last-child { width: 30%; }
footer { margin-top: 3rem; font-size: .9em; }
"""


_LEVELS: Final[dict[Level, tuple[str, str]]] = {
    "facts": ("Facts valid", "Each fact, their order, and what may follow what."),
    "projection": ("Projection compatible", "What the facts come to on a screen."),
    "runtime": ("Runtime compatible", "An agent, driven through a real runtime."),
    "supervisor": ("Supervisor", "What the agent decides about a team."),
}
_WORDS: Final = {
    "passed": "passed",
    "failed": "failed",
    "not-applicable": "does not apply",
    "not-tried": "not tried",
}
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)


def html_report(report: Report) -> str:
    """The whole page."""
    title = f"{_verdict(report)}: {report.subject.name}"
    body = "\n".join(
        (
            _header(report),
            _ladder(report),
            _failures(report),
            *(_level(report, level) for level in LEVELS),
            _coverage(report),
            _footer(report),
        )
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{_text(title)}</title>\n<style>\n{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _verdict(report: Report) -> str:
    return "Conformant" if report.conformant else "Not conformant"


def _header(report: Report) -> str:
    counts = report.counts
    status = "passed" if report.conformant else "failed"
    numbers = "".join(
        f'<li class="{name if count else "none"}"><b>{count:,}</b> {words}</li>'
        for name, words, count in (
            ("failed", "failed", counts.failed),
            ("passed", "passed", counts.passed),
            ("not-applicable", "do not apply", counts.not_applicable),
        )
    )
    return (
        f'<header><p class="verdict {status}">{_verdict(report)}</p>'
        f"<h1>{_text(report.subject.name)}</h1><ul class=counts>{numbers}</ul></header>"
    )


def _ladder(report: Report) -> str:
    """The levels that the subject is held to, those that were reached marked."""
    height = -1 if report.level is None else LEVELS.index(report.level)
    steps = "".join(
        f'<li class="{"reached" if place <= height else "open"}"><b>{_LEVELS[level][0]}</b>'
        f"<span>{_LEVELS[level][1]}</span><em>{'reached' if place <= height else 'not reached'}"
        "</em></li>"
        for place, level in enumerate(LEVELS)
        if level != "supervisor" or any(each.level == level for each in report.results)
    )
    return f"<ol class=ladder>{steps}</ol>"


def _failures(report: Report) -> str:
    failed = [each for each in report.results if each.status == "failed"]
    if not failed:
        return ""
    says = {row.id: row.sentence for row in report.requirements}
    articles = "".join(_failure(each, says) for each in failed)
    return f"<section><h2>What failed</h2>{articles}</section>"


def _failure(result: Result, says: Mapping[str, str]) -> str:
    """The findings of a case under the sentences that they break; the first one spread out."""
    findings = "".join(
        _render_finding(finding, spread=place == 0) for place, finding in enumerate(result.findings)
    )
    rules = "".join(f"<p>{_text(says.get(name, ''))}</p>" for name in sorted(result.broken))
    more = result.findings_omitted
    omitted = f"<p class=quiet>and {more:,} more like these</p>" if more else ""
    return (
        f'<article class=failure id="{_text(result.id)}"><h3>{_text(result.title)} '
        f"<code>{_text(result.id)}</code></h3>{rules}{findings}{omitted}</article>"
    )


def _render_finding(finding: Finding, *, spread: bool) -> str:
    path = f" <code>{_text(finding.path)}</code>" if finding.path else ""
    shown = ""
    if finding.fact is not None:
        text = msgspec.json.format(msgspec.json.encode(finding.fact), indent=2).decode()
        about = f"{finding.fact.get('eventClass', 'fact')} {finding.fact_id or ''}"
        shown = (
            f"<details{' open' if spread else ''}><summary>{_text(about.strip())}</summary>"
            f"<pre>{_text(text)}</pre></details>"
        )
    return (
        f"<div class=finding><p><code class=req>{_text(finding.requirement)}</code>{path}</p>"
        f"<p>{_text(finding.message)}</p>{shown}</div>"
    )


def _level(report: Report, level: Level) -> str:
    results = [each for each in report.results if each.level == level]
    if not results:
        return ""
    rows = "".join(map(_row, results))
    return (
        f"<section><h2>{_LEVELS[level][0]}</h2><table><thead><tr><th>case<th>requirement<th>"
        f"outcome</tr></thead><tbody>{rows}</tbody></table></section>"
    )


def _row(result: Result) -> str:
    needs = " ".join(f"<code>{_text(name)}</code>" for name in result.requirements)
    reason = f"<span class=quiet>{_text(result.reason)}</span>" if result.reason else ""
    name = "" if result.requirements == (result.id,) else _text(result.id)
    return (
        f"<tr><td>{_text(result.title)} <span class=quiet>{name}</span><td>{needs}"
        f'<td><b class="{result.status}">{_WORDS[result.status]}</b> {reason}</tr>'
    )


def _coverage(report: Report) -> str:
    rows = report.requirements
    found = [row for row in rows if row.status in ("passed", "failed")]
    left = [row for row in rows if row not in found]
    return (
        f"<section><h2>Requirements</h2><p>{len(found):,} of {len(rows):,} were judged in this run."
        f"</p>{_reasons(report)}"
        f"<details><summary>{len(found):,} judged</summary>{_standings(found)}</details>"
        f"<details><summary>{len(left):,} not judged, and why</summary>{_standings(left)}"
        "</details></section>"
    )


def _reasons(report: Report) -> str:
    """What was judged of each level, and the rest by reason; the numbers add up."""
    rows = "".join(
        f"<tr><td>{_LEVELS[each.level][0]}<td>{each.judged:,} of {each.total:,}<td>"
        + "<br>".join(f"{row.count:,}: {_text(row.reason)}" for row in each.not_judged)
        + "</tr>"
        for each in report.coverage
    )
    head = "<thead><tr><th>level<th>judged<th>not judged</tr></thead>"
    return f"<table>{head}<tbody>{rows}</tbody></table>"


def _standings(rows: Iterable[Standings]) -> str:
    cells = "".join(
        f"<tr><td><code>{_text(row.id)}</code><td>{_text(row.sentence)}"
        f'<td><b class="{row.status}">{_WORDS[row.status]}</b> '
        f"<span class=quiet>{_text(row.reason or '')}</span></tr>"
        for row in rows
    )
    head = "<thead><tr><th>requirement<th>says<th>stands</tr></thead>"
    return f"<table>{head}<tbody>{cells}</tbody></table>"


def _footer(report: Report) -> str:
    return f"<footer>Factwire {_text(report.factwire)} · {_text(report.schema_version)}</footer>"


def _text(text: str) -> str:
    """Text of anybody's, as text. A lone surrogate, which no page can hold, is shown by number."""
    return escape(text.encode("utf-8", "backslashreplace").decode())
