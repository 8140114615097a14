// The reader's choice of light or dark, before anything is drawn; else what the system says.
const root = document.documentElement;
root.dataset.theme = localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

document.addEventListener("click", (event) => {
  if (!event.target.closest("#theme")) return;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
});
