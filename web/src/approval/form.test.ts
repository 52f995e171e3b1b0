import { describe, expect, it } from "vitest";

import { answerOf, entryOf, problemOf, type Entries } from "./answer";
import { formOf, type Form } from "./form";

const typed = (text: string) => ({ text, chosen: [], ticked: false });
const chose = (...chosen: number[]) => ({ text: "", chosen, ticked: false });

function problems(form: Form, entries: Entries): Record<string, string | null> {
  return Object.fromEntries(form.fields.map((field) => [field.name, problemOf(field, entryOf(field, entries))]));
}

describe("a form of a schema", () => {
  const form = formOf(
    "structured_input",
    {
      type: "object",
      required: ["name", "tries"],
      properties: {
        name: { type: "string", title: "Name" },
        size: { type: "string", oneOf: [{ const: "s", title: "Small" }, { const: "l", title: "Large" }] },
        level: { enum: [1, 2, 3], default: 2 },
        tags: { type: "array", items: { type: "string", enum: ["a", "b"] } },
        tries: { type: "integer", minimum: 1, maximum: 5 },
        sure: { type: "boolean", default: true },
        rest: { type: "object" },
      },
    },
    null,
  ) as Form;

  it("has a field of the right kind for every property", () => {
    expect(form.fields.map(({ name, kind }) => [name, kind])).toEqual([
      ["name", "text"],
      ["size", "choice"],
      ["level", "choice"],
      ["tags", "choices"],
      ["tries", "number"],
      ["sure", "boolean"],
      ["rest", "json"],
    ]);
  });

  it("says what is missing and what does not fit", () => {
    expect(problems(form, { tries: typed("7"), rest: typed("{") })).toMatchObject({
      name: "This field is required.",
      tries: "Enter a whole number from 1 to 5.",
      rest: "This is not valid JSON.",
      size: null,
    });
  });

  it("comes to values of their types, with defaults, and leaves out what is empty", () => {
    const entries = { name: typed("Ann"), size: chose(1), tags: chose(0, 1), tries: typed("3") };
    expect(answerOf(form, entries)).toEqual({ name: "Ann", size: "l", level: 2, tags: ["a", "b"], tries: 3, sure: true });
  });
});

describe("a form without a schema", () => {
  it("is a choice among options, and its answer is the id of one", () => {
    const form = formOf("structured_input", null, [{ id: "x", label: "Ex" }, "why"]) as Form;
    expect(form.fields[0]?.options.map(({ label }) => label)).toEqual(["Ex", "why"]);
    expect(answerOf(form, { answer: chose(0) })).toBe("x");
    expect(problems(form, {})).toEqual({ answer: "This field is required." });
  });

  it("answers questions under their ids, by an option or by words of one's own", () => {
    const options = [{ id: "q1", question: "Which?", options: [{ label: "This" }, { label: "That" }] }];
    const form = formOf("structured_input", null, options) as Form;
    expect(answerOf(form, { q1: chose(1) })).toEqual({ q1: "That" });
    expect(answerOf(form, { q1: { text: "Neither", chosen: [0], ticked: false } })).toEqual({ q1: "Neither" });
  });

  it("is a line of words where nothing is offered, and none where only a yes is wanted", () => {
    expect(answerOf(formOf("clarification", null, null) as Form, { answer: typed("so") })).toBe("so");
    expect(formOf("credential_request", null, null)?.fields[0]?.kind).toBe("secret");
    expect(formOf("tool_approval", null, [{ id: "once" }])).toBeNull();
  });
});
