import { usePackProgress } from "../../state/queries";
import styles from "./Evidence.module.css";
import { shareOf } from "./pack-progress";

/** A pack on its way; where the Edge does not say how far it is, the button's spinner is all there is. */
export function Making({ threadId }: { threadId: string }) {
  const share = shareOf(usePackProgress(threadId).data);
  return (
    <div className={styles.making}>
      <span className={styles.soft} role="status">
        Verifying the journal's hash chain, then writing and hashing every fact.
      </span>
      {share && (
        <>
          <progress className={styles.progress} aria-label="Facts in the pack" aria-valuetext={share.words} value={share.facts} max={share.total} />
          <span className={styles.soft}>{share.words}</span>
        </>
      )}
    </div>
  );
}
