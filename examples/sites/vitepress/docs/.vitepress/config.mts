import { defineConfig } from "vitepress";

export default defineConfig({
  title: "Hivelog",
  description: "Sensors in beehives, and what they tell.",
  lang: "en",
  cleanUrls: true,
  metaChunk: true, // what changes with every page is in a file, so the policy in public/_headers can name the inline scripts
  sitemap: { hostname: "https://hivelog.test" }, // Docent's citations lead there
  head: [
    ["link", { rel: "icon", href: "/icon.svg" }],
    ["script", {
      src: "https://docent.example.com/widget/v1.js",
      "data-domain": "hivelog.test",
      "data-key": "dct_pub_...",
      "data-shortcut": "i", // Ctrl-K is VitePress's own search
      async: "",
    }],
  ],
  themeConfig: {
    search: { provider: "local" },
    nav: [
      { text: "Guide", link: "/guide/install" },
      { text: "Reference", link: "/reference/commands" },
    ],
    sidebar: [
      {
        text: "Guide",
        items: [
          { text: "Install", link: "/guide/install" },
          { text: "Place the sensors", link: "/guide/sensors" },
          { text: "Swarming", link: "/guide/swarming" },
          { text: "Winter", link: "/guide/winter" },
        ],
      },
      {
        text: "Reference",
        items: [
          { text: "Commands", link: "/reference/commands" },
          { text: "Configuration", link: "/reference/configuration" },
          { text: "Data format", link: "/reference/data-format" },
        ],
      },
    ],
  },
});
