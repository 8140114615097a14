export const styles = `
:host { --d-ink: var(--docent-ink, #1c2024); --d-dim: var(--docent-dim, #5b6168); --d-paper: var(--docent-paper, #fff); --d-soft: var(--docent-soft, #f5f6f8);
  --d-edge: var(--docent-edge, #d9dde1); --d-accent: var(--docent-accent, #0b57d0); --d-on-accent: var(--docent-on-accent, #fff); --d-mark: var(--docent-mark, #ffe9a8);
  --d-bad: #b42323; --d-font: var(--docent-font, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif); color-scheme: light; }
:host([data-shown=dark]) { --d-ink: var(--docent-ink, #e4e7ea); --d-dim: var(--docent-dim, #9aa2ab); --d-paper: var(--docent-paper, #15191d); --d-soft: var(--docent-soft, #1e242a);
  --d-edge: var(--docent-edge, #30363d); --d-accent: var(--docent-accent, #7cb1ff); --d-on-accent: var(--docent-on-accent, #0d1013); --d-mark: var(--docent-mark, #5a4a12); --d-bad: #ee6b6b; color-scheme: dark; }
* { box-sizing: border-box; }
dialog { font: 16px/1.5 var(--d-font); color: var(--d-ink); background: var(--d-paper); border: 1px solid var(--d-edge); border-radius: 12px; padding: 0; margin: 8vh auto auto;
  inline-size: min(44rem, calc(100vw - 1rem)); max-block-size: min(84vh, 50rem); overflow: hidden; box-shadow: 0 12px 48px #0005; overflow-wrap: anywhere; text-align: start; }
dialog[open] { display: flex; flex-direction: column; }
dialog::backdrop { background: #0006; }
@media (max-width: 40rem) { dialog { margin: 0; inline-size: 100vw; max-inline-size: 100vw; block-size: 100dvh; max-block-size: 100dvh; border: 0; border-radius: 0; } }
.head, .foot { display: flex; gap: .5rem; align-items: center; padding: .6rem .75rem; }
.head { border-block-end: 1px solid var(--d-edge); }
.foot { border-block-start: 1px solid var(--d-edge); color: var(--d-dim); font-size: .8125rem; flex-wrap: wrap; }
h2 { font-size: 1rem; margin: 0; flex: 1; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
input, textarea { font: inherit; color: inherit; background: var(--d-paper); border: 1px solid var(--d-dim); border-radius: 8px; padding: .5rem .75rem; inline-size: 100%; min-inline-size: 0; }
input::placeholder, textarea::placeholder { color: var(--d-dim); opacity: 1; }
form { display: flex; gap: .5rem; flex: 1; min-inline-size: 0; }
button { font: inherit; font-size: .9375rem; color: inherit; background: var(--d-soft); border: 1px solid var(--d-edge); border-radius: 8px; padding: .35rem .75rem; min-block-size: 2rem; cursor: pointer; white-space: nowrap; }
button.go { background: var(--d-accent); border-color: var(--d-accent); color: var(--d-on-accent); font-weight: 600; }
button.plain { background: none; border-color: transparent; padding-inline: .4rem; min-inline-size: 2rem; }
button[aria-pressed=true] { border-color: var(--d-accent); color: var(--d-accent); }
button[disabled] { opacity: .55; cursor: default; }
:focus-visible { outline: 2px solid var(--d-accent); outline-offset: 2px; }
a { color: var(--d-accent); }
.body { flex: 1; overflow-y: auto; padding: .75rem; min-block-size: 4rem; }
ul.found { list-style: none; margin: 0; padding: 0; }
.found [role=option] { display: block; padding: .5rem .75rem; border-radius: 8px; cursor: pointer; text-decoration: none; color: inherit; }
.found [aria-selected=true] { background: var(--d-soft); box-shadow: inset 2px 0 var(--d-accent); }
.found strong { display: block; }
.found small { color: var(--d-dim); display: block; overflow: hidden; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; }
mark { background: var(--d-mark); color: inherit; border-radius: 2px; }
.dim { color: var(--d-dim); font-size: .875rem; }
article { margin-block-end: 1.25rem; }
.question { font-size: 1rem; font-weight: 600; margin: 0 0 .5rem; white-space: pre-wrap; }
.about { border-inline-start: 3px solid var(--d-edge); padding-inline-start: .6rem; color: var(--d-dim); font-size: .875rem; max-block-size: 4.5em; overflow: hidden; margin: 0 0 .5rem; white-space: pre-wrap; }
.answer > div > :first-child { margin-block-start: 0; }
.answer p, .answer ul, .answer ol, .answer pre, .answer table, .answer blockquote { margin: 0 0 .75rem; }
.answer h1, .answer h2, .answer h3, .answer h4 { font-size: 1rem; margin: 1rem 0 .4rem; white-space: normal; }
code, pre { font-family: var(--docent-mono, ui-monospace, SFMono-Regular, Menlo, Consolas, monospace); font-size: .85em; background: var(--d-soft); border-radius: 4px; }
code { padding: .1em .3em; } pre { padding: .6rem .75rem; overflow-x: auto; } pre code { padding: 0; background: none; }
.code { position: relative; } .code .copy { position: absolute; inset-block-start: .25rem; inset-inline-end: .25rem; font-size: .8125rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; } td, th { border: 1px solid var(--d-edge); padding: .25rem .5rem; }
blockquote { border-inline-start: 3px solid var(--d-edge); padding-inline-start: .75rem; }
.admonition { border-color: var(--d-accent); background: var(--d-soft); padding: .5rem .75rem; border-radius: 4px; } .warning, .caution { border-color: var(--d-bad); }
.cite { text-decoration: none; padding: 0 .15em; }
ol.sources { list-style: none; display: flex; flex-wrap: wrap; gap: .4rem; margin: .25rem 0 .75rem; padding: 0; font-size: .875rem; }
.sources a { display: block; border: 1px solid var(--d-edge); border-radius: 8px; padding: .3rem .6rem; text-decoration: none; }
.sources span { color: var(--d-dim); }
.logo { block-size: 1.5rem; max-inline-size: 6rem; object-fit: contain; }
kbd { font: inherit; border: 1px solid var(--d-edge); border-radius: 4px; padding-inline: .3rem; }
@media (hover: none) { .keys { display: none; } }
article form { margin-block-start: .5rem; } form.contact { flex-direction: column; } form.contact p { margin: 0; }
form.contact textarea { resize: vertical; }
.cards summary { cursor: pointer; font-size: .875rem; color: var(--d-dim); }
.cards a { display: block; padding-block: .35rem; text-decoration: none; color: inherit; }
.tools { display: flex; gap: .35rem; flex-wrap: wrap; align-items: center; }
.problem { color: var(--d-bad); }
.chips { display: flex; gap: .4rem; flex-wrap: wrap; margin: .5rem 0; }
.writing::after { content: "▍"; content: "▍" / ""; animation: blink 1s steps(2) infinite; color: var(--d-accent); }
@keyframes blink { 50% { opacity: 0; } }
@media (prefers-reduced-motion: reduce) { .writing::after { animation: none; } }
.hidden { position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
`;
