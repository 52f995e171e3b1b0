import { useId, useState, type ReactNode } from "react";

import { Button } from "../../ui";
import styles from "./Team.module.css";

export interface SectionProps {
  title: string;
  count?: number;
  /** Said where there is nothing: what would stand here, and what brings it. */
  empty: string;
  children?: ReactNode;
}

export function Section({ title, count = 0, empty, children }: SectionProps) {
  const heading = useId();
  return (
    <section className={styles.section} aria-labelledby={heading}>
      <h2 id={heading} className={styles.heading}>
        {title}
        {count > 0 && <span className={styles.count}>{count}</span>}
      </h2>
      {count === 0 ? <p className={styles.empty}>{empty}</p> : children}
    </section>
  );
}

const SHOWN_AT_ONCE = 50;

/** A list of which the first come at once, and the rest when asked for. */
export function Several<One>({ items, keyOf, render, className }: { items: One[]; keyOf: (one: One) => string; render: (one: One) => ReactNode; className?: string | undefined }) {
  const [most, setMost] = useState(SHOWN_AT_ONCE);
  const rest = items.length - most;
  return (
    <>
      <ul className={className}>
        {items.slice(0, most).map((one) => (
          <li key={keyOf(one)}>{render(one)}</li>
        ))}
      </ul>
      {rest > 0 && (
        <div>
          <Button size="small" kind="ghost" onClick={() => setMost(most + SHOWN_AT_ONCE)}>
            {`Show ${Math.min(rest, SHOWN_AT_ONCE)} more of ${rest}`}
          </Button>
        </div>
      )}
    </>
  );
}
