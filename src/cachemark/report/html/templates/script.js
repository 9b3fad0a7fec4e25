// The page is complete without this script, which adds a choice of theme, sorting, and saving a chart.
"use strict";

const themes = ["system", "light", "dark"];
const button = document.getElementById("theme");
let theme = document.documentElement.dataset.theme || "system";
function show() {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  button.textContent = `◐ ${theme}`;
  button.setAttribute("aria-label", `Theme: ${theme}`);
}
button.hidden = false;
button.addEventListener("click", () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  show();
});
show();

// A figure such as "34.6 k ±2 %", "61.2 µs" or "9/10" by its value; text as it is.
const factors = { ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1, k: 1e3, M: 1e6, G: 1e9 };
function value(text) {
  const found = /^([\d.,]+)\s*(ns|µs|ms|s|k|M|G)?\b/.exec(text.trim());
  if (!found) return text.trim() === "–" ? Infinity : NaN;
  return parseFloat(found[1].replaceAll(",", "")) * (factors[found[2]] ?? 1);
}
function compare(a, b) {
  const [x, y] = [value(a), value(b)];
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x === y ? 0 : x - y;
}
function sort(table, column, head) {
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => compare(a.cells[column].textContent, b.cells[column].textContent));
  if (down) rows.reverse();
  table.tBodies[0].append(...rows);
}
for (const table of document.querySelectorAll("table[data-sortable]")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const sorter = document.createElement("button");
    sorter.type = "button";
    sorter.textContent = head.textContent;
    sorter.addEventListener("click", () => sort(table, column, head));
    head.replaceChildren(sorter);
  });
}

// A link to a folded part unfolds it.
function unfold() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const folded = target && target.closest("details");
  if (folded && !folded.open) {
    folded.open = true;
    target.scrollIntoView();
  }
}
addEventListener("hashchange", unfold);
unfold();

for (const figure of document.querySelectorAll("figure.plot")) {
  const save = document.createElement("button");
  save.type = "button";
  save.className = "save";
  save.textContent = "Save as SVG";
  save.addEventListener("click", () => {
    const text = new XMLSerializer().serializeToString(figure.querySelector("svg.wide"));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    link.download = `${figure.id}.svg`;
    link.click();
    URL.revokeObjectURL(link.href);
  });
  figure.querySelector("details").append(save);
}
