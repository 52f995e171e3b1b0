import type { Trial } from "../../api/generated/projection";
import { StatusBadge } from "../../ui";
import styles from "./Evidence.module.css";

export function Trials({ trials }: { trials: Trial[] }) {
  if (trials.length === 0) return null;
  return (
    <section className={styles.section} aria-label="Trials">
      <h2 className={styles.heading}>Trials</h2>
      <div className={styles.table} tabIndex={0} role="region" aria-label="Table of trials">
        <table>
          <thead>
            <tr>
              <th>Task</th>
              <th>Dataset</th>
              <th>Status</th>
              <th>Reward</th>
            </tr>
          </thead>
          <tbody>
            {trials.map((trial) => (
              <tr key={trial.trialId}>
                <td dir="auto">{trial.task ?? trial.trialId}</td>
                <td dir="auto">{trial.dataset ?? "unknown"}</td>
                <td>
                  <StatusBadge status={trial.status} />
                </td>
                <td>{trial.reward ?? "unknown"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
