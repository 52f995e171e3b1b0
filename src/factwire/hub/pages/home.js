function askBefore(text, question, work) {
  const place = make("div");
  const showQuestion = () => place.replaceChildren(note(question), make("div", {class: "actions"},
    command(text, work, "danger"), command("Keep", showButton)));
  const showButton = () => place.replaceChildren(command(`${text} …`, showQuestion, "danger"));
  showButton();
  return place;
}

let draft = "";

function startForm(fixed) {
  const machines = fixed ? [fixed] : [...devices.values()].filter(mayStartOn);
  const deviceField = make("select", {name: "device"},
    machines.map((each) => make("option", {value: each.deviceId},
      each.name)));
  const agentField = make("select", {name: "agent", required: ""});
  const showAgents = () => {
    const {agents} = devices.get(deviceField.value);
    // An agent may cost money, so that none is chosen for somebody who did not look.
    const choice = agents.length > 1 ? [make("option", {value: ""}, "Choose an agent")] : [];
    agentField.replaceChildren(...choice,
      ...agents.map((each) => make("option", {value: each}, each)));
  };
  deviceField.addEventListener("change", showAgents);
  showAgents();
  const promptField = make("textarea", {name: "prompt", required: ""});
  promptField.value = draft;
  promptField.addEventListener("input", () => { draft = promptField.value; });
  const form = make("form", {class: "card"},
    make("label", {}, "What should the agent do?", promptField),
    make("label", {hidden: fixed ? "" : null}, "On", deviceField),
    make("label", {}, "With", agentField),
    make("div", {class: "actions"}, make("button", {}, "Start")));
  let key = crypto.randomUUID();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const fields = new FormData(form), device = devices.get(fields.get("device"));
    run("Starting …", async () => {
      const body = {deviceId: device.deviceId, agentType: fields.get("agent"),
        prompt: fields.get("prompt")};
      const task = await ask("POST", "/v1/agent-tasks", body, {"idempotency-key": key});
      key = crypto.randomUUID();
      draft = "";
      location.hash = `#/tasks/${task.taskId}`;
      say("");
    });
  });
  return form;
}

const joinHelp = () => make("div", {class: "card"},
  make("p", {}, "No machine has joined yet. On the machine where your agents run:"),
  make("pre", {}, `factwire join ${location.origin}`),
  make("p", {}, make("a", {href: "/device"}, "Confirm the code"), " that it shows, then run:"),
  make("pre", {}, "factwire edge"));

const approvalRow = (each) => make("li", {},
  make("div", {}, link(`approvals/${each.approvalId}`, verbatim(each.summary || each.kind)),
    make("span", {class: "soft"}, joinTexts(nameOfEdge(each.edgeId), each.toolName,
      `${each.riskLevel} risk`, formatTime(each.askedAt)))),
  badge("approval", each.state));

const taskRow = (each) => make("li", {},
  make("div", {}, link(`tasks/${each.taskId}`, each.prompt.slice(0, 200)),
    make("span", {class: "soft"},
      joinTexts(each.agentType, nameOf(each.deviceId), formatTime(each.createdAt)))),
  badge("task", stateOf(each)));

const deviceRow = (each) => make("li", {},
  make("div", {}, link(`devices/${each.deviceId}`, each.name),
    make("span", {class: "soft"}, joinTexts(each.role && `shared with you (${each.role})`, each.platform,
      each.online ? "" : `last seen ${formatTime(each.lastSeenAt)}`))),
  badge("device", presenceOf(each)));

const threadRow = (edgeId) => (each) => make("li", {},
  make("div", {}, link(`threads/${edgeId}/${each.threadId}`, each.title || each.threadId),
    make("span", {class: "soft"}, joinTexts(each.agentId, formatTime(each.updatedAt)))),
  badge("thread", each.activity));

function showHome() {
  const approvals = part(["approvals", "devices"], async () => {
    const {items} = await ask("GET", "/v1/approvals?limit=50");
    return rows(items.map(approvalRow), "Nothing is waiting for a decision.");
  });
  const start = part(["devices"], () => ([...devices.values()].some(mayStartOn)
    ? [make("h2", {}, "Start an agent"), startForm()] : []));
  const tasks = part(["tasks", "devices"], async () => {
    const {items} = await ask("GET", "/v1/agent-tasks?limit=20");
    return rows(items.map(taskRow), "No agent was started from here yet.");
  });
  const machines = part(["devices"], () => {
    const found = [...devices.values()];
    return found.length ? rows(found.map(deviceRow)) : joinHelp();
  });
  const shared = part(["devices"], async () => {
    const {items} = await ask("GET", "/v1/grants?received=true&limit=100");
    const threads = items.filter((each) => each.threadId && !each.revokedAt);
    return threads.length ? [make("h2", {}, "Threads shared with you"), rows(threads.map((each) =>
      make("li", {}, make("div", {}, link(`threads/${each.edgeId}/${each.threadId}`, each.threadId),
        make("span", {class: "soft"}, joinTexts(each.role, formatTime(each.createdAt)))))))] : [];
  });
  return [make("h1", {}, `Hello, ${person.name}`),
    make("h2", {}, "Waiting for you"), approvals,
    start,
    make("h2", {}, "Started from this Hub"), tasks,
    make("h2", {}, "Machines"), machines, shared];
}

