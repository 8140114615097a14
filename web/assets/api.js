// The page of the API: finds and opens operations, and sends what was entered. Keys stay in their fields.
"use strict";
{
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const operations = all("details.operation");

  const find = document.getElementById("api-find");
  const filter = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const op of operations) {
      const name = `${op.id} ${op.querySelector("summary").textContent}`.toLowerCase();
      op.hidden = !words.every((w) => name.includes(w));
    }
  };
  find.addEventListener("input", filter);

  // An address with the name of an operation or a schema opens it.
  const show = () => {
    const at = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!at?.matches("details.operation")) return;
    if (at.hidden) { find.value = ""; filter(); }
    at.open = true;
    at.scrollIntoView();
  };
  addEventListener("hashchange", show);
  show();

  document.querySelector("[data-api-open]").addEventListener("click", (event) => {
    const open = operations.some((op) => !op.hidden && !op.open);
    for (const op of operations) if (!op.hidden) op.open = open;
    event.target.textContent = open ? "Close all" : "Open all";
  });

  /** request is what a form asks for. */
  function request(form) {
    const headers = {};
    let path = form.dataset.path;
    const query = new URLSearchParams();
    for (const field of all("input[data-in]", form)) {
      // A file's slashes are a part of its path.
      if (field.dataset.in === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(field.value).replaceAll("%2F", "/"));
      else if (!field.value) continue;
      else if (field.dataset.in === "query") query.append(field.name, field.value);
      else headers[field.name] = field.value;
    }
    const key = document.querySelector(`[data-api-key="${form.dataset.needs}"]`)?.value.trim();
    const body = form.querySelector("[data-in=body]")?.value;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    return { url: location.origin + path + (query.size ? `?${query}` : ""), method: form.dataset.method, headers, body, key };
  }

  const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

  /** command is the same for a shell. It has the key's name in place of the key. */
  function command(form) {
    const { url, method, headers, body } = request(form);
    const lines = ["curl"];
    if ("stream" in form.dataset) lines[0] += " -N";
    if (method !== "GET" && body === undefined) lines[0] += ` -X ${method}`;
    lines[0] += ` ${quoted(url)}`;
    if (form.dataset.needs) lines.push(`  -H "Authorization: Bearer $${form.dataset.needs.toUpperCase()}_KEY"`);
    for (const [name, value] of Object.entries(headers)) lines.push(`  -H ${quoted(`${name}: ${value}`)}`);
    if (body !== undefined) lines.push(`  -d ${quoted(body)}`);
    return lines.join(" \\\n");
  }

  /** said is the text for readers in what has come of a stream: of the UI message stream, or of the data stream. */
  function said(line) {
    try {
      if (line.startsWith("data: ")) {
        const event = JSON.parse(line.slice(6));
        return event.type === "text-delta" ? event.delta : "";
      }
      if (line.startsWith("0:")) return JSON.parse(line.slice(2));
    } catch { /* [DONE] */ }
    return "";
  }

  const most = 2_000_000; // characters of an answer that are shown

  async function send(form) {
    const part = (name) => form.querySelector(`[data-api-${name}]`);
    const status = part("status"), body = part("body"), text = part("text"), stop = part("stop"), go = form.querySelector("button.go");
    const { url, method, headers, body: sent, key } = request(form);
    if (key) headers.Authorization = `Bearer ${key}`;
    body.textContent = text.textContent = part("headers").textContent = "";
    text.hidden = true;
    status.textContent = "Waiting …";
    const abort = new AbortController();
    const stopped = () => abort.abort();
    stop.addEventListener("click", stopped);
    stop.hidden = false;
    go.disabled = true;
    const began = performance.now();
    let line = "";
    try {
      const response = await fetch(url, { method, headers, body: sent, signal: abort.signal, credentials: "omit", cache: "no-store", redirect: "manual" });
      line = `${response.status} ${response.statusText}`.trim();
      status.textContent = `${line}, receiving …`;
      part("answer").hidden = false;
      part("headers").textContent = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
      const json = (response.headers.get("Content-Type") ?? "").startsWith("application/json");
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      let whole = "", rest = "";
      for (let length = 0; reader;) {
        const { done, value } = await reader.read();
        if (done) break;
        length += value.length;
        if (json) { whole += value; continue; }
        if (length <= most) body.append(value);
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        const more = lines.map(said).join("");
        if (more) { text.append(more); text.hidden = false; }
      }
      if (json) {
        try { whole = JSON.stringify(JSON.parse(whole), null, 2); } catch { /* as it came */ }
        body.textContent = whole.slice(0, most);
      }
      status.textContent = `${line}, ${((performance.now() - began) / 1000).toFixed(2)} s`;
    } catch (error) {
      status.textContent = abort.signal.aborted ? `${line} stopped`.trim() : `${line} ${error.message}`.trim();
    } finally {
      stop.removeEventListener("click", stopped);
      stop.hidden = true;
      go.disabled = false;
    }
  }

  for (const form of all("form[data-api]")) {
    const curl = form.parentElement.querySelector("[data-api-curl]");
    const write = () => { curl.textContent = command(form); };
    write();
    form.querySelector("[data-api-example]")?.addEventListener("change", (event) => {
      form.querySelector("[data-in=body]").value = event.target.value;
    });
    form.addEventListener("input", write);
    form.addEventListener("change", write);
    form.addEventListener("submit", (event) => { event.preventDefault(); send(form); });
  }
}
