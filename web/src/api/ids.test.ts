import { expect, test } from "vitest";

import { bareId, ownId } from "./ids";

test("an id names the thread that it is of, and is the same however it was listed", () => {
  expect(ownId("thr", "act")).toBe("thr~act");
  expect(ownId("thr", "thr~act")).toBe("thr~act");
  expect(ownId("50%~1", "act")).toBe("50%25%7E1~act");
  expect(bareId("thr", "act")).toBe("act");
  expect(bareId("50%~1", "50%25%7E1~act")).toBe("act");
});
