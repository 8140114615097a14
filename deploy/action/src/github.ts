// The one comment of a step on the pull request or issue that started the workflow.

interface Comment {
  id: number;
  body?: string;
  user?: { login?: string; type?: string };
}

export class GitHub {
  constructor(readonly api: string, readonly repository: string, readonly token: string) {}

  async #ask(method: string, path: string, accept: string, body?: unknown): Promise<Response> {
    const response = await fetch(`${this.api}/repos/${this.repository}/${path}`, {
      method, ...(body !== undefined && { body: JSON.stringify(body) }), signal: AbortSignal.timeout(30_000),
      headers: { Authorization: `Bearer ${this.token}`, Accept: accept, "X-GitHub-Api-Version": "2022-11-28", "User-Agent": "docent-action",
        "Content-Type": "application/json" },
    });
    if (!response.ok) {
      const said = await response.json().catch(() => ({}));
      throw new Error(`GitHub answered ${response.status}${said?.message ? `: ${said.message}` : ""}`);
    }
    return response;
  }

  async #call<T>(method: string, path: string, body?: unknown): Promise<T> {
    return (await this.#ask(method, path, "application/vnd.github+json", body)).json() as Promise<T>;
  }

  /** diff is what a pull request changes. */
  async diff(number: number): Promise<string> {
    return (await this.#ask("GET", `pulls/${number}`, "application/vnd.github.diff")).text();
  }

  /** mine tells the comments that the token's owner wrote: a person's by the name, otherwise those of apps. */
  async #mine(): Promise<(c: Comment) => boolean> {
    const response = await fetch(`${this.api}/user`, { signal: AbortSignal.timeout(30_000), headers: { Authorization: `Bearer ${this.token}`, "User-Agent": "docent-action" } }).catch(() => undefined);
    const login = response?.ok ? ((await response.json()) as { login?: string }).login : undefined;
    return (c) => login ? c.user?.login === login : c.user?.type === "Bot";
  }

  /** say writes the comment that bears the mark, or rewrites the one that is there; if others can make the mark, only its own. */
  async say(number: number, mark: string, markdown: string, guessable = false): Promise<void> {
    const mine = guessable ? await this.#mine() : () => true;
    const body = `${markdown}\n\n<!-- ${mark} -->`;
    for (let page = 1; ; page++) {
      const comments = await this.#call<Comment[]>("GET", `issues/${number}/comments?per_page=100&page=${page}`);
      const own = comments.find((c) => c.body?.trimEnd().endsWith(`<!-- ${mark} -->`) && mine(c));
      if (own) {
        if (own.body !== body) await this.#call("PATCH", `issues/comments/${own.id}`, { body });
        return;
      }
      if (comments.length < 100) break;
    }
    await this.#call("POST", `issues/${number}/comments`, { body });
  }
}
