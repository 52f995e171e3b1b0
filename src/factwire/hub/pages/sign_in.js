const form = find("form"), account = find("#account"), others = find("#others");
find('nav a[href="/sign-in"]').setAttribute("aria-current", "page");
let offered = {passkeys: false, providers: []};

const show = (place, rows) => {
  place.replaceChildren();
  for (const {text, remove} of rows) {
    const item = make("li", {}, make("span", {}, text));
    if (remove) addButton(item, "Remove", remove).setAttribute("aria-label", `Remove ${text}`);
    place.append(item);
  }
};
const removeMethod = (id) => () => run("Removing …", async () => {
  await ask("DELETE", `/v1/me/methods/${id}`);
  await showAccount();
});
async function showAccount() {
  if (readSession()) {
    const [person, methods] = [await ask("GET", "/v1/me"), await ask("GET", "/v1/me/methods")];
    find("#person").textContent = `Signed in as ${person.name} (${person.role})`;
    show(find("#methods"), [
      ...(methods.password ? [{text: "Password"}] : []),
      ...methods.passkeys.map((each) => (
        {text: `Passkey: ${each.name}`, remove: removeMethod(each.passkeyId)})),
      ...methods.identities.map((each) => (
        {text: `${each.provider}: ${each.label}`, remove: removeMethod(each.identityId)})),
    ]);
    say("");
  }
  showWhich();
}
function showWhich() {
  const session = readSession();
  form.hidden = Boolean(session);
  account.hidden = !session;
  find("nav").hidden = !session;
  find("h1").textContent = session ? "Your account" : "Sign in to this Hub";
}
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const fields = new FormData(form);
  run("Signing in …", async () => {
    const body = {name: fields.get("name"), password: fields.get("password")};
    enter(await ask("POST", "/v1/auth/login", body));
  });
});
const signInWithPasskey = () => run("Waiting for a passkey …", async () => {
  enter(await signInByPasskey());
});
const addPasskey = () => run("Creating a passkey …", async () => {
  const begun = await ask("POST", "/v1/me/passkeys/start");
  const credential = await usePasskey("create", begun.publicKey);
  const passkeyName = find("#passkey-name").value || "Passkey";
  await ask("POST", "/v1/me/passkeys", {ceremony: begun.ceremony, credential, passkeyName});
  await showAccount();
});
const signOut = () => run("Signing out …", async () => {
  await sendAsPerson("POST", "/v1/auth/logout");
  forgetSession();
  showWhich();
  say("You are signed out.");
});

async function takeAnswer() {
  const answer = new URLSearchParams(location.search);
  const [, , provider] = location.pathname.split("/");
  const pending = read(PENDING);
  sessionStorage.removeItem(PENDING);
  history.replaceState(null, "", "/sign-in");
  if (!provider) return;
  if (!pending) throw new Error("This sign-in was not begun in this tab. Begin again.");
  const body = {ceremony: pending.ceremony, provider};
  for (const part of ["state", "code", "iss", "error"]) {
    if (answer.has(part)) body[part] = answer.get(part);
  }
  if (!("state" in body)) body.state = "";
  if (pending.link) await ask("POST", "/v1/me/identities", body);
  else enter(await ask("POST", "/v1/auth/providers/login", body));
}

find("#add-passkey").addEventListener("click", addPasskey);
find("#sign-out").addEventListener("click", signOut);
run("Loading …", async () => {
  offered = await ask("GET", "/v1/auth/methods");
  const passkeys = offered.passkeys && Boolean(window.PublicKeyCredential);
  if (passkeys) addButton(others, "Sign in with a passkey", signInWithPasskey);
  find("#passkeys").hidden = !passkeys;
  for (const {provider, title} of offered.providers) {
    addButton(others, `Sign in with ${title}`, () => run(`Going to ${title} …`, () =>
      goToProvider("/v1/auth/providers/start", {provider}, false)));
    addButton(find("#links"), `Link ${title}`, () => run(`Going to ${title} …`, () =>
      goToProvider("/v1/me/identities/start", {provider}, true)));
  }
  say("");
  try {
    await takeAnswer();
  } finally {
    const said = [status.textContent, status.className];
    await showAccount().catch((error) => {
      // A session that is over is no error here: it is why somebody signs in.
      showWhich();
      if (readSession()) throw error;
    });
    if (said[0]) say(...said);
  }
});
