import type { Review } from "../../api/generated/projection";
import { Card, Icon, StatusBadge, Time } from "../../ui";
import styles from "./Evidence.module.css";
import { Verdict } from "./Verdict";

export function Reviews({ reviews }: { reviews: Review[] }) {
  if (reviews.length === 0) return null;
  return (
    <section className={styles.section} aria-label="Reviews">
      <h2 className={styles.heading}>Reviews</h2>
      {reviews.map((review) => (
        <Card key={review.reviewId} className={styles.card} aria-label={`Review ${review.reviewId}`}>
          <header className={styles.head}>
            <Icon name="team" />
            <h3 className={styles.title} dir="auto">
              {`Review by ${review.reviewer ?? "unknown"}`}
            </h3>
            <StatusBadge status={review.status} />
            <Verdict verdict={review.verdict ?? null} />
          </header>
          {review.summary != null && <p dir="auto">{review.summary}</p>}
          <p className={styles.soft}>
            Requested <Time at={review.requestedAt} />
            {review.completedAt != null && (
              <>
                , completed <Time at={review.completedAt} />
              </>
            )}
            {review.evidenceIds != null && review.evidenceIds.length > 0 && `, about ${review.evidenceIds.join(", ")}`}
          </p>
        </Card>
      ))}
    </section>
  );
}
