import { expect, test } from "vitest";

import type { ProjectionState } from "../../api/generated/projection";
import { MOMENTS_KEPT } from "../../api/limits";
import { MomentLoader, NO_MOMENT, type MomentShown } from "./loader";

/** An Edge whose answers a test gives, one by one. */
function loading(neighbours: (at: string) => string[] = () => []) {
  const asked: { at: string; signal: AbortSignal; answer: (state: unknown) => void; fail: (error: Error) => void }[] = [];
  const seen: { shown: MomentShown } = { shown: NO_MOMENT };
  let now = 0;
  const loader = new MomentLoader({
    read: (at, signal) => new Promise<ProjectionState>((answer, fail) => asked.push({ at, signal, answer: answer as (state: unknown) => void, fail })),
    show: (shown) => (seen.shown = shown),
    neighbours,
    now: () => now,
  });
  const answer = async (state: unknown = { of: asked.at(-1)?.at }, took = 0) => {
    now += took;
    asked.at(-1)?.answer(state);
    await new Promise((done) => setTimeout(done));
  };
  return { loader, asked, seen, answer };
}

test("a drag across many moments asks for one at a time, and for the last", async () => {
  const { loader, asked, seen, answer } = loading();
  for (let at = 0; at < 500; at += 1) loader.want(`c${at}`);
  expect(asked.map(({ at }) => at)).toEqual(["c0"]);
  await answer();
  expect(seen.shown).toMatchObject({ moment: { at: "c0" }, busy: true });
  await answer();
  expect(asked.map(({ at }) => at)).toEqual(["c0", "c499"]);
  expect(seen.shown).toMatchObject({ moment: { at: "c499" }, busy: false });
});

test("moments that are kept are shown at once, and few are kept", async () => {
  const { loader, asked, seen, answer } = loading();
  for (let at = 0; at <= MOMENTS_KEPT; at += 1) {
    loader.want(`c${at}`);
    await answer();
  }
  loader.want("c1");
  expect(seen.shown).toMatchObject({ moment: { at: "c1" }, busy: false });
  loader.want("c0");
  expect(asked.at(-1)?.at).toBe("c0");
  expect(asked).toHaveLength(MOMENTS_KEPT + 2);
});

test("neighbours are fetched ahead where that is fast, and given up for what is wanted", async () => {
  const { loader, asked, answer } = loading((at) => [`${at}+`]);
  loader.want("c");
  await answer();
  expect(asked.map(({ at }) => at)).toEqual(["c", "c+"]);
  loader.want("d");
  expect(asked[1]?.signal.aborted).toBe(true);
  expect(asked.at(-1)?.at).toBe("d");
  await answer(undefined, 5_000);
  expect(asked.map(({ at }) => at)).toEqual(["c", "c+", "d"]);
});

test("going back to now cancels what is on its way, and its answer is not shown", async () => {
  const { loader, asked, seen, answer } = loading();
  loader.want("c");
  loader.want(null);
  expect(asked[0]?.signal.aborted).toBe(true);
  await answer();
  expect(seen.shown).toEqual(NO_MOMENT);
});

test("what did not change between two moments stays the same object", async () => {
  const { loader, seen, answer } = loading();
  loader.want("a");
  await answer({ tools: { one: { name: "x" } }, n: 1 });
  const before = seen.shown.moment?.state.tools;
  loader.want("b");
  await answer({ tools: { one: { name: "x" } }, n: 2 });
  expect(seen.shown.moment?.state.tools).toBe(before);
  expect(seen.shown.moment?.state).toMatchObject({ n: 2 });
});

test("a moment that cannot be had says why, and is asked for when it is wanted again", async () => {
  const { loader, asked, seen } = loading();
  loader.want("c");
  asked[0]?.fail(new Error("no such moment"));
  await new Promise((done) => setTimeout(done));
  expect(seen.shown).toMatchObject({ busy: false, error: "no such moment" });
  loader.want("c");
  expect(asked).toHaveLength(2);
});
