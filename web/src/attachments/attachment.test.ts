import { expect, test } from "vitest";

import { partsOf, readKept, sizeWords, type Attachment } from "./attachment";

const STORED: Attachment = { id: "1", name: "a.png", mediaType: "image/png", bytes: 12, phase: "stored", ref: "blob:sha256:a", message: null };

test("only what is stored is named in a message, by its kind", () => {
  const nameless = { ...STORED, id: "2", name: "notes", mediaType: "" };
  expect(partsOf([STORED, nameless, { ...STORED, phase: "failed", ref: null }])).toEqual([
    { type: "asset", kind: "image", ref: "blob:sha256:a", name: "a.png", bytes: 12, mediaType: "image/png" },
    { type: "asset", kind: "document", ref: "blob:sha256:a", name: "notes", bytes: 12 },
  ]);
});

test("what was kept is read again, and what is no attachment is left out", () => {
  expect(readKept(JSON.stringify([STORED, { ...STORED, phase: "storing" }, { id: 1 }, null]))).toEqual([STORED]);
  expect(readKept("{")).toEqual([]);
  expect(readKept(null)).toEqual([]);
});

test("sizes are told in units that people read", () => {
  expect([12, 1_500, 2_340_000].map(sizeWords)).toEqual(["12 B", "1.5 kB", "2.3 MB"]);
});
