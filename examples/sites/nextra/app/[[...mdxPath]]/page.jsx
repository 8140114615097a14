import { generateStaticParamsFor, importPage } from 'nextra/pages';
import { useMDXComponents as getMDXComponents } from '../../mdx-components';

export const generateStaticParams = generateStaticParamsFor('mdxPath');

export async function generateMetadata(props) {
  const { mdxPath } = await props.params;
  return (await importPage(mdxPath)).metadata;
}

const Wrapper = getMDXComponents().wrapper;

export default async function Page(props) {
  const { mdxPath } = await props.params;
  const { default: Content, toc, metadata, sourceCode } = await importPage(mdxPath);
  return (
    <Wrapper toc={toc} metadata={metadata} sourceCode={sourceCode}>
      <Content {...props} params={{ mdxPath }} />
    </Wrapper>
  );
}
