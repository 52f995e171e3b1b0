import { classes, Verbatim, VirtualList } from "../ui";
import styles from "./DiffView.module.css";
import type { DiffLine } from "./lines";

const LINE_HEIGHT = 19;
const MOST_HEIGHT = 480;
const TONES: Record<DiffLine["sign"], string | undefined> = { "+": styles.added, "-": styles.removed, "@": styles.place, " ": undefined };
const WORDS: Record<DiffLine["sign"], string> = { "+": "added: ", "-": "removed: ", "@": "", " ": "" };

/** A diff of any length; `tall` fills what is there instead of a box of its own. */
export function DiffView({ lines, label, tall = false }: { lines: DiffLine[]; label: string; tall?: boolean }) {
  if (lines.length === 0 || lines.every(({ sign }) => sign === "@" && lines.length === 1)) return <p className={styles.none}>No changes.</p>;
  const rows = lines.map((line, at) => ({ line, at }));
  return (
    <div className={classes(styles.diff, tall && styles.tall)} style={tall ? undefined : { height: Math.min(lines.length * LINE_HEIGHT + 10, MOST_HEIGHT) }}>
      <VirtualList items={rows} keyOf={({ at }) => String(at)} estimate={() => LINE_HEIGHT} label={label} render={({ line }) => <Line line={line} />} />
    </div>
  );
}

/** The sign is said in words to those who do not see its colour. */
function Line({ line }: { line: DiffLine }) {
  return (
    <div className={classes(styles.line, TONES[line.sign])}>
      <span className={styles.number} aria-hidden>
        {line.before ?? ""}
      </span>
      <span className={styles.number} aria-hidden>
        {line.after ?? ""}
      </span>
      <span className={styles.sign} aria-hidden>
        {line.sign === "@" ? "" : line.sign}
      </span>
      <span className={styles.text}>
        <span className="visually-hidden">{WORDS[line.sign]}</span>
        <Verbatim text={line.text} />
      </span>
    </div>
  );
}
