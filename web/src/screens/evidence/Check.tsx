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
  trusted: look("good", "check", "signed with a known key"),
  unknown: look("warn", "unknown", "signed with an unknown key"),
  unsigned: look("warn", "skip", "not signed; the author cannot be verified"),
  invalid: look("bad", "alert", "invalid signature"),
};

const ARCHIVES: Record<PackReport["container"], Look> = {
  as_written: look("good", "check", "unchanged"),
  repacked: look("calm", "retry", "repacked by another tool"),
  changed: look("warn", "alert", "changed, but not its contents"),
};

const JOURNALS: Record<JournalMatch["state"], Look> = {
  matches: look("good", "check", "same facts and hash chain as the journal"),
  compacted: look("good", "check", "matches everything the journal still holds"),
  copy: look("calm", "copy", "the same facts, in another journal"),
  differs: look("bad", "alert", "does not match the journal"),
  not_from_journal: look("calm", "unknown", "not made from a journal"),
};

/** What was found, said apart: contents, what follows from them, signer, archive, journal. */
export function Check({ check: { report, journal } }: { check: PackCheck }) {
  const contents = report.ok ? look("good", "check", `${counted(report.facts, "fact")}, every byte unchanged`) : look("bad", "alert", "contents were changed");
  return (
    <div className={styles.check} role="status" aria-label="Verification">
      <dl className={styles.facts}>
        <Row name="Contents" look={contents} />
        <Row name="Derived" look={report.derivedAgain ? look("good", "check", "matches the facts") : look("calm", "unknown", "not checked: made by another version")} />
        <Row name="Signature" look={signerLook(report)}>
          {report.signer.keyId != null && <Ref value={report.signer.keyId} name="key fingerprint" />}
        </Row>
        <Row name="Archive" look={ARCHIVES[report.container]} />
        <Row name="Journal" look={journal == null ? look("calm", "unknown", "not compared") : JOURNALS[journal.state]}>
          {journal != null && <span className={styles.soft}>{`${counted(journal.facts, "fact")} and ${counted(journal.anchors, "chain point")} compared`}</span>}
        </Row>
        <dt>Pack</dt>
        <dd>
          <Ref value={`sha256:${report.digest}`} name="pack hash" />
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
