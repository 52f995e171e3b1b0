import { expect, it } from "vitest";

import { safeName, sizeWords } from "./download";
import { viewOf } from "./views";

it("shows what facts say it is, and nothing of an unknown type", () => {
  const shown = ["text/markdown; charset=utf-8", "application/ld+json", "image/png", "text/html", "application/pdf", "__proto__", ""];
  expect(shown.map((type) => viewOf(type, "document"))).toEqual(["markdown", "json", "image", "text", "none", "none", "none"]);
  expect(viewOf(null, "unknown")).toBe("none");
  expect(viewOf(null, "file")).toBe("text");
});

it("saves under a name that leads nowhere", () => {
  expect(["../../etc/passwd", "..", "a\u202eb.txt", "C:\\x\\报告.md", ""].map(safeName)).toEqual(["passwd", "_", "a_b.txt", "报告.md", "content"]);
});

it("says sizes in units that people read", () => {
  expect([0, 999, 1_500, 2_000_000].map(sizeWords)).toEqual(["0 bytes", "999 bytes", "1.5 kB", "2.0 MB"]);
});
