/**
 * What a person is asked to fill in, read from the schema or the options of a request. A field that
 * the schema describes in no way known here is filled in as JSON: nothing is left out, and nothing
 * is guessed.
 */

export type FieldKind = "text" | "secret" | "choice" | "choices" | "boolean" | "number" | "json";

export interface Option {
  value: unknown;
  label: string;
  note: string | null;
}

export interface Field {
  name: string;
  title: string;
  note: string | null;
  kind: FieldKind;
  required: boolean;
  options: Option[];
  /** Whether an answer of one's own is as good as one of the options. */
  open: boolean;
  whole: boolean;
  least: number | null;
  most: number | null;
  initial: unknown;
}

export interface Form {
  fields: Field[];
  /** The answer is the value of the only field, and no object of fields. */
  bare: boolean;
}

type Members = Record<string, unknown>;

/** Kinds of requests that want an answer and not only a yes. */
const WANT_WORDS = new Set(["structured_input", "clarification", "credential_request"]);
const BARE = "answer";

export function formOf(kind: string, schema: Members | null, options: unknown[] | null): Form | null {
  const properties = membersOf(schema?.properties);
  if (properties !== null && Object.keys(properties).length > 0) return { fields: fieldsOf(properties, schema?.required), bare: false };
  if (!WANT_WORDS.has(kind)) return null;
  const rows = (options ?? []).filter((row) => row !== null && row !== undefined);
  if (rows.length > 0 && rows.every(isQuestion)) return { fields: rows.map((row) => questionOf(row as Members)), bare: false };
  const secret = kind === "credential_request";
  const single = { ...BLANK, name: BARE, title: "Your answer", options: optionsOf(rows), kind: secret ? "secret" : "text" } as const;
  return { fields: [rows.length > 0 ? { ...single, kind: "choice", required: true } : single], bare: true };
}

const BLANK: Omit<Field, "name" | "title"> = {
  note: null,
  kind: "text",
  required: false,
  options: [],
  open: false,
  whole: false,
  least: null,
  most: null,
  initial: undefined,
};

function fieldsOf(properties: Members, required: unknown): Field[] {
  const needed = new Set(Array.isArray(required) ? required : []);
  return Object.entries(properties).map(([name, value]) => ({ ...fieldOf(name, membersOf(value) ?? {}), required: needed.has(name) }));
}

function fieldOf(name: string, schema: Members): Field {
  const field: Field = { ...BLANK, name, title: textOf(schema.title) ?? name, note: textOf(schema.description), initial: schema.default };
  const fixed = fixedOptions(schema);
  if (fixed !== null) return { ...field, kind: "choice", options: fixed };
  const shape = SHAPES[typeOf(schema)];
  return shape === undefined ? { ...field, kind: "json" } : { ...field, ...shape(schema) };
}

const SHAPES: Record<string, (schema: Members) => Partial<Field>> = {
  string: (schema) => ({ kind: schema.format === "password" ? "secret" : "text", ...suggested(schema) }),
  boolean: () => ({ kind: "boolean" }),
  number: (schema) => ({ kind: "number", ...boundsOf(schema) }),
  integer: (schema) => ({ kind: "number", whole: true, ...boundsOf(schema) }),
  array: (schema) => listOf(membersOf(schema.items) ?? {}),
};

/** Of lists, those of which one chooses several are known. */
function listOf(items: Members): Partial<Field> {
  const fixed = fixedOptions(items);
  if (fixed !== null) return { kind: "choices", options: fixed };
  const examples = suggested(items);
  return examples.options === undefined ? { kind: "json" } : { kind: "choices", options: examples.options, open: true };
}

/** Examples of a text are options beside an answer of one's own. */
function suggested(schema: Members): Partial<Field> {
  const examples = Array.isArray(schema.examples) ? schema.examples.filter((one) => typeof one === "string") : [];
  return examples.length === 0 ? {} : { kind: "choice", options: optionsOf(examples), open: true };
}

function fixedOptions(schema: Members): Option[] | null {
  const titled = Array.isArray(schema.oneOf) ? schema.oneOf : Array.isArray(schema.anyOf) ? schema.anyOf : null;
  const rows = titled?.map((row) => membersOf(row) ?? {});
  if (rows !== undefined && rows.length > 0 && rows.every((row) => "const" in row)) {
    return rows.map((row) => ({ value: row.const, label: textOf(row.title) ?? String(row.const), note: textOf(row.description) }));
  }
  if (!Array.isArray(schema.enum) || schema.enum.length === 0) return null;
  const names = Array.isArray(schema.enumNames) ? schema.enumNames : [];
  return schema.enum.map((value, at) => ({ value, label: textOf(names[at]) ?? String(value), note: null }));
}

/** Options as agents list them: texts, or objects that have a label. */
function optionsOf(rows: unknown[]): Option[] {
  return rows.map((row) => {
    const { id, value, optionId, label, name, title, description } = membersOf(row) ?? {};
    const words = textOf(label) ?? textOf(name) ?? textOf(title);
    if (words === null) return { value: row, label: typeof row === "string" ? row : JSON.stringify(row), note: null };
    return { value: id ?? optionId ?? value ?? words, label: words, note: textOf(description) };
  });
}

function isQuestion(row: unknown): boolean {
  const { id, question } = membersOf(row) ?? {};
  return typeof id === "string" && typeof question === "string";
}

function questionOf(row: Members): Field {
  const options = optionsOf(Array.isArray(row.options) ? row.options : []).map((option) => ({ ...option, value: option.label }));
  const kind = row.isSecret === true ? "secret" : options.length > 0 ? "choice" : "text";
  const header = textOf(row.header);
  const question = String(row.question);
  return { ...BLANK, name: String(row.id), title: header ?? question, note: header === null ? null : question, kind, options, open: true, required: true };
}

function boundsOf(schema: Members): Partial<Field> {
  return { least: numberOf(schema.minimum), most: numberOf(schema.maximum) };
}

function typeOf(schema: Members): string {
  const types = Array.isArray(schema.type) ? schema.type.filter((type) => type !== "null") : [schema.type];
  return types.length === 1 && typeof types[0] === "string" ? types[0] : "";
}

function membersOf(value: unknown): Members | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Members) : null;
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}
