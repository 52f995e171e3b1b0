const [form, choice] = document.querySelectorAll("form"), list = find("dl");
form.elements.code.value = decodeURIComponent(takeFragment());
// Whoever is signed in in this tab stays so; otherwise the page signs in to decide, and out again.
let stays = Boolean(readSession());
find("nav").hidden = !stays;
let path = "";
async function signOut() {
  if (!stays && readSession()) {
    await send("POST", "/v1/auth/logout").catch(() => {});
    forgetSession();
  }
}
const signInByName = (fields) => ask("POST", "/v1/auth/login",
  {name: fields.get("name"), password: fields.get("password")});
async function lookUp(signIn) {
  const fields = new FormData(form);
  try {
    if (!stays) keepSession(await signIn(fields));
    path = `/v1/device-authorizations/${encodeURIComponent(fields.get("code"))}`;
    show(await ask("GET", path));
    form.hidden = true;
    choice.hidden = false;
    say("");
  } catch (error) {
    await signOut();
    if (stays && !readSession()) {
      stays = false;
      showSignIn();
      throw new Error("You are no longer signed in. Sign in here to look up the code.");
    }
    throw error;
  }
}
function show(asks) {
  list.replaceChildren(...listAsked(asks));
  find("h2").textContent =
    asks.kind === "edge" ? "This machine asks to join" : "This terminal asks to be signed in";
}
form.addEventListener("submit", (event) => {
  event.preventDefault();
  run("Looking up the code …", () => lookUp(signInByName));
});
choice.addEventListener("submit", (event) => {
  event.preventDefault();
  const decision = event.submitter.value;
  run("Deciding …", async () => {
    await ask("POST", `${path}/decision`, {decision});
    say(decision === "confirm" ? "Confirmed. It comes in now." : "Refused.");
    choice.hidden = true;
    await signOut();
  });
});
function showSignIn() {
  for (const name of ["name", "password"]) {
    form.elements[name].required = !stays;
    form.elements[name].parentElement.hidden = stays;
  }
  find("#others").hidden = stays;
}
showSignIn();
ask("GET", "/v1/auth/methods").then(({passkeys}) => {
  if (passkeys && window.PublicKeyCredential) {
    addButton(find("#others"), "Look up with a passkey", () =>
      run("Waiting for a passkey …", () => lookUp(signInByPasskey)));
  }
}).catch(fail);
