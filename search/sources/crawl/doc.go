// Package crawl reads web sites into folders of Markdown.
//
// A site is read by what it says of itself: the Markdown pages that its llms.txt lists, the pages of its sitemaps, or
// else by following links below an address. It asks as robots.txt, robots' meta elements and Retry-After want it,
// never for what it holds already and the server says is unchanged, and only for addresses that the policy lets it
// reach. What it knows of each page lies in a file beside the pages, written as the crawl goes: a crawl that was cut
// off resumes where it was.
package crawl
