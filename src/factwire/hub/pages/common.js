const find = (selector) => document.querySelector(selector);
const status = find("[role=status]");
const say = (text, tone = "") => {
  status.textContent = text;
  status.className = tone;
};
const fail = (error) => say(error.message, "bad");
const SESSION = "factwire-hub-session", PENDING = "factwire-hub-provider";
const RETURN = "factwire-hub-return";
const read = (key) => JSON.parse(sessionStorage.getItem(key) || "null");
const keep = (key, value) => sessionStorage.setItem(key, JSON.stringify(value));

// What a link carries leaves the address bar at once; the same page opened by another link begins anew.
function takeFragment() {
  const fragment = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  addEventListener("hashchange", () => location.reload());
  return fragment;
}

// A tab keeps its own session. One that a phone was paired for is kept for the browser.
const storeOfSession = () => (sessionStorage.getItem(SESSION) ? sessionStorage : localStorage);
const readSession = () => JSON.parse(storeOfSession().getItem(SESSION) || "null");
const keepSession = (value, store = sessionStorage) =>
  store.setItem(SESSION, JSON.stringify(value));
const forgetSession = () => storeOfSession().removeItem(SESSION);

class Refusal extends Error {
  constructor(answer, problem) {
    const {detail, code} = problem;
    super(`${detail[0].toUpperCase()}${detail.slice(1)} (${code}).`);
    this.status = answer.status;
    this.code = problem.code;
    this.problem = problem;
    this.retryAfter = Number(answer.headers.get("retry-after") || 0);
  }
}

const needsNobody = (path) => path.startsWith("/v1/auth/") && path !== "/v1/auth/logout";

async function send(method, path, body, extra = {}) {
  const headers = {...extra};
  if (body) headers["content-type"] = "application/json";
  const session = needsNobody(path) ? null : readSession();
  if (session) headers.authorization = `Bearer ${session.accessToken}`;
  try {
    return await fetch(path, {method, headers, body: body && JSON.stringify(body)});
  } catch {
    throw new Error("The Hub does not answer. Try again.");
  }
}

// A refresh token works once: the tabs of a browser take turns, and use what another one got.
async function renewSession(used) {
  const renew = async () => {
    const session = readSession();
    if (!session || session.accessToken !== used) return Boolean(session);
    const answer = await send("POST", "/v1/auth/refresh", {refreshToken: session.refreshToken});
    if (answer.ok) keepSession(await answer.json(), storeOfSession());
    else if (answer.status === 401) forgetSession();
    return answer.ok;
  };
  return navigator.locks ? navigator.locks.request(SESSION, renew) : renew();
}

async function sendAsPerson(method, path, body, extra) {
  const used = readSession()?.accessToken;
  const answer = await send(method, path, body, extra);
  if (answer.status !== 401 || !used || needsNobody(path)) return answer;
  return (await renewSession(used)) ? send(method, path, body, extra) : answer;
}

async function ask(method, path, body, extra) {
  const answer = await sendAsPerson(method, path, body, extra);
  const result = answer.status === 204 ? null : await answer.json();
  if (!answer.ok) throw new Refusal(answer, result);
  return result;
}

async function run(text, work) {
  const buttons = [...document.querySelectorAll("button:not(:disabled)")];
  buttons.forEach((each) => { each.disabled = true; });
  say(text);
  try {
    await work();
  } catch (error) {
    const declined = error.name === "NotAllowedError" || error.name === "AbortError";
    fail(declined ? new Error("No passkey was used. Try again.") : error);
  }
  buttons.forEach((each) => { each.disabled = false; });
}

// Nothing that came over the network is ever markup: strings become text.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") element.addEventListener("click", value);
    else if (value !== null && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((each) => each !== null && each !== undefined));
  return element;
}

function addButton(place, text, work) {
  const button = make("button", {type: "button", onclick: work}, text);
  place.append(button);
  return button;
}

const formatTime = (text, second) => new Date(text).toLocaleString([], {
  month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second});

function listAsked(asks) {
  const rows = [["Name", asks.name], ["Platform", asks.platform], ["Version", asks.version],
    ["Browser", asks.kind === "screen" ? asks.userAgent : ""], ["From", asks.address],
    ["Since", formatTime(asks.createdAt)], ["Agents", asks.agents.join(", ")],
    ["Replaces", asks.replaces || ""]];
  return rows.filter(([, text]) => text).flatMap(
    ([name, text]) => [make("dt", {}, name), make("dd", {}, text)]);
}

const toBytes = (text) => Uint8Array.from(
  atob(text.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
const toText = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
  .replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

async function usePasskey(method, options) {
  const publicKey = {...options, challenge: toBytes(options.challenge)};
  if (options.user) publicKey.user = {...options.user, id: toBytes(options.user.id)};
  for (const list of ["excludeCredentials", "allowCredentials"]) {
    publicKey[list] = (options[list] || []).map((each) => ({...each, id: toBytes(each.id)}));
  }
  const made = await navigator.credentials[method]({publicKey});
  const response = {};
  for (const part of ["clientDataJSON", "attestationObject", "authenticatorData", "signature",
    "userHandle"]) {
    if (made.response[part]) response[part] = toText(made.response[part]);
  }
  return {id: made.id, rawId: toText(made.rawId), type: made.type, response};
}

async function goToProvider(path, body, link) {
  const begun = await ask("POST", path, body);
  keep(PENDING, {ceremony: begun.ceremony, provider: body.provider, link});
  location.assign(begun.authorizationUrl);
}

async function signInByPasskey() {
  const begun = await ask("POST", "/v1/auth/passkeys/login/start", {});
  const credential = await usePasskey("get", begun.publicKey);
  return ask("POST", "/v1/auth/passkeys/login", {ceremony: begun.ceremony, credential});
}

// Whoever was asked to sign in goes on where that was.
function enter(signedIn, store) {
  keepSession(signedIn, store);
  const place = read(RETURN) || "";
  sessionStorage.removeItem(RETURN);
  location.replace(`/${place}`);
}
