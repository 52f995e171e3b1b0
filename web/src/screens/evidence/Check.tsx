import type { ReactNode } from "react";

import type { JournalMatch, PackCheck, PackReport } from "../../api/generated/rest";
import { Badge, Ref, type IconName, type Tone } from "../../ui";
import styles from "./Evidence.module.css";

interface Look {
  tone: Tone;
  icon: IconName;
  words: string;
}

const look = (tone: Tone, icon: IconName, words: string): Look => ({ tone, icon, words });

const SIGNERS: Record<PackReport["signer"]["state"], Look> = {
  trusted: look("good", "check", "signed by a key that is known"),
  unknown: look("warn", "unknown", "signed by a key that nobody here knows"),
  unsigned: look("warn", "skip", "not signed: anybody could have made it"),
  invalid: look("bad", "alert", "the signature does not fit"),
};

const ARCHIVES: Record<PackReport["container"], Look> = {
  as_written: look("good", "check", "as it was written"),
  repacked: look("calm", "retry", "packed anew by another tool"),
  changed: look("warn", "alert", "changed outside of its contents"),
};

const JOURNALS: Record<JournalMatch["state"], Look> = {
  matches: look("good", "check", "the journal has the same facts and the same chain"),
  compacted: look("good", "check", "all that the journal still has is the same"),
  copy: look("calm", "copy", "the same facts, in another journal"),
  differs: look("bad", "alert", "the journal has something else"),
  not_from_journal: look("calm", "unknown", "it was not made from a journal"),
};

/** What was found, said apart: contents, what follows from them, signer, archive, journal. */
export function Check({ check: { report, journal } }: { check: PackCheck }) {
  const contents = report.ok ? look("good", "check", `every byte of ${counted(report.facts, "fact")} is as it was written`) : look("bad", "alert", "something was changed");
  return (
    <div className={styles.check} role="status" aria-label="Verification">
      <dl className={styles.facts}>
        <Row name="Contents" look={contents} />
        <Row name="Derived" look={report.derivedAgain ? look("good", "check", "follows from the facts") : look("calm", "unknown", "not derived again: another version made it")} />
        <Row name="Signature" look={signerLook(report)}>
          {report.signer.keyId != null && <Ref value={report.signer.keyId} name="fingerprint of the key" />}
        </Row>
        <Row name="Archive" look={ARCHIVES[report.container]} />
        <Row name="Journal" look={journal == null ? look("calm", "unknown", "not compared") : JOURNALS[journal.state]}>
          {journal != null && <span className={styles.soft}>{`${counted(journal.facts, "fact")} and ${counted(journal.anchors, "point")} of the chain compared`}</span>}
        </Row>
        <dt>Pack</dt>
        <dd>
          <Ref value={`sha256:${report.digest}`} name="hash of the pack" />
        </dd>
      </dl>
      <Findings report={report} journal={journal ?? null} />
    </div>
  );
}

function counted(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}

function signerLook({ signer }: PackReport): Look {
  const known = SIGNERS[signer.state];
  return signer.name == null ? known : { ...known, words: `signed by ${signer.name}` };
}

function Row({ name, look: { tone, icon, words }, children }: { name: string; look: Look; children?: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd className={styles.found}>
        <Badge tone={tone} icon={icon}>
          {words}
        </Badge>
        {children}
      </dd>
    </>
  );
}

function Findings({ report, journal }: { report: PackReport; journal: JournalMatch | null }) {
  const found = [...report.findings, ...(journal?.differences ?? [])];
  if (found.length === 0) return null;
  return (
    <ul className={styles.findings}>
      {found.map(({ code, message }, at) => (
        <li key={at}>
          <code>{code}</code> {message}
        </li>
      ))}
    </ul>
  );
}
