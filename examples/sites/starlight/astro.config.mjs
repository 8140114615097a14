// @ts-check
import starlight from '@astrojs/starlight';
import { defineConfig } from 'astro/config';

export default defineConfig({
  site: 'https://lantern.test',
  vite: { build: { assetsInlineLimit: 0 } }, // scripts are files, so that the policy in public/_headers allows them
  integrations: [
    starlight({
      title: 'Lantern',
      description: 'Feature flags that you run yourself.',
      head: [
        {
          tag: 'script',
          attrs: {
            src: 'https://docent.example.com/widget/v1.js',
            'data-domain': 'lantern.test',
            'data-key': 'dct_pub_...',
            async: true,
          },
        },
      ],
      components: { Search: './src/components/Search.astro' },
      pagefind: false,
      customCss: ['./src/styles/docent.css'],
      sidebar: [
        { label: 'Start here', items: ['start/install', 'start/first-flag'] },
        {
          label: 'Guides',
          items: ['guides/gradual-rollouts', 'guides/targeting', 'guides/kill-switches', 'guides/clean-up'],
        },
        { label: 'Reference', autogenerate: { directory: 'reference' } },
      ],
    }),
  ],
});
