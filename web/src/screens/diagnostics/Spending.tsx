import type { Context, Limit, Metrics } from "../../api/generated/projection";
import { StatusBadge, Time } from "../../ui";
import styles from "./Diagnostics.module.css";
import { Figure } from "./Wholeness";

/** Cost, tokens and limits, as facts state them; what none states is unknown and not zero. */
export function Spending({ metrics: { usage, limits, routing, values }, context }: { metrics: Metrics; context: Context }) {
  const known = usage.records > 0;
  const currency = usage.currency ?? "USD";
  return (
    <section className={styles.section} aria-label="Cost and limits">
      <h2>Cost and limits</h2>
      <dl className={styles.figures}>
        <Figure name="Tokens in" value={known ? usage.inputTokens : "unknown"} />
        <Figure name="Tokens out" value={known ? usage.outputTokens : "unknown"} />
        <Figure name="Total tokens" value={known ? usage.totalTokens : "unknown"} />
        <Figure name="Cost recorded" value={known ? `${usage.totalCostUsd.toFixed(4)} ${currency}` : "unknown"} />
        <Figure name="Cost estimated" value={usage.estimatedCostUsd == null ? "unknown" : `${usage.estimatedCostUsd.toFixed(4)} ${currency}`} />
        <Figure name="Context used" value={context.usagePercent == null ? "unknown" : `${context.usagePercent} %`} />
        {Object.entries(values).map(([name, value]) => (
          <Figure key={name} name={name} value={String(value)} />
        ))}
      </dl>
      <ul className={styles.rows}>
        {Object.values(limits).map((limit) => (
          <LimitRow key={limit.name} limit={limit} />
        ))}
      </ul>
      {Object.keys(limits).length === 0 && <p className={styles.soft}>No limits recorded.</p>}
      {routing.length > 0 && <p className={styles.soft}>Models: {routing.map(({ model, decision }) => model ?? decision).join(", ")}</p>}
    </section>
  );
}

function LimitRow({ limit }: { limit: Limit }) {
  const used = limit.used == null || limit.limit == null ? null : `${limit.used.toLocaleString()} of ${limit.limit.toLocaleString()}`;
  const share = limit.utilization == null ? null : `utilization ${limit.utilization}`;
  return (
    <li className={styles.line}>
      <code>{limit.name}</code>
      <StatusBadge status={limit.status} />
      <span>{used ?? share ?? (limit.remaining == null ? "usage unknown" : `${limit.remaining.toLocaleString()} left`)}</span>
      {limit.hits != null && <span className={styles.soft}>hit {limit.hits} times</span>}
      {limit.resetsAt != null && (
        <span className={styles.soft}>
          resets <Time at={limit.resetsAt} />
        </span>
      )}
      {limit.message != null && <span dir="auto">{limit.message}</span>}
    </li>
  );
}
