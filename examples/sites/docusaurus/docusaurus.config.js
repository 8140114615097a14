import { themes } from "prism-react-renderer";

export default {
  title: "Switchyard",
  tagline: "Trains, signals and points of a model railway",
  favicon: "icon.svg",
  url: "https://switchyard.test", // Docent's citations lead there
  baseUrl: "/",
  trailingSlash: false,
  baseUrlIssueBanner: false, // its inline script would need a line of its own in the policy in static/_headers
  onBrokenLinks: "throw",
  onBrokenAnchors: "throw",
  scripts: [
    { src: "https://docent.example.com/widget/v1.js", "data-domain": "switchyard.test", "data-key": "dct_pub_...", async: true },
  ],
  presets: [
    [
      "classic",
      {
        docs: { routeBasePath: "/", sidebarPath: "./sidebars.js" },
        blog: false,
        theme: { customCss: "./src/css/custom.css" },
      },
    ],
  ],
  themeConfig: {
    colorMode: { respectPrefersColorScheme: true },
    navbar: {
      title: "Switchyard",
      items: [
        { type: "docSidebar", sidebarId: "docs", label: "Docs", position: "left" },
        { type: "html", position: "right", value: '<button class="clean-btn navbar__link" data-docent-open>Search or ask</button>' },
      ],
    },
    prism: { theme: themes.github, darkTheme: themes.dracula, additionalLanguages: ["bash", "toml"] },
  },
};
