const code = takeFragment();
const form = find("form"), waiting = find("#waiting");
const SCAN = "Show a new code under Devices on a screen where you are signed in, and scan it.";
const guessName = () => ["iPhone", "iPad", "Android", "Windows", "Mac", "Linux"].find(
  (each) => navigator.userAgent.includes(each)) || "Phone";
const pause = (seconds) => new Promise((resolve) => { setTimeout(resolve, seconds * 1000); });
const ENDS = {
  access_denied: "This was refused on the other screen.",
  expired_token: `The code has expired. ${SCAN}`,
};

form.elements.namedItem("name").value = guessName();
find("#where").textContent = `You will be signed in to the Hub at ${location.host} on this device, `
  + "until you sign out here or end it from another screen.";
if (!code) {
  form.hidden = true;
  say(`This page has no code. ${SCAN}`, "bad");
}

// A poll that is not answered is no refusal: the code lasts five minutes, whatever the network does.
async function collectSession(claimed) {
  let {interval} = claimed;
  for (let left = claimed.expiresIn; left > 0; left -= interval) {
    await pause(interval);
    const answer = await send("POST", "/v1/auth/session-token", {deviceCode: claimed.deviceCode})
      .catch(() => null);
    if (answer?.ok) return answer.json();
    const problem = answer ? await answer.json() : {};
    if (problem.code in ENDS) throw new Error(ENDS[problem.code]);
    interval = problem.interval || interval;
  }
  throw new Error(ENDS.expired_token);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const name = new FormData(form).get("name");
  run("Asking …", async () => {
    const claimed = await ask("POST", "/v1/auth/pairing", {code, name}).catch((error) => {
      throw error.code === "unknown_code" ? new Error(`The code was used or has expired. ${SCAN}`) : error;
    });
    form.hidden = true;
    find("#called").textContent = name;
    waiting.hidden = false;
    say("Waiting for the confirmation …");
    try {
      enter(await collectSession(claimed), localStorage);
      say("Signed in.");
    } finally {
      waiting.hidden = true;
    }
  });
});
