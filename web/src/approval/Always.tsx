/**
 * Allowing for longer. A rule holds for whatever it matches from then on, so nobody grants one that
 * was not on screen: the Edge is asked for it, and without its answer nothing is offered.
 */

import { useState } from "react";

import type { StandingRule } from "../api/generated/rest";
import type { Verdict } from "../state/decisions";
import { useStandingRule } from "../state/queries";
import { Button, Verbatim } from "../ui";
import styles from "./ApprovalCard.module.css";
import type { ApprovalRequest } from "./request";

export interface ShownRule {
  rule: string;
  workspace: string | null;
  folder: string | null;
  editable: string[];
  matches: number;
  searched: number;
}

const DURATIONS: [label: string, seconds: number | null][] = [
  ["until it is revoked", null],
  ["for an hour", 3_600],
  ["for a day", 86_400],
  ["for 30 days", 2_592_000],
];

/** The rule of a request as it is shown; undefined while nobody knows, null where there is none. */
export function useRule(request: ApprovalRequest): ShownRule | null | undefined {
  const { data, isPending } = useStandingRule(request.requestId, request.argsHash, request.isCommand);
  if (!request.isCommand) return null;
  return isPending ? undefined : ruleFor(data, request.argsHash);
}

/** A rule for anything but what is on screen is none. */
export function ruleFor(told: StandingRule | undefined, argsHash: string | null): ShownRule | null {
  if (told?.rule == null || argsHash === null || told.argsHash !== argsHash) return null;
  const { rule, workspace = null, folder = null, editable = [], matches = [], searched = 0 } = told;
  return { rule, workspace, folder, editable, matches: matches.length, searched };
}

/** Its room is kept while the Edge is asked, so that nothing moves under a pointer. */
export function AlwaysButton({ rule, onOpen }: { rule: ShownRule | null | undefined; onOpen: () => void }) {
  if (rule === null) return null;
  return (
    <Button kind="ghost" className={styles.always} disabled={rule === undefined} onClick={onOpen}>
      Always allow
      <code className={styles.rule}>{rule === undefined ? "…" : <Verbatim text={rule.rule} line />}</code>
    </Button>
  );
}

export function Granting({ rule, say, onBack }: { rule: ShownRule; say: (verdict: Verdict) => void; onBack: () => void }) {
  const [seconds, setSeconds] = useState<number | null>(null);
  const grant = (always: Verdict["always"]) => say({ decision: "allow", always, ...(seconds !== null && { expiresIn: seconds }) });
  return (
    <div className={styles.granting} role="group" aria-label="Always allow" tabIndex={-1} ref={focus} onKeyDown={(event) => event.key === "Escape" && onBack()}>
      <p>From now on, anything that matches this rule runs without asking:</p>
      <code className={styles.exact} role="group" aria-label="Rule" dir="auto">
        <Verbatim text={rule.rule} />
      </code>
      {rule.folder !== null && (
        <p>
          It holds only in the folder <Verbatim text={rule.folder} />
        </p>
      )}
      {rule.editable.map((path) => (
        <p key={path} className={styles.warning} role="note">
          The agent may edit <Verbatim text={path} />, and the rule still holds.
        </p>
      ))}
      <p className={styles.news}>
        It would have allowed {rule.matches} of the last {rule.searched} requests.
      </p>
      {rule.workspace !== null && (
        <p className={styles.news}>
          This workspace is <Verbatim text={rule.workspace} />
        </p>
      )}
      <label className={styles.duration}>
        It holds
        <select value={seconds ?? ""} onChange={(event) => setSeconds(Number(event.target.value) || null)}>
          {DURATIONS.map(([label, value]) => (
            <option key={label} value={value ?? ""}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <div className={styles.choices}>
        <Button onClick={() => grant("thread")}>Always in this thread</Button>
        <Button onClick={() => grant("workspace")}>Always in this workspace</Button>
        <Button kind="ghost" onClick={onBack}>
          Back
        </Button>
      </div>
    </div>
  );
}

/** On the group and on none of its buttons: a key that is still held down must not grant anything. */
function focus(element: HTMLElement | null): void {
  element?.focus();
}
