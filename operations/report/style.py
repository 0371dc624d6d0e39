"""The style and the script of a report. The page's policy names their hashes, and allows no others."""

from __future__ import annotations

import base64
import hashlib

# Blue and orange differ for readers of every kind of colour vision, and in lightness, too.
STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--soft:#57606a;--line:#d8dee4;--a:#0072b2;--b:#e69f00;
--s0:#eef3f8;--s1:#c6dbef;--s2:#8fbfe0;--s3:#4f9bcb;--s4:#1f6fae;--s5:#08407c}
@media (prefers-color-scheme:dark){:root{--paper:#12161b;--ink:#e6eaef;--soft:#9aa5b1;--line:#39424d;--a:#56b4e9;
--b:#f0b442;--s0:#1c242d;--s1:#17395a;--s2:#1f5785;--s3:#2f7fb5;--s4:#62abdb;--s5:#c3e2f7}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:62rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem;margin:.5rem 0}h2{font-size:1.15rem;margin:2rem 0 .25rem;
border-top:1px solid var(--line);padding-top:1rem}
p{margin:.4rem 0;max-width:46rem}.soft,figcaption,summary{color:var(--soft)}figure{margin:.5rem 0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:.5rem 0}dt{color:var(--soft)}dd{margin:0}
pre{background:var(--s0);padding:.5rem .75rem;overflow-x:auto;margin:.25rem 0 .75rem}
.scroll{overflow-x:auto;max-width:100%}
svg{display:block;width:100%;min-width:40rem;height:auto}svg:focus{outline:2px solid var(--b);outline-offset:2px}
svg text{fill:var(--ink);font-family:system-ui,sans-serif}
.grid{stroke:var(--line);fill:none}.target{stroke:var(--ink);stroke-width:2;stroke-dasharray:5 4;fill:none}
.mark,.part0{fill:var(--a)}.part1{fill:var(--b)}.nothing{fill:var(--soft)}
.open{fill:none;stroke:var(--b);stroke-width:2;stroke-dasharray:4 2}
.s0{fill:var(--s0);background:var(--s0)}.s1{fill:var(--s1);background:var(--s1)}
.s2{fill:var(--s2);background:var(--s2)}.s3{fill:var(--s3);background:var(--s3)}
.s4{fill:var(--s4);background:var(--s4)}.s5{fill:var(--s5);background:var(--s5)}
.unknown{fill:none;stroke:var(--soft);stroke-dasharray:2 2}
.on,.on rect{stroke:var(--ink);stroke-width:2}
.key{display:inline-block;width:.9em;height:.9em;margin:0 .3em 0 .8em;vertical-align:-.1em;border:1px solid var(--line)}
.item{white-space:nowrap}.k0{background:var(--a)}.k1{background:var(--b)}
.ku{border:1px dashed var(--soft)}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}
th,td{padding:.15rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top;overflow-wrap:normal}
td.n,.all td{text-align:right;white-space:nowrap}thead th{color:var(--soft)}
details .scroll{max-height:24rem;overflow:auto}
#tip{position:fixed;z-index:1;max-width:20rem;padding:.4rem .6rem;background:var(--paper);color:var(--ink);
border:1px solid var(--ink);font-size:.8rem;white-space:pre-line;pointer-events:none}
@media print{body{max-width:none;font-size:11pt}svg{min-width:0}details .scroll{max-height:none}
h2{break-after:avoid}figure>.scroll{break-inside:avoid}#tip{display:none}}
@media (max-width:40rem){dl{grid-template-columns:1fr}dd{margin:0 0 .4rem}}
"""

# A picture's n-th mark belongs to the n-th row of the table beneath it, whose cells are what the tip shows.
SCRIPT = """
(function () {
  "use strict";
  var tip = document.getElementById("tip"), last = null;
  function words(table, number) {
    var rows = table.tBodies[0].rows, row = rows[number], heads = table.tHead.rows[0].cells, found = [], at = number;
    if (!row) { return ""; }
    var cells = Array.prototype.slice.call(row.cells);
    while (at >= 0 && cells.length < heads.length) {
      if (rows[at].cells.length === heads.length) { cells.unshift(rows[at].cells[0]); }
      at -= 1;
    }
    cells.forEach(function (cell, n) { found.push(heads[n].textContent + ": " + cell.textContent); });
    return found.join("\\n");
  }
  function hide() {
    if (last) { last.classList.remove("on"); }
    last = null;
    tip.hidden = true;
  }
  function show(mark, text) {
    hide();
    last = mark;
    mark.classList.add("on");
    tip.textContent = text;
    tip.hidden = false;
    var box = mark.getBoundingClientRect();
    var left = Math.min(Math.max(8, box.left), Math.max(8, window.innerWidth - tip.offsetWidth - 8));
    var under = box.bottom + 8;
    tip.style.left = left + "px";
    if (under + tip.offsetHeight > window.innerHeight) { under = Math.max(8, box.top - tip.offsetHeight - 8); }
    tip.style.top = under + "px";
  }
  document.querySelectorAll("figure").forEach(function (figure) {
    var table = figure.querySelector("table");
    figure.querySelectorAll("svg").forEach(function (svg) {
      var marks = Array.prototype.slice.call(svg.querySelectorAll(".mark")), now = -1;
      function go(number) {
        now = Math.max(0, Math.min(marks.length - 1, number));
        if (marks[now]) { show(marks[now], words(table, now)); }
      }
      svg.addEventListener("pointerover", function (event) {
        var mark = event.target.closest(".mark");
        if (mark) { go(marks.indexOf(mark)); } else { hide(); }
      });
      svg.addEventListener("pointerleave", hide);
      svg.addEventListener("blur", hide);
      svg.addEventListener("keydown", function (event) {
        var steps = { Home: 0, End: marks.length - 1, ArrowRight: now + 1, ArrowLeft: now - 1 };
        steps.ArrowDown = steps.ArrowRight;
        steps.ArrowUp = steps.ArrowLeft;
        if (event.key === "Escape") { hide(); return; }
        if (steps[event.key] === undefined) { return; }
        event.preventDefault();
        go(steps[event.key]);
      });
    });
  });
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach(function (each) { each.open = true; });
  });
  document.documentElement.dataset.script = "ready";
}());
"""


def content_policy() -> str:
    """Return the page's Content-Security-Policy."""
    style, script = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (STYLE, SCRIPT))
    return (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; "
        "base-uri 'none'; form-action 'none'"
    )
