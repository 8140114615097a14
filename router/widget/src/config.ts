/** What a site says of its assistant, as data attributes of the script or attributes of the element. */
export interface Config {
  server: string; // address of Docent, without a slash at the end
  domain: string;
  key: string;
  version: string; // of the documentation; empty where the current page tells
  language: string; // of the interface; empty for the page's
  theme: string; // light, dark, or empty to follow the site
  history: boolean; // conversations stay in this browser
  user: string; // the site's id of who asks; anonymous where empty
  greeting: string; // what the dialog says before the first question
  contact: string; // email or web address of people who help, or form; empty for none
  contactIssues: boolean; // what the form sends becomes an issue, which others may read
  logo: string; // address of a picture
  openIn: string[]; // chat clients that an answer's question can be taken to
  suggestions: string[]; // questions that it offers there
  /** Who the reader is, as the site's server signs it; empty for nobody. Fresh is whether the token before was refused. */
  readerToken: (fresh: boolean) => Promise<string>;
  proof: boolean; // each question brings a proof of work
}

/** What the reader selected on the page, which the question is about. */
export interface Snippet {
  type: "textSelection" | "code";
  value: string;
  path?: string;
  elementId?: string;
}
