import { useState } from "react";

import type { ArtifactVersion } from "../../api/generated/projection";
import { DIFF_BYTES } from "../../api/limits";
import { wordsOf } from "../../api/refusal";
import { DiffOfRef } from "../../diff/DiffOfRef";
import { DiffText } from "../../diff/DiffText";
import { DiffView } from "../../diff/DiffView";
import { useComparison } from "../../diff/useComparison";
import { textIn, useContent } from "../../state/contents";
import { Spinner } from "../../ui";
import styles from "./Artifacts.module.css";
import { versionWords } from "./naming";

/** What a version changed: against any other of which the content is kept, else as a fact's diff tells it. */
export function Changes({ versions, at }: { versions: ArtifactVersion[]; at: number }) {
  const version = versions[at] as ArtifactVersion;
  const others = versions.map((other, place) => ({ other, place })).filter(({ other, place }) => place !== at && other.contentRef != null);
  const before = others.filter(({ place }) => place < at).at(-1) ?? others[0];
  const [wanted, setWanted] = useState(before?.other.versionId ?? null);
  const base = others.find(({ other }) => other.versionId === wanted)?.other;
  if (version.contentRef == null || base?.contentRef == null) return <Told version={version} />;
  return (
    <div className={styles.changes}>
      <label className={styles.version}>
        <span>Compared with</span>
        <select value={base.versionId} onChange={(event) => setWanted(event.target.value)}>
          {others.map(({ other, place }) => (
            <option key={other.versionId} value={other.versionId}>
              {versionWords(other, place)}
            </option>
          ))}
        </select>
      </label>
      <Between before={base.contentRef} after={version.contentRef} />
    </div>
  );
}

function Told({ version: { diff, diffRef, diffTruncated } }: { version: ArtifactVersion }) {
  if (diff == null && diffRef == null) return <p className={styles.soft}>No diff available.</p>;
  const isCut = diffTruncated === true && diffRef == null;
  return (
    <div className={styles.changes}>
      <p className={styles.soft}>{isCut ? "Diff reported by the tool, truncated." : "Diff reported by the tool."}</p>
      {diffRef != null && (diff == null || diffTruncated === true) ? <DiffOfRef diffRef={diffRef} tall /> : <DiffText text={diff ?? ""} tall />}
    </div>
  );
}

function Between({ before, after }: { before: string; after: string }) {
  const left = useContent(before, DIFF_BYTES);
  const right = useContent(after, DIFF_BYTES);
  const error = left.error ?? right.error;
  if (error) return <p role="alert">{wordsOf(error)}</p>;
  if (left.data === undefined || right.data === undefined) return <Spinner label="Loading both versions" />;
  if (!left.data.whole || !right.data.whole) return <p className={styles.soft}>One of the versions is too large to compare here. Download both instead.</p>;
  const [old, young] = [textIn(left.data), textIn(right.data)];
  if (old === null || young === null) return <p className={styles.soft}>One of the versions is not text, so they cannot be compared line by line.</p>;
  return <Compared before={old} after={young} />;
}

function Compared({ before, after }: { before: string; after: string }) {
  const lines = useComparison(before, after);
  return lines === null ? <Spinner label="Comparing" /> : <DiffView lines={lines} label="Changes" tall />;
}
