/** Two small drawings. What they show is said in words beside them, for those who do not see them. */

import styles from "./charts.module.css";

export interface ColumnsProps {
  title: string;
  summary: string;
  /** Null draws nothing: what is unknown is not zero. */
  values: { name: string; value: number | null }[];
  words: (value: number) => string;
  /** What stands under the first and the last column. */
  ends: [string, string];
}

const HEIGHT = 64;
const WIDTH = 320;

export function Columns({ title, summary, values, words, ends }: ColumnsProps) {
  const most = Math.max(1, ...values.map(({ value }) => value ?? 0));
  const step = WIDTH / Math.max(values.length, 8);
  return (
    <figure className={styles.chart}>
      <figcaption>
        <strong>{title}</strong>
        <span>{summary}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${title}: ${summary}`}>
        {values.map(({ name, value }, at) =>
          value === null || value === 0 ? null : (
            <rect key={at} x={at * step} y={HEIGHT - tall(value, most)} width={step * 0.75} height={tall(value, most)}>
              <title>{`${name}: ${words(value)}`}</title>
            </rect>
          ),
        )}
      </svg>
      <div className={styles.ends} aria-hidden>
        <span>{ends[0]}</span>
        <span>{ends[1]}</span>
      </div>
    </figure>
  );
}

function tall(value: number, most: number): number {
  return Math.max(2, (value / most) * HEIGHT);
}

export interface LinesProps {
  title: string;
  summary: string;
  values: { id: string; name: string; value: number }[];
  words: (value: number) => string;
}

export function Lines({ title, summary, values, words }: LinesProps) {
  const most = Math.max(1, ...values.map(({ value }) => value));
  return (
    <figure className={styles.chart}>
      <figcaption>
        <strong>{title}</strong>
        <span>{summary}</span>
      </figcaption>
      <ul className={styles.lines}>
        {values.map(({ id, name, value }) => (
          <li key={id}>
            <code>{name}</code>
            <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden>
              <rect y="0" height="8" width={Math.max(1, (value / most) * 100)} />
            </svg>
            <span>{words(value)}</span>
          </li>
        ))}
      </ul>
    </figure>
  );
}
