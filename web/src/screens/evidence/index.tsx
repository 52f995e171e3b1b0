import type { ScreenProps } from "../../app/screens";
import { EmptyState } from "../../ui";
import styles from "./Evidence.module.css";
import { Items } from "./Items";
import { Packs } from "./Packs";
import { Reviews } from "./Reviews";
import { Trials } from "./Trials";

/** What vouches for a thread: what was checked and cited, who reviewed it, and packs that others can verify. */
export default function EvidenceScreen({ threadId, state, live }: ScreenProps) {
  const { items, reviews, trials } = state.evidence;
  const [allItems, allReviews, allTrials] = [Object.values(items), Object.values(reviews), Object.values(trials)];
  const none = allItems.length + allReviews.length + allTrials.length === 0;
  return (
    <div className={styles.screen}>
      <div className={styles.page}>
        {live && <Packs threadId={threadId} known={allItems.length} />}
        {none && (
          <EmptyState icon="evidence" title="No evidence yet">
            <p>Checks, citations, reviews and verdicts from this thread appear here. A verdict is shown only if a fact contains one.</p>
          </EmptyState>
        )}
        <Items items={allItems} state={state} />
        <Reviews reviews={allReviews} />
        <Trials trials={allTrials} />
      </div>
    </div>
  );
}
