function offerPairing(place, signal, said = "") {
  place.replaceChildren(
    said ? make("p", {role: "alert"}, said)
      : make("p", {}, "Show a code here, scan it with the phone’s camera, and confirm here."),
    make("div", {class: "actions"}, make("button", {type: "button", class: "main",
      onclick: () => run("", () => showPairing(place, signal))}, "Show a code")));
}

async function showPairing(place, signal) {
  const made = await ask("POST", "/v1/me/pairings");
  const image = document.importNode(
    new DOMParser().parseFromString(made.qr, "image/svg+xml").documentElement, true);
  image.setAttribute("class", "qr");
  image.setAttribute("viewBox", `0 0 ${image.getAttribute("width")} ${image.getAttribute("height")}`);
  image.setAttribute("role", "img");
  image.setAttribute("aria-label", "QR code to scan with the phone");
  place.replaceChildren(image,
    make("p", {}, `Scan it with the phone’s camera. The code works once, until ${
      new Date(made.expiresAt).toLocaleTimeString([], {hour: "2-digit", minute: "2-digit"})}, and `
      + "the phone is signed in only after you have confirmed it here."),
    make("details", {}, make("summary", {}, "No camera?"),
      make("p", {}, "Open this address on the phone:"), make("pre", {}, made.link)),
    make("div", {class: "actions"}, make("button", {type: "button",
      onclick: () => offerPairing(place, signal)}, "Hide the code")));
  followPairing(place, signal, made.pairingId, image);
}

// Asks every few seconds while the code is on the screen; nothing else tells who scanned it.
async function followPairing(place, signal, pairingId, image) {
  const path = `/v1/me/pairings/${pairingId}`;
  let shown = "open";
  const isShown = () => !signal.aborted && (shown !== "open" || image.isConnected);
  while (isShown()) {
    await new Promise((resolve) => { setTimeout(resolve, 2000); });
    if (!isShown()) return;
    let pairing;
    try {
      pairing = await ask("GET", path);
    } catch (error) {
      if (error.code !== "unknown_pairing") continue;
      offerPairing(place, signal, "The code has expired.");
      return;
    }
    if (pairing.state === "refused" || pairing.state === "collected") {
      offerPairing(place, signal, pairing.state === "refused"
        ? "Refused. Nothing was signed in." : `${pairing.claim.name} is signed in.`);
      updateParts("screens", 0);
      return;
    }
    if (pairing.state !== shown) drawClaim(place, path, pairing);
    shown = pairing.state;
  }
}

function drawClaim(place, path, pairing) {
  const decide = (decision) => () => run("", async () => {
    drawClaim(place, path, await ask("POST", `${path}/decision`, {decision}));
  });
  const asks = [make("h2", {}, "This device asks to be signed in as you"),
    make("dl", {}, listAsked(pairing.claim))];
  place.replaceChildren(...asks, ...(pairing.state === "claimed"
    ? [make("p", {class: "note"}, "Confirm only if it is the device in your hand."),
      make("div", {class: "actions"},
        make("button", {type: "button", class: "main", onclick: decide("confirm")}, "Confirm"),
        make("button", {type: "button", class: "danger", onclick: decide("refuse")}, "Refuse"))]
    : [make("p", {role: "alert"}, "Confirmed. Waiting for the device …")]));
}

