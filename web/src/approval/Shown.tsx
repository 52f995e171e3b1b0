import { useMemo, useState } from "react";

import { DiffOfRef } from "../diff/DiffOfRef";
import { DiffText } from "../diff/DiffText";
import { Button, classes, CodeBlock, Verbatim } from "../ui";
import styles from "./Shown.module.css";
import { tonedLines } from "./tones";

/** What exactly would be done: the text that the answer is bound to, and nothing but it. */
export function Shown({ shown, diff, diffRef }: { shown: string | null; diff: string | null; diffRef: string | null }) {
  return (
    <>
      {shown === null && diff === null && <p className={styles.unknown}>The request does not include details.</p>}
      {shown !== null && <ShownText text={shown} />}
      {diff !== null && <DiffText text={diff} />}
      {diffRef !== null && <KeptDiff diffRef={diffRef} />}
    </>
  );
}

function ShownText({ text }: { text: string }) {
  const lines = useMemo(() => tonedLines(text), [text]);
  return (
    <CodeBlock text={text} label="Requested action" wrap>
      {lines.map(({ line, tone }, at) => (
        <span key={at} className={classes(styles.line, tone !== null && styles[tone])}>
          <Verbatim text={line} />
          {"\n"}
        </span>
      ))}
    </CodeBlock>
  );
}

function KeptDiff({ diffRef }: { diffRef: string }) {
  const [open, setOpen] = useState(false);
  if (open) return <DiffOfRef diffRef={diffRef} />;
  return (
    <div>
      <Button size="small" icon="artifact" onClick={() => setOpen(true)}>
        Show diff
      </Button>
    </div>
  );
}
