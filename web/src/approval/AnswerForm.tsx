import { useId, useState } from "react";

import { Button } from "../ui";
import { answerOf, entryOf, problemOf, type Entry } from "./answer";
import styles from "./AnswerForm.module.css";
import { useEntries } from "./entries";
import type { Field, Form } from "./form";

export interface AnswerFormProps {
  requestId: string;
  form: Form;
  onAnswer: (response: unknown) => void;
  onDecline: () => void;
}

/** What the agent asks to be told, field by field. Nothing is sent while something is wrong with it. */
export function AnswerForm({ requestId, form, onAnswer, onDecline }: AnswerFormProps) {
  const [entries, write] = useEntries(requestId);
  const [tried, setTried] = useState(false);
  const rows = form.fields.map((field) => {
    const entry = entryOf(field, entries);
    return { field, entry, problem: problemOf(field, entry) };
  });
  const submit = () => {
    setTried(true);
    if (rows.every(({ problem }) => problem === null)) onAnswer(answerOf(form, entries));
  };
  return (
    <form
      className={styles.form}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {rows.map(({ field, entry, problem }) => (
        <FieldView key={field.name} field={field} entry={entry} problem={tried ? problem : null} onChange={(next) => write(field.name, next)} />
      ))}
      <div className={styles.buttons}>
        <Button type="submit" kind="primary" icon="check">
          Answer
        </Button>
        <Button kind="danger" icon="close" onClick={onDecline}>
          Deny…
        </Button>
      </div>
    </form>
  );
}

interface FieldViewProps {
  field: Field;
  entry: Entry;
  problem: string | null;
  onChange: (entry: Entry) => void;
}

function FieldView({ field, entry, problem, onChange }: FieldViewProps) {
  const id = useId();
  const group = field.kind === "choice" || field.kind === "choices";
  const described = `${field.note === null ? "" : `${id}-note`} ${problem === null ? "" : `${id}-problem`}`.trim();
  return (
    <div className={styles.field} role={group ? "group" : undefined} aria-labelledby={group ? `${id}-title` : undefined} aria-describedby={group && described !== "" ? described : undefined}>
      {field.kind !== "boolean" && <FieldTitle id={id} field={field} group={group} />}
      {field.note !== null && (
        <p id={`${id}-note`} className={styles.note} dir="auto">
          {field.note}
        </p>
      )}
      {group ? (
        <Options id={id} field={field} entry={entry} onChange={onChange} />
      ) : (
        <Input id={id} field={field} entry={entry} problem={problem} described={described} onChange={onChange} />
      )}
      {field.kind === "secret" && <p className={styles.note}>Your answer is stored in the journal, like every answer.</p>}
      {problem !== null && (
        <p id={`${id}-problem`} className={styles.problem} role="alert">
          {problem}
        </p>
      )}
    </div>
  );
}

function FieldTitle({ id, field, group }: { id: string; field: Field; group: boolean }) {
  const words = (
    <>
      {field.title}
      {field.required && <span className={styles.needed}> (required)</span>}
    </>
  );
  if (group) {
    return (
      <span id={`${id}-title`} className={styles.title} dir="auto">
        {words}
      </span>
    );
  }
  return (
    <label htmlFor={id} className={styles.title} dir="auto">
      {words}
    </label>
  );
}

function Options({ id, field, entry, onChange }: Omit<FieldViewProps, "problem"> & { id: string }) {
  const many = field.kind === "choices";
  const toggle = (at: number, on: boolean) => {
    const others = many ? entry.chosen.filter((one) => one !== at) : [];
    onChange({ ...entry, text: many ? entry.text : "", chosen: on ? [...others, at].sort((a, b) => a - b) : others });
  };
  const own = field.open && entry.text !== "";
  return (
    <div className={styles.options}>
      {field.options.map((option, at) => (
        <label key={at} className={styles.option}>
          <input type={many ? "checkbox" : "radio"} name={id} checked={entry.chosen.includes(at) && (many || !own)} onChange={(event) => toggle(at, event.target.checked)} />
          <span dir="auto">
            {option.label}
            {option.note !== null && <span className={styles.note}>{option.note}</span>}
          </span>
        </label>
      ))}
      {field.open && (
        <input className={styles.input} type="text" value={entry.text} placeholder="Other" aria-label={`${field.title}: other`} dir="auto" onChange={(event) => onChange({ ...entry, text: event.target.value })} />
      )}
    </div>
  );
}

const INPUT_TYPES: Partial<Record<Field["kind"], string>> = { number: "number", secret: "password" };

function Input({ id, field, entry, problem, described, onChange }: FieldViewProps & { id: string; described: string }) {
  const about = { id, "aria-describedby": described === "" ? undefined : described, "aria-invalid": problem !== null, "aria-required": field.required };
  if (field.kind === "boolean") {
    return (
      <label className={styles.option}>
        <input {...about} type="checkbox" checked={entry.ticked} onChange={(event) => onChange({ ...entry, ticked: event.target.checked })} />
        <span dir="auto">{field.title}</span>
      </label>
    );
  }
  if (field.kind === "json") {
    return <textarea {...about} className={styles.json} rows={3} spellCheck={false} placeholder="JSON" value={entry.text} onChange={(event) => onChange({ ...entry, text: event.target.value })} />;
  }
  return (
    <input {...about} className={styles.input} type={INPUT_TYPES[field.kind] ?? "text"} step={field.whole ? 1 : "any"} autoComplete="off" dir="auto" value={entry.text} onChange={(event) => onChange({ ...entry, text: event.target.value })} />
  );
}
