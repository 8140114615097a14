export default {
  docs: [
    "intro",
    { type: "category", label: "Guides", collapsed: false, items: ["guides/connect", "guides/blocks", "guides/timetable", "guides/braking"] },
    { type: "category", label: "Reference", collapsed: false, items: ["reference/commands", "reference/layout-file", "reference/faults"] },
  ],
};
