import { useState } from "react";

import { CODE_MEANINGS } from "../../api/generated/codes";
import type { Diagnostic, Diagnostics, ProjectionState } from "../../api/generated/projection";
import { useMachine } from "../../state/moments";
import { Badge, Button, Time, type IconName, type Tone } from "../../ui";
import styles from "./Diagnostics.module.css";

const SEVERITIES: Record<string, { tone: Tone; icon: IconName; words: string }> = {
  error: { tone: "bad", icon: "alert", words: "Error" },
  warning: { tone: "warn", icon: "alert", words: "Warning" },
  info: { tone: "calm", icon: "info", words: "Note" },
};

/** Remarks that are shown before somebody asks for all of them. */
const SHOWN_FIRST = 5;

export interface RemarksProps {
  diagnostics: Diagnostics;
  tools: ProjectionState["tools"];
}

/** Remarks, newest first, each with its stable code and what that means. */
export function Remarks({ diagnostics: { items, total, errors, warnings }, tools }: RemarksProps) {
  const [all, setAll] = useState(false);
  const kept = Object.values(items).reverse();
  const shown = all ? kept : kept.slice(0, SHOWN_FIRST);
  return (
    <section className={styles.section} aria-label="Issues">
      <h2>
        Issues{" "}
        <span className={styles.soft}>
          {errors} errors, {warnings} warnings
        </span>
      </h2>
      {total === 0 && <p className={styles.soft}>No issues.</p>}
      <ul className={styles.remarks}>
        {shown.map((remark) => (
          <Remark key={remark.diagnosticId} remark={remark} ofTool={Object.hasOwn(tools, remark.subject ?? "")} />
        ))}
      </ul>
      {shown.length < kept.length && (
        <div>
          <Button size="small" onClick={() => setAll(true)}>
            Show all {kept.length}
          </Button>
        </div>
      )}
      {kept.length < total && <p className={styles.soft}>{total} in total; the oldest are only in the raw facts.</p>}
    </section>
  );
}

const UNKNOWN_SEVERITY = { tone: "calm", icon: "unknown" } as const;

function Remark({ remark, ofTool }: { remark: Diagnostic; ofTool: boolean }) {
  const known = Object.hasOwn(SEVERITIES, remark.severity) ? SEVERITIES[remark.severity] : undefined;
  const { tone, icon, words } = known ?? { ...UNKNOWN_SEVERITY, words: remark.severity };
  return (
    <li className={styles.remark}>
      <div className={styles.line}>
        <Badge tone={tone} icon={icon}>
          {words}
        </Badge>
        <code>{remark.code}</code>
        <span className={styles.space} />
        <span className={styles.soft}>
          <Time at={remark.createdAt} />
        </span>
        <ToFact eventId={remark.eventId} sequence={remark.sequence ?? null} />
      </div>
      <p dir="auto">{remark.message}</p>
      <p className={styles.soft}>{about(remark, ofTool)}</p>
      {remark.recoveryHint != null && <p dir="auto">Suggestion: {remark.recoveryHint}</p>}
    </li>
  );
}

function about({ code, failureCategory, subject }: Diagnostic, ofTool: boolean): string {
  const meaning = meaningOf(code, ofTool);
  const parts = [
    meaning === null ? "This code is specific to the source." : `Meaning: ${meaning}.`,
    failureCategory != null && failureCategory !== code ? `Category: ${failureCategory}.` : "",
    subject != null ? `Subject: ${subject}.` : "",
  ];
  return parts.filter(Boolean).join(" ");
}

function ToFact({ eventId, sequence }: { eventId: string; sequence: number | null }) {
  const { facts, goTo } = useMachine();
  const index = facts.log.indexOf(eventId);
  if (index === undefined) return sequence === null ? null : <span className={styles.soft}>fact {sequence}</span>;
  return (
    <Button size="small" kind="ghost" icon="clock" onClick={() => goTo(index)}>
      Go to fact {sequence ?? ""}
    </Button>
  );
}

/** The same word can mean one thing of a tool and another of a turn. */
function meaningOf(code: string, ofTool: boolean): string | null {
  const tables: Record<string, string>[] = ofTool ? [CODE_MEANINGS.tool] : [CODE_MEANINGS.remark, CODE_MEANINGS.turn];
  return tables.find((table) => Object.hasOwn(table, code))?.[code] ?? null;
}
