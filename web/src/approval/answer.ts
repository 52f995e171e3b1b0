/** What was filled in so far, what is wrong with it, and the answer that it comes to. */

import type { Field, Form } from "./form";

/** One field as it stands: words that were typed, options that were chosen by their places, a tick. */
export interface Entry {
  text: string;
  chosen: number[];
  ticked: boolean;
}

export type Entries = Record<string, Entry>;

export function entryOf(field: Field, entries: Entries): Entry {
  return (Object.hasOwn(entries, field.name) ? entries[field.name] : undefined) ?? initialOf(field);
}

function initialOf({ kind, options, initial }: Field): Entry {
  const wanted = Array.isArray(initial) ? initial : [initial];
  const chosen = options.flatMap(({ value }, at) => (wanted.includes(value) ? at : []));
  const hasText = initial !== undefined && initial !== null && options.length === 0 && kind !== "boolean";
  const text = !hasText ? "" : kind === "json" ? JSON.stringify(initial) : String(initial);
  return { text, chosen, ticked: initial === true };
}

/** Why a field cannot be sent as it is; null where it can. */
export function problemOf(field: Field, entry: Entry): string | null {
  const value = READ[field.kind](field, entry);
  if (value === INVALID) return field.kind === "json" ? "This is not valid JSON." : numberWords(field);
  return value === undefined && field.required ? "This field is required." : null;
}

/** The answer of a form in which nothing is wrong; fields that were left empty are left out. */
export function answerOf({ fields, bare }: Form, entries: Entries): unknown {
  const values = fields.map((field) => [field.name, READ[field.kind](field, entryOf(field, entries))] as const);
  return bare ? values[0]?.[1] : Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

const INVALID = Symbol("invalid");

const READ: Record<Field["kind"], (field: Field, entry: Entry) => unknown> = {
  text: (_, { text }) => (text.trim() === "" ? undefined : text),
  secret: (_, { text }) => (text === "" ? undefined : text),
  boolean: (_, { ticked }) => ticked,
  choice: (field, entry) => (isOwn(field, entry) ? entry.text : field.options[entry.chosen[0] ?? -1]?.value),
  choices: (field, entry) => {
    const values = entry.chosen.map((at) => field.options[at]?.value);
    const all = isOwn(field, entry) ? [...values, entry.text] : values;
    return all.length === 0 ? undefined : all;
  },
  number: (field, { text }) => (text.trim() === "" ? undefined : numberIn(field, Number(text))),
  json: (_, { text }) => (text.trim() === "" ? undefined : jsonOf(text)),
};

/** An answer of one's own counts once there is one. */
function isOwn({ open }: Field, { text }: Entry): boolean {
  return open && text.trim() !== "";
}

function numberIn({ whole, least, most }: Field, value: number): unknown {
  const fits = Number.isFinite(value) && (!whole || Number.isInteger(value)) && value >= (least ?? -Infinity) && value <= (most ?? Infinity);
  return fits ? value : INVALID;
}

function numberWords({ whole, least, most }: Field): string {
  const both = least !== null && most !== null;
  const bounds = both ? ` from ${least} to ${most}` : least !== null ? ` of at least ${least}` : most !== null ? ` of at most ${most}` : "";
  return `Enter a ${whole ? "whole number" : "number"}${bounds}.`;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return INVALID;
  }
}
