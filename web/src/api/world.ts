import { call } from "./client";
import type { SocketListener, World } from "./connection";

/** The browser's own sockets and timers. */
export const browser: World = {
  ticket: async () => (await call("createTicket")).ticket,
  open: (address, listener) => openSocket(address, listener),
  after: (milliseconds, what) => {
    const timer = setTimeout(what, milliseconds);
    return () => clearTimeout(timer);
  },
};

function openSocket(address: string, listener: SocketListener): { close(): void } {
  const url = new URL(address, location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(url);
  socket.onopen = () => listener.opened();
  socket.onmessage = (event) => listener.message(String(event.data));
  // An `error` is always followed by `close`, which says all there is to know.
  socket.onclose = (event) => listener.closed(event.code);
  return { close: () => socket.close(1000) };
}
