// Small behaviours of the pages, each named by a data attribute. Pages can be read, and forms sent, without them.
"use strict";

// data-time: a time in the reader's zone, with the exact one on hover.
const near = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
function localTimes(root) {
  for (const el of root.querySelectorAll("time[data-time]")) {
    const at = new Date(el.dateTime);
    if (isNaN(at)) continue;
    el.textContent = near.format(at);
    el.title = exact.format(at);
    el.removeAttribute("data-time");
  }
}
localTimes(document);
document.addEventListener("htmx:load", (event) => localTimes(event.target));

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

// data-confirm: asks before a form is sent that cannot be taken back.
document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.confirm ?? event.target.dataset.confirm;
  if (question && !confirm(question)) {
    event.preventDefault();
    event.stopImmediatePropagation();
  }
}, true);

// On a narrow screen the menu begins folded.
if (matchMedia("(max-width: 55.99rem)").matches) {
  for (const menu of document.querySelectorAll("details.menu-toggle")) menu.open = false;
}

// The changes of a file that were left out of the page are fetched when the file is opened. Without scripts their link leads to them.
document.addEventListener("toggle", async (event) => {
  const later = event.target.open && event.target.querySelector(".later");
  if (!later) return;
  const answer = await fetch(later.querySelector("a").href).catch(() => null);
  if (!answer?.ok) return; // the link is still there
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const changes = page.querySelector(".changes");
  if (changes) later.replaceWith(changes);
}, true);
