import { Footer, Layout, Navbar } from 'nextra-theme-docs';
import 'nextra-theme-docs/style.css';
import { Head } from 'nextra/components';
import { getPageMap } from 'nextra/page-map';
import { Assistant, Search } from '../components/assistant';
import './assistant.css';

export const metadata = {
  metadataBase: new URL('https://ferry.test'),
  title: { default: 'Ferry', template: '%s – Ferry' },
  description: 'A job queue for Node.js that needs only PostgreSQL.',
};

export default async function RootLayout({ children }) {
  return (
    <html lang="en" dir="ltr" suppressHydrationWarning>
      <Head />
      <body>
        <Layout
          navbar={<Navbar logo={<b>Ferry</b>} />}
          pageMap={await getPageMap()}
          search={<Search />}
          editLink={null}
          feedback={{ content: null }}
          footer={<Footer>Ferry is free software.</Footer>}
        >
          {children}
        </Layout>
        <Assistant />
      </body>
    </html>
  );
}
