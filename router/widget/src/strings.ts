// What the widget says, in English. Each other language is a file of its own, which only its readers load.
export const en = {
  title: "Ask the documentation", placeholder: "Search or ask a question", ask: "Ask", askThis: "Ask: {0}", close: "Close", back: "Back to search",
  fresh: "New conversation", stop: "Stop", again: "Answer again", copy: "Copy", copied: "Copied", helpful: "Helpful", unhelpful: "Not helpful",
  why: "What was wrong or missing?", send: "Send", thanks: "Thank you.", sources: "Sources", further: "Ask next", follow: "Ask a follow-up question",
  searching: "Searching…", found: "Results: {0}", nothing: "Nothing was found. Ask a question instead.", writing: "Writing…", reconnecting: "Reconnecting…",
  stopped: "Stopped.", failed: "The connection failed. Try again.", retry: "Try again", notice: "Answers are generated from the documentation and can be wrong.",
  earlier: "Earlier conversations", forget: "Remove them from this browser", about: "About the selected text",
  more: "See also ({0})", contact: "Contact a person",
  contactNote: "Your message goes to the people behind this documentation, with this conversation.",
  contactPublic: "It becomes an issue that others may read, without your name and email address.",
  contactMessage: "Your message", contactName: "Name (optional)", contactEmail: "Email address", contactSent: "Your message was sent.",
  share: "Copy link", openIn: "Open in {0}", recent: "Recent searches", move: "Move", choose: "Choose",
};
export type Strings = typeof en;

declare const LANGUAGES: Record<string, string>; // the file of each, with its hash

export interface Words {
  strings: Strings;
  language: string;
  direction: "ltr" | "rtl";
}

/** wordsOf are the words for a language tag, and the direction in which it is written. A language that is not there gets English. */
export async function wordsOf(tag: string, base: string): Promise<Words> {
  const language = tag.toLowerCase().split("-")[0]!;
  const file = LANGUAGES[language];
  if (file) {
    try {
      const module: { default: Strings } = await import(new URL(file, base).href);
      return { strings: module.default, language, direction: language === "ar" ? "rtl" : "ltr" };
    } catch {
      // English is better than nothing.
    }
  }
  return { strings: en, language: "en", direction: "ltr" };
}

export const fill = (text: string, value: string | number) => text.replace("{0}", String(value));
