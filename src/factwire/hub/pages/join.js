const token = takeFragment();
const form = find("form"), key = crypto.randomUUID ? crypto.randomUUID() : String(Math.random());
if (!token) {
  form.hidden = true;
  say("This link has no invitation in it. Open the complete link.", "bad");
}
const chosenName = () => {
  const field = form.elements.namedItem("name");
  if (!field.reportValidity()) throw new Error("Choose a name first.");
  return field.value;
};
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const fields = new FormData(form);
  run("Creating the account …", async () => {
    const body = {token, name: fields.get("name"), password: fields.get("password")};
    enter(await ask("POST", "/v1/auth/register", body, {"idempotency-key": key}));
  });
});
const joinWithPasskey = () => run("Creating a passkey …", async () => {
  const begun = await ask("POST", "/v1/auth/passkeys/register/start", {token, name: chosenName()});
  const credential = await usePasskey("create", begun.publicKey);
  enter(await ask("POST", "/v1/auth/passkeys/register", {ceremony: begun.ceremony, credential}));
});
ask("GET", "/v1/auth/methods").then((offered) => {
  const place = find("#others");
  if (offered.passkeys && window.PublicKeyCredential) {
    addButton(place, "Create account with a passkey", joinWithPasskey);
  }
  for (const {provider, title} of offered.providers) {
    addButton(place, `Create account with ${title}`, () => run(`Going to ${title} …`, () =>
      goToProvider("/v1/auth/providers/start", {provider, token, name: chosenName()}, false)));
  }
}).catch(fail);
