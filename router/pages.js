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
