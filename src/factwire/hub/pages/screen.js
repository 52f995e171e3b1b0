// The screen of somebody who is signed in: views of parts, each drawn from what it reads, and drawn
// again when a frame of the socket, or the stream of a thread, says that this has changed.

const THROTTLE = 2500, RECONNECT_MOST = 30000;
const KINDS = {approval: "approvals", device: "devices", edge: "devices", agent: "tasks"};
const TONES = {
  queued: "busy", delivered: "busy", running: "busy", waiting: "warn", "not heard from": "warn",
  stopping: "warn", completed: "good", online: "good", "not acknowledged": "bad", failed: "bad",
  "timed out": "bad", expired: "bad",
};
// Characters that hide, reorder or overwrite others are shown by their number.
const HIDING = /([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}])/gu;

const connection = find("#connection");
let person = null, devices = new Map(), parts = [], leaving = new AbortController();

const badge = (kind, state) => {
  const word = STATUS_WORDS[kind][state] || state;
  return make("span", {class: `badge ${TONES[word] || ""}`}, word);
};
const fill = (text, names) => text.replace(/\{(\w+)\}/g, (_, name) => names[name]);
const capitalize = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;
// A name stays as it is written.
const toSentence = (text, names) => `${fill(text[0] === "{" ? text : capitalize(text), names)}.`;
const link = (hash, text) => make("a", {href: `#/${hash}`}, text);
const soft = (text) => make("p", {class: "soft"}, text);
const note = (...content) => make("p", {class: "note", role: "alert"}, content);
const command = (text, work, tone = null) =>
  make("button", {type: "button", class: tone, onclick: work}, text);
const rows = (items, empty) => (items.length
  ? make("ul", {class: "rows"}, items) : make("p", {class: "card soft"}, empty));
const joinTexts = (...texts) => texts.filter(Boolean).join(" · ");
const countOf = (count, word, words = `${word}s`) => `${count} ${count === 1 ? word : words}`;
const verbatim = (text) => text.split(HIDING).map((piece, index) => (index % 2
  ? make("mark", {}, `U+${piece.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`)
  : piece));

const presenceOf = (device) => (device.online ? "online" : "offline");
const GONE = "a machine that has left or is not shared with you";
const nameOf = (deviceId) => devices.get(deviceId)?.name || GONE;
const deviceOf = (edgeId) => [...devices.values()].find((each) => each.edgeId === edgeId);
const stateOf = (task) => (task.closing && !task.endedAt ? "stopping" : task.status);
// What a machine asked before it joined again is still its own.
const nameOfEdge = (edgeId) => deviceOf(edgeId)?.name || GONE;
const mayStartOn = (device) => person.role !== "viewer" && device
  && (!device.role || device.role === "operator");
const pathOfEdge = (edgeId) => `/v1/edges/${encodeURIComponent(edgeId)}`;

async function listAll(path, most = 200) {
  const found = [];
  let next = null;
  do {
    const page = await ask("GET", `${path}?limit=100`
      + (next ? `&cursor=${encodeURIComponent(next)}` : ""));
    found.push(...page.items);
    next = page.next;
  } while (next && found.length < most);
  return found;
}

async function loadDevices() {
  const found = await listAll("/v1/devices");
  devices = new Map(found.map((each) => [each.deviceId, each]));
}

function goToSignIn() {
  keep(RETURN, location.hash);
  location.replace("/sign-in");
}

// At once where it was long ago, else when it is due: a Hub takes 100 requests a minute.
function throttle(work) {
  let timer = null, last = -THROTTLE;
  const begin = () => {
    timer = null;
    last = performance.now();
    work();
  };
  const update = (after = last + THROTTLE - performance.now()) => {
    if (after === 0) clearTimeout(timer);
    else if (timer !== null) return;
    timer = setTimeout(begin, Math.max(0, after));
  };
  return {update, stop: () => clearTimeout(timer)};
}

function part(kinds, load) {
  const body = make("div", {}, soft("Loading …")), {signal} = leaving;
  const replace = (...content) => {
    const drawn = make("div", {}, content);
    // What has not changed stays, with the focus in it.
    if (!signal.aborted && !drawn.isEqualNode(body)) body.replaceChildren(...drawn.childNodes);
  };
  const {update, stop} = throttle(async () => {
    try {
      replace(await load());
    } catch (error) {
      if (signal.aborted) return;
      if (!readSession()) goToSignIn();
      else if (error.status === 429) update(Math.max(error.retryAfter, 1) * 1000);
      else replace(make("p", {class: "card", role: "alert"}, error.message, " ",
        command("Try again", () => update(0))));
    }
  });
  signal.addEventListener("abort", stop);
  parts.push({kinds, update});
  update();
  return body;
}

const updateParts = (kind, after) => parts.forEach(
  (each) => { if (!kind || each.kinds.includes(kind)) each.update(after); });
const deviceReading = throttle(() => loadDevices()
  .then(() => updateParts("devices")).catch((error) => fail(error)));

function takeFrame({type, payload}) {
  // What an agent does comes with the stream of its thread; here, only what its task has become.
  if (type === "agent.stream" && payload.event_type !== "task.updated") return;
  const kind = KINDS[type.split(".")[0]];
  if (kind === "devices") deviceReading.update();
  else if (kind) updateParts(kind);
}

async function connect(wait = 1000) {
  let opened = false;
  const again = () => {
    if (!readSession()) { goToSignIn(); return; }
    connection.textContent = "Not connected to the Hub. What you see may be out of date.";
    connection.hidden = false;
    setTimeout(connect, opened ? 1000 : wait, opened ? 1000 : Math.min(wait * 2, RECONNECT_MOST));
  };
  try {
    const {ticket} = await ask("POST", "/client/ws-ticket");
    const address = new URL(`/client/ws?access_token=${encodeURIComponent(ticket)}`, location.href);
    address.protocol = location.protocol.replace("http", "ws");
    const socket = new WebSocket(address);
    socket.addEventListener("message", ({data}) => {
      const frame = JSON.parse(data);
      if (frame.type !== "auth.ok") { takeFrame(frame); return; }
      opened = true;
      connection.hidden = true;
      deviceReading.update();
      updateParts();
    });
    socket.addEventListener("close", again);
  } catch {
    again();
  }
}

// The stream of the mirror says that something happened; what it was is read as a list.
async function followThread(edgeId, threadId, signal) {
  const path = `${pathOfEdge(edgeId)}/events?stream=sse&since=now&threadId=${
    encodeURIComponent(threadId)}`;
  for (let wait = 1000; !signal.aborted; wait = Math.min(wait * 2, RECONNECT_MOST)) {
    try {
      const {accessToken} = readSession() || {};
      const answer = await fetch(path, {signal, headers: {authorization: `Bearer ${accessToken}`}});
      if (answer.status === 401) await renewSession(accessToken);
      const reader = answer.ok ? answer.body.getReader() : null;
      while (reader && !(await reader.read()).done) {
        wait = 1000;
        updateParts("thread");
      }
    } catch {
      if (signal.aborted) return;
    }
    await new Promise((resolve) => { setTimeout(resolve, wait); });
  }
}
