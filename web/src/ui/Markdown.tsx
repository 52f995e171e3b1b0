/**
 * Text of agents, as markdown. It is hostile until proven otherwise: HTML stays text, addresses are
 * web or mail addresses or nothing, and pictures are links, because fetching one tells its host
 * that this page was read.
 */

import { isValidElement, memo, useMemo, type ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";

import { blocksOf } from "./blocks";
import { CodeBlock } from "./CodeBlock";
import styles from "./Markdown.module.css";

const PLUGINS = [remarkGfm];
const SAFE = /^(?:https?:|mailto:)/i;

const COMPONENTS: Components = {
  a: ({ href, children }) => <SafeLink href={href}>{children}</SafeLink>,
  img: ({ src, alt }) => <SafeLink href={typeof src === "string" ? src : undefined}>{`[image: ${alt || "no description"}]`}</SafeLink>,
  pre: ({ children }) => <CodeBlock text={textOf(children)} label="Code" />,
  table: ({ children }) => (
    <div className={styles.table} tabIndex={0} role="group" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
  input: ({ checked }) => <span>{checked ? "☑ " : "☐ "}</span>,
};

export function Markdown({ text }: { text: string }) {
  const blocks = useMemo(() => blocksOf(text), [text]);
  return (
    <div className={styles.markdown} dir="auto">
      {blocks.map((block, at) => (
        <Block key={at} text={block} />
      ))}
    </div>
  );
}

const Block = memo(function Block({ text }: { text: string }) {
  return (
    <div dir="auto">
      <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS}>
        {text}
      </ReactMarkdown>
    </div>
  );
});

function SafeLink({ href, children }: { href: string | undefined; children: ReactNode }) {
  if (href === undefined || !SAFE.test(href)) return <span>{children}</span>;
  return (
    <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

function textOf(node: ReactNode): string {
  if (typeof node === "string" || typeof node === "number") return String(node);
  if (Array.isArray(node)) return node.map(textOf).join("");
  return isValidElement<{ children?: ReactNode }>(node) ? textOf(node.props.children) : "";
}
