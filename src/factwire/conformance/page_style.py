"""The look of the report's page: plain, readable, light or dark as the reader's system is."""

from typing import Final

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
