// Light or dark: as the reader chose, else as the system has it. The widget follows the attribute by itself.
const root = document.documentElement;
root.dataset.theme = localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("theme");
  const say = () => button.setAttribute("aria-pressed", String(root.dataset.theme === "dark"));
  say();
  button.addEventListener("click", () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
    say();
  });
});
