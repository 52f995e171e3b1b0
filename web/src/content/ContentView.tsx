import { useEffect, useMemo, useState, type ReactNode } from "react";

import { TASTE_BYTES, VIEW_BYTES } from "../api/limits";
import { wordsOf } from "../api/refusal";
import { Pages } from "../screens/conversation/OutputDialog";
import { blobReader } from "../screens/conversation/output";
import { textIn, useContent, type Content } from "../state/contents";
import { Button, EmptyState, Markdown, Spinner } from "../ui";
import styles from "./ContentView.module.css";
import { sizeWords } from "./download";
import { viewOf, type ViewName } from "./views";

export interface ContentViewProps {
  contentRef: string;
  mediaType: string | null;
  kind: string;
  name: string;
}

/** What is behind a ref, shown as what facts say it is. */
export function ContentView(props: ContentViewProps) {
  const view = viewOf(props.mediaType, props.kind);
  if (view === "none") return <NotShown mediaType={props.mediaType} />;
  const View = VIEWS[view];
  return <View key={props.contentRef} {...props} />;
}

function NotShown({ mediaType }: { mediaType: string | null }) {
  return (
    <EmptyState icon="unknown" title="No preview available">
      <p>{mediaType === null ? "The content type is unknown." : `Content of type ${mediaType} cannot be shown here.`} You can download it.</p>
    </EmptyState>
  );
}

/** Text, piece by piece. Whether it is text at all is tasted first. */
function TextView({ contentRef }: ContentViewProps) {
  const taste = useContent(contentRef, TASTE_BYTES);
  const reader = useMemo(() => blobReader(contentRef), [contentRef]);
  if (taste.error) return <Unread error={taste.error} />;
  if (taste.data === undefined) return <Reading />;
  return textIn(taste.data) === null ? <NotText /> : <Pages reader={reader} />;
}

function ImageView({ contentRef, mediaType, name }: ContentViewProps) {
  return <Whole contentRef={contentRef}>{(content) => <Picture content={content} mediaType={mediaType ?? ""} name={name} />}</Whole>;
}

/** A picture stands in the page as data and has no address there, so none can be opened as a page of the Edge's. */
function Picture({ content, mediaType, name }: { content: Content; mediaType: string; name: string }) {
  const [address, setAddress] = useState<string | null>(null);
  const [broken, setBroken] = useState(false);
  useEffect(() => {
    const reader = new FileReader();
    reader.onload = () => setAddress(String(reader.result));
    reader.readAsDataURL(new Blob([content.bytes], { type: mediaType }));
    return () => reader.abort();
  }, [content, mediaType]);
  if (broken) return <p role="alert">Your browser cannot display this image.</p>;
  return address === null ? <Reading /> : <img className={styles.picture} src={address} alt={name} onError={() => setBroken(true)} />;
}

function MarkdownView({ contentRef, ...rest }: ContentViewProps) {
  return (
    <TwoWays asItIs={<TextView contentRef={contentRef} {...rest} />}>
      <Whole contentRef={contentRef}>{(content) => <Text content={content}>{(text) => <Markdown text={text} />}</Text>}</Whole>
    </TwoWays>
  );
}

function JsonView({ contentRef, ...rest }: ContentViewProps) {
  return (
    <TwoWays asItIs={<TextView contentRef={contentRef} {...rest} />}>
      <Whole contentRef={contentRef}>{(content) => <Text content={content}>{(text) => <Json text={text} />}</Text>}</Whole>
    </TwoWays>
  );
}

function Json({ text }: { text: string }) {
  const lines = useMemo(() => indented(text), [text]);
  if (lines === null) return <p role="alert">This is not valid JSON, despite its type. Switch to Raw to see it.</p>;
  return (
    <pre className={styles.code} tabIndex={0} role="region" aria-label="JSON">
      {lines}
    </pre>
  );
}

function indented(text: string): string | null {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

const VIEWS: Record<Exclude<ViewName, "none">, (props: ContentViewProps) => ReactNode> = { markdown: MarkdownView, json: JsonView, image: ImageView, text: TextView };

function TwoWays({ asItIs, children }: { asItIs: ReactNode; children: ReactNode }) {
  const [plain, setPlain] = useState(false);
  return (
    <div className={styles.ways}>
      <div className={styles.switch} role="group" aria-label="View as">
        <Button size="small" kind="ghost" aria-pressed={!plain} onClick={() => setPlain(false)}>
          Formatted
        </Button>
        <Button size="small" kind="ghost" aria-pressed={plain} onClick={() => setPlain(true)}>
          Raw
        </Button>
      </div>
      {plain ? asItIs : children}
    </div>
  );
}

function Whole({ contentRef, children }: { contentRef: string; children: (content: Content) => ReactNode }) {
  const content = useContent(contentRef, VIEW_BYTES);
  if (content.error) return <Unread error={content.error} />;
  if (content.data === undefined) return <Reading />;
  if (!content.data.whole) return <p>{content.data.total === null ? "This content" : `At ${sizeWords(content.data.total)}, this content`} is too large for this view.</p>;
  return children(content.data);
}

function Text({ content, children }: { content: Content; children: (text: string) => ReactNode }) {
  const text = useMemo(() => textIn(content), [content]);
  return text === null ? <NotText /> : children(text);
}

function NotText() {
  return <p>This is not text, despite its type. You can download it.</p>;
}

function Reading() {
  return <Spinner label="Loading content" />;
}

function Unread({ error }: { error: Error }) {
  return <p role="alert">{wordsOf(error)}</p>;
}
