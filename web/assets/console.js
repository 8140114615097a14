// Small behaviors of the pages, each named by a data attribute. Pages can be read, and forms sent, without them.
"use strict";

// data-time: a time of the last or the next day by how far it is, another one in the reader's zone; the exact one on hover. The year
// is shown where it is not this one. With the value "seconds" the time of the day, to the second.
const thisYear = new Date().getFullYear();
const near = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" });
const dated = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit", second: "2-digit" });
const dayClock = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "numeric", minute: "2-digit", second: "2-digit" });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
function ago(at) {
  const seconds = Math.round((at - Date.now()) / 1000), away = Math.abs(seconds);
  if (away < 45) return seconds > 0 ? "in a moment" : "just now";
  if (away < 3600) return relative.format(Math.round(seconds / 60), "minute");
  if (away < 86400) return relative.format(Math.round(seconds / 3600), "hour");
  return (at.getFullYear() === thisYear ? near : dated).format(at);
}
function localTimes(root) {
  for (const el of root.querySelectorAll("time[data-time]")) {
    const at = new Date(el.dateTime);
    if (isNaN(at)) continue;
    el.textContent = el.dataset.time !== "seconds" ? ago(at) : (at.toDateString() === new Date().toDateString() ? clock : dayClock).format(at);
    el.title = exact.format(at);
  }
}
localTimes(document);
setInterval(() => localTimes(document), 60_000);
new MutationObserver((changes) => { // before what has come is painted
  for (const { addedNodes } of changes) for (const node of addedNodes) if (node.querySelectorAll) localTimes(node.parentElement ?? node);
}).observe(document.documentElement, { childList: true, subtree: true });

document.addEventListener("click", async (event) => {
  // data-copy: copies the code beside the button.
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    const from = copy.parentElement.querySelector("code, input, textarea");
    const text = from.value ?? from.textContent;
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch { // not a secure context: the text is selected, so that the keyboard can copy it
      getSelection().selectAllChildren(from);
      copy.textContent = "Press Ctrl+C";
    }
    setTimeout(() => { copy.textContent = "Copy"; }, 2000);
  }
  // An open menu closes when something else is clicked.
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// Esc closes an open menu, and the focus goes back to what opened it.
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector("details.menu[open]");
  if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
});

// data-confirm: asks before a form is sent that cannot be taken back.
document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.confirm ?? event.target.dataset.confirm;
  if (question && !confirm(question)) {
    event.preventDefault();
    event.stopImmediatePropagation();
  }
}, true);

// data-key: a key that leads to a field. data-go: an address that "g" and then its key lead to. "?" lists both. Whoever dictates, or
// types with one key by mistake, can switch them off.
const quiet = () => { try { return localStorage.getItem("docent-keys") === "off"; } catch { return false; } };
let went = -Infinity; // when "g" was pressed
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
  if (event.target.closest?.("input, textarea, select, [contenteditable], dialog")) return;
  if (quiet() || event.key.length !== 1) return;
  const key = CSS.escape(event.key);
  if (event.timeStamp - went < 1500) {
    went = -Infinity;
    const link = document.querySelector(`a[data-go="${key}"]`);
    if (link) { event.preventDefault(); link.click(); }
    return;
  }
  if (event.key === "g") { went = event.timeStamp; return; }
  if (event.key === "?") { event.preventDefault(); listKeys(); return; }
  const field = document.querySelector(`[data-key="${key}"]`);
  if (field?.checkVisibility()) { event.preventDefault(); field.focus(); field.select?.(); }
});

