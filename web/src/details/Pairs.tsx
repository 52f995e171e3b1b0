import { Fragment, type ReactNode } from "react";

import styles from "./Details.module.css";

/** Names and values; one that no fact tells is left out. */
export function Pairs({ rows }: { rows: [name: string, value: ReactNode][] }) {
  const told = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return (
    <dl className={styles.pairs}>
      {told.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd dir="auto">{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}

/** Names of things that are kept elsewhere. */
export function Refs({ refs }: { refs: readonly (string | null | undefined)[] }) {
  const named = refs.filter((ref) => ref != null);
  if (named.length === 0) return null;
  return (
    <ul className={styles.refs}>
      {named.map((ref) => (
        <li key={ref}>
          <code>{ref}</code>
        </li>
      ))}
    </ul>
  );
}
