// What the scripts share that use the widget as a reader does.

/** patient has the widget wait for what its project has stored of it. By itself it goes on without after three seconds, and on a busy
 * machine they pass before the answer is there. */
export const patient = (context) => context.addInitScript(() => { AbortSignal.timeout = () => new AbortController().signal; });

/** complete waits until the newest question is answered: those before it have their answers already. */
export const complete = (page) => page.locator("docent-assistant article:last-of-type[aria-busy=false] .sources").waitFor();