// make builds an element of texts and other elements.
function make(name, attributes, ...children) {
  const el = Object.assign(document.createElement(name), attributes);
  el.append(...children);
  return el;
}
function listKeys() {
  const rows = [...document.querySelectorAll("[data-key]")].map((el) => [[el.dataset.key], el.ariaLabel ?? el.textContent.trim()]);
  for (const el of document.querySelectorAll("a[data-go]")) rows.push([["g", el.dataset.go], el.textContent.trim()]);
  rows.push([["?"], "List these keys"]);
  const list = make("dl", { className: "facts" });
  for (const [keys, what] of rows) {
    list.append(make("dt", {}, ...keys.flatMap((k, i) => [i ? " " : "", make("kbd", {}, k)])), make("dd", {}, what));
  }
  const off = make("input", { type: "checkbox", checked: !quiet() });
  off.addEventListener("change", () => { try { localStorage.setItem("docent-keys", off.checked ? "on" : "off"); } catch { /* not kept */ } });
  const close = make("button", { type: "button" }, "Close");
  const heading = make("h2", { id: "keys-of-the-console" }, "Keyboard shortcuts");
  const dialog = make("dialog", {}, heading, list, make("label", { className: "check" }, off, "Use these keys"), close);
  dialog.setAttribute("aria-labelledby", heading.id);
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close()); // beside it
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
for (const button of document.querySelectorAll("[data-shortcuts]")) {
  button.hidden = false;
  button.addEventListener("click", () => { button.closest("details").open = false; listKeys(); });
}

// data-enter: in this field Enter sends the form, and Shift with Enter begins a new line.
document.addEventListener("keydown", (event) => {
  const field = event.target.closest?.("textarea[data-enter]");
  if (!field || event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  field.form.requestSubmit(field.form.querySelector("button"));
});

// The changes of a file that were left out of the page are fetched when the file is opened. Without scripts their link leads to them.
document.addEventListener("toggle", async (event) => {
  const later = event.target.open && event.target.querySelector(".later");
  if (!later) return;
  const answer = await fetch(later.querySelector("a").href, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (!answer?.ok) return; // the link is still there
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const changes = page.querySelector(".changes");
  if (!changes) return;
  later.replaceWith(changes);
  htmx?.process(changes);
}, true);

// data-plot: draws the columns of the table with that id, those with data-series (a color of the design system), over its days. The table
// beside it has the same numbers, and is all there is without scripts.
const drawn = new Map(); // plots by their elements
function draw(el) {
  const table = document.getElementById(el.dataset.plot);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const heads = [...table.tHead.rows[0].cells].map((head, column) => ({ head, column })).filter(({ head }) => head.dataset.series);
  const rows = [...table.tBodies[0].rows];
  const number = (cell) => cell.textContent.trim() === "" ? null : Number(cell.textContent);
  const data = [rows.map((row) => Date.parse(row.querySelector("time").dateTime) / 1000)];
  for (const { column } of heads) data.push(rows.map((row) => number(row.cells[column])));
  const share = heads.some(({ head }) => head.dataset.scale === "%");
  const axis = { stroke: color("dim"), grid: { stroke: color("edge"), width: 1 }, ticks: { stroke: color("edge"), width: 1 } };
  const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: "UTC" });
  const axes = [{ ...axis, space: 70, values: (_, ticks) => ticks.map((t) => day.format(t * 1000)) }, { ...axis, size: 60, scale: heads[0].head.dataset.scale ?? "y" }];
  if (share) axes.push({ ...axis, side: 1, scale: "%", size: 56, grid: { show: false }, values: (_, ticks) => ticks.map((t) => t + "%") });
  drawn.get(el)?.destroy();
  drawn.set(el, new uPlot({
    width: el.clientWidth, height: 220,
    tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
    scales: { "%": { range: [0, 100] }, y: { range: (_, min, max) => [0, Math.max(max, 1)] }, ms: { range: (_, min, max) => [0, Math.max(max, 1)] } },
    axes,
    series: [{ label: "Day", value: "{YYYY}-{MM}-{DD}" }, ...heads.map(({ head }) => ({
      label: head.textContent, scale: head.dataset.scale ?? "y", stroke: color(head.dataset.series), width: 2, spanGaps: false,
      points: { show: rows.length < 40, size: 5 }, dash: head.dataset.scale === "%" ? [6, 4] : undefined,
    }))],
  }, data, el));
}
document.addEventListener("DOMContentLoaded", () => {
  const plots = [...document.querySelectorAll("[data-plot]")];
  if (!plots.length || typeof uPlot === "undefined") return;
  const all = () => plots.forEach(draw);
  all();
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; all(); } });
  for (const query of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"]) matchMedia(query).addEventListener("change", all);
});

// data-print: prints the page.
for (const button of document.querySelectorAll("[data-print]")) {
  button.hidden = false;
  button.addEventListener("click", () => print());
}
