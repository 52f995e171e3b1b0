import { useMutation } from "@tanstack/react-query";
import { useState } from "react";

import { call, newKey } from "../../api/client";
import type { EvidenceRow } from "../../api/generated/rest";
import { wordsOf } from "../../api/refusal";
import { DownloadButton } from "../../content/DownloadButton";
import { queries, usePacks } from "../../state/queries";
import { Button, Card, Icon, Spinner, StatusBadge, Time } from "../../ui";
import { Check } from "./Check";
import { Making } from "./Making";
import styles from "./Evidence.module.css";

/** Packs of the thread: made here, checked by the Edge on request, and proven by anybody who has the file. */
export function Packs({ threadId, known }: { threadId: string; known: number }) {
  const packs = usePacks(threadId, known);
  return (
    <section className={styles.section} aria-label="Evidence packs">
      <h2 className={styles.heading}>Evidence packs</h2>
      <p className={styles.soft}>
        An evidence pack is a single file with all facts of this thread, a hash of every block, and this Edge's signature. Anyone can verify it offline with{" "}
        <code>factwire evidence verify</code>.
      </p>
      <Export threadId={threadId} />
      {packs.error && <p role="alert">{wordsOf(packs.error)}</p>}
      {packs.data?.map((pack) => <Pack key={pack.evidenceId} pack={pack} />)}
    </section>
  );
}

function Export({ threadId }: { threadId: string }) {
  const [withBlobs, setWithBlobs] = useState(false);
  const making = useMutation({
    mutationFn: (key: string) => call("exportEvidence", { body: { threadId, withBlobs }, idempotencyKey: key }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["packs", threadId] }),
  });
  return (
    <div className={styles.actions}>
      <Button kind="primary" icon="evidence" busy={making.isPending} onClick={() => making.mutate(newKey())}>
        {making.isPending ? "Creating pack" : "Create pack"}
      </Button>
      <label className={styles.tick}>
        <input type="checkbox" checked={withBlobs} disabled={making.isPending} onChange={(event) => setWithBlobs(event.target.checked)} />
        include content behind refs
      </label>
      {making.isPending && <Making threadId={threadId} />}
      {making.error && <p role="alert">{wordsOf(making.error)}</p>}
    </div>
  );
}

function Pack({ pack }: { pack: EvidenceRow }) {
  const check = useMutation({ mutationFn: () => call("verifyEvidence", { path: { evidenceId: pack.evidenceId } }) });
  return (
    <Card className={styles.card} aria-label={`Pack ${pack.evidenceId}`}>
      <header className={styles.head}>
        <Icon name="evidence" />
        <h3 className={styles.title}>
          Pack created <Time at={pack.createdAt} />
        </h3>
        <StatusBadge status={pack.status} />
        <Button size="small" icon="check" busy={check.isPending} onClick={() => check.mutate()}>
          Verify
        </Button>
        <DownloadButton what={{ packId: pack.evidenceId }} name={`${pack.evidenceId}.factpack.zip`} />
      </header>
      {check.isPending && <Spinner label="Verifying every byte" />}
      {check.error && <p role="alert">{wordsOf(check.error)}</p>}
      {check.data && <Check check={check.data} />}
    </Card>
  );
}
