// The one comment of a step on the pull request or issue that started the workflow.

interface Comment {
  id: number;
  body?: string;
}

export class GitHub {
  constructor(readonly api: string, readonly repository: string, readonly token: string) {}

  async #call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(`${this.api}/repos/${this.repository}/${path}`, {
      method, ...(body !== undefined && { body: JSON.stringify(body) }), signal: AbortSignal.timeout(30_000),
      headers: { Authorization: `Bearer ${this.token}`, Accept: "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28", "User-Agent": "docent-action",
        "Content-Type": "application/json" },
    });
    if (!response.ok) {
      const said = await response.json().catch(() => ({}));
      throw new Error(`GitHub answered ${response.status}${said?.message ? `: ${said.message}` : ""}`);
    }
    return response.json() as Promise<T>;
  }

  /** say writes the comment that bears the mark, or rewrites the one that is there. */
  async say(number: number, mark: string, markdown: string): Promise<void> {
    const body = `${markdown}\n\n<!-- ${mark} -->`;
    for (let page = 1; ; page++) {
      const comments = await this.#call<Comment[]>("GET", `issues/${number}/comments?per_page=100&page=${page}`);
      const own = comments.find((c) => c.body?.trimEnd().endsWith(`<!-- ${mark} -->`));
      if (own) {
        if (own.body !== body) await this.#call("PATCH", `issues/comments/${own.id}`, { body });
        return;
      }
      if (comments.length < 100) break;
    }
    await this.#call("POST", `issues/${number}/comments`, { body });
  }
}
