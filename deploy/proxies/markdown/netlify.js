// netlify/edge-functions/markdown.js: Accept: text/markdown gets the page that `docent llms` has written. Not run by a test.
export default async (request) => {
  if (!request.headers.get("accept")?.includes("text/markdown")) return;
  const url = new URL(request.url);
  url.pathname += url.pathname.endsWith("/") ? "index.html.md" : ".md";
  return url;
};
export const config = { path: "/*", excludedPath: ["/*.md", "/*.js", "/*.css", "/*.png", "/*.svg"] };
