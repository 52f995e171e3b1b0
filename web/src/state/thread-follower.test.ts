import { expect, test } from "vitest";

import { Connection, type SocketListener, type World } from "../api/connection";
import { STALE_AFTER_MS } from "../api/limits";
import { ThreadFollower, type Shown } from "./thread-follower";

/** A world whose sockets, timers and pictures are moved by hand. */
function stage() {
  const sockets: { address: string; listener: SocketListener; closed: boolean }[] = [];
  let timers: { at: number; what: () => void }[] = [];
  let pictures: (() => void)[] = [];
  let now = 0;
  const shown: Shown = { state: null, cursor: null, status: "connecting" };
  const edge = { up: true };
  const world: World = {
    ticket: () => (edge.up ? Promise.resolve("tkt") : Promise.reject(new Error("down"))),
    open: (address, listener) => {
      const socket = { address, listener, closed: false };
      sockets.push(socket);
      return { close: () => (socket.closed = true) };
    },
    after: (milliseconds, what) => {
      const timer = { at: now + milliseconds, what };
      timers.push(timer);
      return () => (timers = timers.filter((other) => other !== timer));
    },
  };
  const follower = new ThreadFollower("thr/1", {
    show: (change) => Object.assign(shown, change),
    nextFrame: (what) => pictures.push(what),
    misfit: () => connection.repair(),
  });
  const connection = new Connection(world, follower);
  const settle = async () => {
    for (let n = 0; n < 5; n += 1) await Promise.resolve();
  };
  const socket = () => sockets.at(-1)!;
  const send = (frame: object) => socket().listener.message(JSON.stringify(frame));
  const draw = () => {
    const due = pictures;
    pictures = [];
    for (const what of due) what();
  };
  const pass = async (milliseconds: number) => {
    const end = now + milliseconds;
    for (;;) {
      const due = timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      timers = timers.filter((timer) => timer !== due);
      now = due.at;
      due.what();
      await settle();
    }
    now = end;
  };
  const text = () => (shown.state as unknown as { text: string } | null)?.text;
  return { shown, edge, connection, sockets, socket, send, draw, pass, settle, text };
}

const snapshot = (cursor: string, text: string) => ({ type: "projection.snapshot", threadId: "thr/1", cursor, state: { text } });
const delta = (cursor: string, more: string) => ({
  type: "projection.delta",
  threadId: "thr/1",
  cursor,
  operations: [{ op: "append", path: "/text", value: more }],
});

async function live() {
  const on = stage();
  on.connection.start();
  await on.settle();
  on.socket().listener.opened();
  on.send(snapshot("c1", "a"));
  return on;
}

test("a snapshot is shown, and deltas go on from it, together in one picture", async () => {
  const on = stage();
  on.connection.start();
  await on.settle();
  expect(on.socket().address).toBe("/v1/threads/thr%2F1/projection/stream?ticket=tkt");
  on.socket().listener.opened();
  expect(on.shown.status).toBe("connecting");
  on.send(snapshot("c1", "a"));
  expect(on.shown.status).toBe("live");
  on.send(delta("c2", "b"));
  on.send(delta("c3", "c"));
  expect(on.text()).toBe("a");
  on.draw();
  expect([on.text(), on.shown.cursor]).toEqual(["abc", "c3"]);
});

test("a delta that comes twice is applied once", async () => {
  const on = await live();
  for (const frame of [delta("c2", "b"), delta("c2", "b"), delta("c1", "?"), delta("c3", "c"), delta("c2", "b")]) on.send(frame);
  on.draw();
  expect(on.text()).toBe("abc");
});

test("a lost socket is resumed after the last message, drawn or not", async () => {
  const on = await live();
  on.send(delta("c2", "b"));
  on.socket().listener.closed(1006);
  expect(on.shown.status).toBe("reconnecting");
  await on.pass(1_000);
  expect(on.socket().address).toContain("cursor=c2");
  on.socket().listener.opened();
  expect([on.shown.status, on.text()]).toEqual(["live", "ab"]);
  on.send(delta("c3", "c"));
  on.draw();
  expect(on.text()).toBe("abc");
});

test("messages of a socket that was given up are not listened to", async () => {
  const on = await live();
  const old = on.socket();
  old.listener.closed(1012);
  await on.pass(1_000);
  old.listener.message(JSON.stringify(delta("c9", "?")));
  on.socket().listener.opened();
  on.draw();
  expect(on.text()).toBe("a");
});

test("a restart of the Edge is waited for, as stale after a while, and then resumed", async () => {
  const on = await live();
  on.edge.up = false;
  on.socket().listener.closed(1012);
  await on.pass(STALE_AFTER_MS + 1);
  expect([on.shown.status, on.text(), on.sockets.length]).toEqual(["stale", "a", 1]);
  on.edge.up = true;
  on.connection.hurry();
  await on.settle();
  expect(on.socket().address).toContain("cursor=c1");
  on.socket().listener.opened();
  expect(on.shown.status).toBe("live");
  await on.pass(STALE_AFTER_MS * 2);
  expect(on.shown.status).toBe("live");
});

test.each([4400, 4410])("a cursor that is no place any more (%i) is answered with a new snapshot", async (code) => {
  const on = await live();
  on.send({ type: "error", payload: { code: "cursor_expired" } });
  on.socket().listener.closed(code);
  await on.settle();
  expect(on.shown.status).toBe("repairing");
  expect(on.text()).toBe("a");
  expect(on.socket().address).not.toContain("cursor=");
  on.socket().listener.opened();
  expect(on.shown.status).toBe("repairing");
  on.send(snapshot("d1", "fresh"));
  expect([on.shown.status, on.text()]).toEqual(["live", "fresh"]);
});

test("a gap shows as a delta that does not fit, and is repaired by a snapshot", async () => {
  const on = await live();
  on.send({ ...delta("c7", ""), operations: [{ op: "replace", path: "/missing/place", value: 1 }] });
  on.draw();
  await on.settle();
  expect([on.shown.status, on.text()]).toEqual(["repairing", "a"]);
  expect(on.socket().address).not.toContain("cursor=");
  on.send(snapshot("c8", "whole"));
  expect([on.shown.status, on.text()]).toEqual(["live", "whole"]);
});

test("repairing that fails at once waits, and does not spin", async () => {
  const on = await live();
  on.socket().listener.closed(4410);
  await on.settle();
  on.socket().listener.closed(4410);
  await on.settle();
  expect(on.sockets.length).toBe(2);
  await on.pass(1_000);
  expect(on.sockets.length).toBe(3);
});

test("a stream that was stopped stays so", async () => {
  const on = await live();
  on.connection.stop();
  expect(on.socket().closed).toBe(true);
  on.socket().listener.closed(1006);
  on.connection.hurry();
  await on.pass(60_000);
  expect(on.sockets.length).toBe(1);
});