function showDevices() {
  const machines = part(["devices"], () => {
    const found = [...devices.values()];
    return found.length ? [rows(found.map(deviceRow)), make("p", {}, "To add one, run ",
      make("code", {}, `factwire join ${location.origin}`), " there and ",
      make("a", {href: "/device"}, "confirm its code"), ".")] : joinHelp();
  });
  const former = part(["devices"], async () => {
    const found = (await listAll("/v1/edges")).filter((each) => !deviceOf(each.edgeId));
    return found.length ? [make("h2", {}, "Machines that have left"), rows(found.map((each) =>
      make("li", {}, link(`edges/${each.edgeId}`, each.deviceName))))] : [];
  });
  const screens = part(["devices", "screens"], async () =>
    rows((await listAll("/v1/me/sessions")).map(screenRow)));
  const pairing = make("div", {class: "card"});
  offerPairing(pairing, leaving.signal);
  return [make("h1", {}, "Devices"),
    make("h2", {}, "Machines"), machines,
    make("h2", {}, "Pair a phone"), pairing,
    make("h2", {}, "Where you are signed in"), screens, former];
}

function screenRow(each) {
  const name = each.name || nameBrowser(each.userAgent);
  const end = command("Sign out", () => run("Signing out …", async () => {
    await ask("DELETE", `/v1/me/sessions/${each.sessionId}`);
    updateParts("screens", 0);
    say(`${name} was signed out.`);
  }), "danger");
  end.setAttribute("aria-label", `Sign out ${name}`);
  return make("li", {},
    make("div", {}, make("strong", {}, name), make("span", {class: "soft"},
      joinTexts(each.current && "this screen", each.address, `since ${formatTime(each.createdAt)}`))),
    each.current ? null : end);
}

const nameBrowser = (agent) => ["Edg", "OPR", "Firefox", "Chrome", "Safari", "factwire"]
  .find((each) => agent.includes(each))?.replace("Edg", "Edge").replace("OPR", "Opera")
  || agent.slice(0, 40) || "unknown program";

function showDevice(deviceId) {
  const device = devices.get(deviceId);
  if (!device) return notFound("There is no such machine, or it is not shared with you.");
  const isOwn = !device.role;
  const state = part(["devices"], () => {
    const now = devices.get(deviceId) || device;
    const mirror = now.mirror ? `mirrored until ${formatTime(now.mirror.uploadedAt)}` : "nothing mirrored yet";
    return [make("p", {}, badge("device", presenceOf(now))),
      soft(joinTexts(now.platform, now.version && `Factwire ${now.version}`,
        now.online ? mirror : `last seen ${formatTime(now.lastSeenAt)}`))];
  });
  return [make("h1", {}, device.name), state,
    ...(mayStartOn(device) ? [make("h2", {}, "Start an agent"), startForm(device)] : []),
    make("h2", {}, "Threads"), threadsOf(device.edgeId),
    ...(isOwn ? [make("h2", {}, "This machine"), ownDevice(device)] : [])];
}

const threadsOf = (edgeId) => part(["tasks", "devices"], async () => {
  const {items} = await ask("GET", `${pathOfEdge(edgeId)}/threads?limit=50`).catch((error) => {
    if (error.code !== "unknown_edge") throw error;
    return {items: []};
  });
  return rows(items.map(threadRow(edgeId)), "No thread was mirrored from it yet.");
});

function showEdge(edgeId) {
  const name = part(["devices"], async () => {
    const found = (await listAll("/v1/edges")).find((each) => each.edgeId === edgeId);
    return found ? [make("h1", {}, found.deviceName), note(
      `It has left this Hub${found.mirror ? `, and had sent this by ${
        formatTime(found.mirror.uploadedAt)}` : ""}.`)] : notFound();
  });
  return [name, make("h2", {}, "Threads"), threadsOf(edgeId)];
}

function ownDevice(device) {
  const form = make("form", {class: "card"},
    make("label", {}, "Name",
      make("input", {name: "name", value: device.name, maxlength: "64", required: ""})),
    make("div", {class: "actions"}, make("button", {class: "plain"}, "Rename"),
      askBefore("Revoke", `${device.name} will be disconnected and can no longer be used from here. `
        + "What was mirrored stays readable.", () => run("Revoking …", async () => {
        await ask("DELETE", `/v1/devices/${device.deviceId}`);
        await loadDevices();
        location.hash = "#/devices";
      }))));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run("Renaming …", async () => {
      const name = new FormData(form).get("name");
      await ask("PATCH", `/v1/devices/${device.deviceId}`, {name});
      await loadDevices();
      find("h1").textContent = name;
      say("Renamed.");
    });
  });
  return form;
}

const notFound = (text = "There is nothing at this address.") =>
  [make("h1", {}, "Not found"), make("p", {}, text), make("p", {}, link("", "Go home"))];

const VIEWS = {"": showHome, devices: (id) => (id ? showDevice(id) : showDevices()), tasks: showTask,
  edges: showEdge, threads: showThread, approvals: showApproval};

function route() {
  leaving.abort();
  leaving = new AbortController();
  parts = [];
  const [name, ...ids] = location.hash.replace(/^#?\/?/, "").split("/").map(decodeURIComponent);
  say("");
  find("#view").replaceChildren(...(VIEWS[name] || (() => notFound()))(...ids));
  for (const each of document.querySelectorAll("nav a")) {
    const isHere = each.getAttribute("href") === (name === "devices" ? "/#/devices" : "/#/");
    if (isHere) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  scrollTo(0, 0);
}

async function start() {
  if (!readSession()) { goToSignIn(); return; }
  try {
    [person] = [await ask("GET", "/v1/me"), await loadDevices()];
  } catch (error) {
    if (!readSession()) { goToSignIn(); return; }
    find("#view").replaceChildren(make("p", {class: "card", role: "alert"}, error.message, " ",
      command("Try again", start)));
    return;
  }
  addEventListener("hashchange", route);
  route();
  connect();
}
start();
