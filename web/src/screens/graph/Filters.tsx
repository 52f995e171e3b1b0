import type { Graph } from "../../api/generated/projection";
import { classes, Icon } from "../../ui";
import styles from "./Graph.module.css";
import { kindOf, LINKS } from "./kinds";

export interface FiltersProps {
  graph: Graph;
  hiddenTypes: ReadonlySet<string>;
  onHide: (nodeType: string) => void;
}

/** The legend, each entry of which shows or hides its nodes. */
export function Filters({ graph, hiddenTypes, onHide }: FiltersProps) {
  const counts = new Map<string, number>();
  for (const { nodeType } of Object.values(graph.nodes)) counts.set(nodeType, (counts.get(nodeType) ?? 0) + 1);
  return (
    <div className={styles.filters} role="group" aria-label="Show nodes of type">
      {[...counts].map(([nodeType, count]) => (
        <button key={nodeType} type="button" className={styles.filter} aria-pressed={!hiddenTypes.has(nodeType)} onClick={() => onHide(nodeType)}>
          <Icon name={kindOf(nodeType).icon} size={14} />
          {kindOf(nodeType).many}
          <span className={styles.count}>{count}</span>
        </button>
      ))}
    </div>
  );
}

/** Kinds of lines that occur, as they are drawn. */
export function LineLegend({ graph }: { graph: Graph }) {
  const kinds = [...new Set(Object.values(graph.edges).map(({ kind }) => kind))].filter((kind) => Object.hasOwn(LINKS, kind));
  if (kinds.length === 0) return null;
  return (
    <ul className={styles.legend} aria-label="Lines">
      {kinds.map((kind) => (
        <li key={kind}>
          <span className={classes(styles.sample, styles[kind])} aria-hidden />
          {LINKS[kind]?.words}
        </li>
      ))}
    </ul>
  );
}
