import { expect, test } from "vitest";

import { OwnAddresses } from "./travel";

test("an address of our own that arrives after a later one was written is nobody going elsewhere", () => {
  const own = new OwnAddresses(undefined);
  own.write("10");
  own.write("20");
  expect(own.arrive("10")).toBe(true);
  expect(own.arrive("20")).toBe(true);
});

test("an address that was left behind is somebody going back", () => {
  const own = new OwnAddresses(undefined);
  own.write("10");
  own.write("20");
  own.arrive("20");
  expect(own.arrive("10")).toBe(false);
  expect(own.arrive("30")).toBe(false);
});
