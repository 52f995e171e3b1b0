const OPEN_TASKS = ["queued", "delivered", "running", "unknown", "dead"];
const SHOWN_ITEMS = 200;
function describeTask(task, device) {
  const {taskSentences: known} = STATUS_WORDS, presence = presenceOf(device);
  const found = (task.closing && OPEN_TASKS.includes(task.status)
    && (device.online ? known.stopping : known.stopping_offline))
    || known[`${task.status}_${presence}`] || known[task.status];
  return found ? toSentence(found, {device: device.name}) : "";
}

function showTask(taskId) {
  let opened = false;
  const state = part(["tasks", "devices"], async () => {
    const task = await ask("GET", `/v1/agent-tasks/${encodeURIComponent(taskId)}`);
    const device = devices.get(task.deviceId) || {name: nameOf(task.deviceId), online: false};
    // A task that has begun is its thread; one that has not is a page of its own.
    if (task.edgeRunId && device.edgeId && !opened) {
      opened = true;
      location.replace(`#/threads/${device.edgeId}/${task.threadId}`);
    }
    const said = describeTask(task, device);
    return [make("h1", {}, task.prompt.slice(0, 200)), make("p", {}, badge("task", stateOf(task))),
      soft(joinTexts(task.agentType, device.name, formatTime(task.createdAt))),
      said ? note(said) : "",
      task.error ? make("p", {role: "alert"}, `${task.error.message} (${task.error.code})`) : "",
      OPEN_TASKS.includes(task.status) ? make("div", {class: "actions"},
        command("Cancel", () => run("Cancelling …", async () => {
          await ask("POST", `/v1/agent-tasks/${task.taskId}:cancel`);
          say("");
          updateParts("tasks", 0);
        }), "danger")) : ""];
  });
  return [state];
}

// The items that have ended are read once; a thread of thousands costs what is new of it.
function readItems(path) {
  const settled = [];
  const isSettled = (item) => ["completed", "failed", "interrupted", "retracted"].includes(item.status);
  return async () => {
    const found = [];
    let next = settled.at(-1)?.itemId;
    do {
      const page = await ask("GET", `${path}/items?limit=500`
        + (next ? `&cursor=${encodeURIComponent(next)}` : "")).catch((error) => {
        if (error.code === "cursor_invalid") settled.length = 0;
        throw error;
      });
      found.push(...page.items);
      next = page.next;
    } while (next);
    const open = found.findIndex((item) => !isSettled(item));
    const all = [...settled, ...found];
    settled.push(...found.slice(0, open < 0 ? found.length : open));
    return all;
  };
}

const pretty = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
const briefly = (input) => {
  if (input === undefined || input === null) return "";
  if (typeof input !== "object") return pretty(input).split("\n")[0].slice(0, 120);
  return briefly(input.command ?? input.path ?? input.file_path ?? Object.values(input)[0]);
};

function drawItem(item, isOpen) {
  const content = item.content || {};
  if (item.type === "tool") {
    const body = make("details", {class: "card", "data-item": item.itemId, open: isOpen ? "" : null},
      make("summary", {}, make("strong", {}, content.toolName || "tool"), " ",
        make("code", {}, verbatim(briefly(content.input))), " ", badge("item", item.status)));
    if (content.input) body.append(make("pre", {}, verbatim(pretty(content.input))));
    if (content.output) body.append(make("pre", {}, verbatim(pretty(content.output))));
    if (!content.output && content.outputRef) body.append(soft("The output is too large for this page."));
    return make("div", {class: "item"}, body);
  }
  const isUser = item.type === "user_message";
  return make("div", {class: "item"},
    soft(joinTexts(isUser ? item.by?.name || "Somebody" : item.subagentId ? `Subagent ${item.subagentId}`
      : item.type === "agent_message" ? "Agent" : item.type.replaceAll("_", " "),
    item.createdAt && formatTime(item.createdAt), item.status === "retracted" && "taken back")),
    make("p", {class: isUser ? "text said" : "text"}, content.text || "…"));
}

const NOT_THERE = "Nothing of this thread has arrived from its machine, or it is not shared with you.";

function showThread(edgeId, threadId) {
  const path = `${pathOfEdge(edgeId)}/threads/${encodeURIComponent(threadId)}`;
  const items = readItems(path), {signal} = leaving;
  let thread = null, showsAll = false;
  const head = part(["thread", "devices"], async () => {
    thread = await ask("GET", path).catch((error) => {
      if (error.status !== 404) throw error;
      return null;
    });
    const failure = thread?.activity === "failed" && thread.latestRunId
      ? (await ask("GET", `${pathOfEdge(edgeId)}/runs/${encodeURIComponent(thread.latestRunId)}`)).error
      : null;
    return thread ? drawHead(thread, edgeId, failure) : [make("h1", {}, "Thread"), note(NOT_THERE)];
  });
  const list = part(["thread"], async () => {
    const found = await items().catch((error) => {
      if (error.status !== 404) throw error;
      return [];
    });
    const shown = showsAll ? found : found.slice(-SHOWN_ITEMS), more = found.length - shown.length;
    const open = new Set([...list.querySelectorAll("details[open]")].map((each) => each.dataset.item));
    return [more ? command(`Show ${countOf(more, "earlier item")}`, () => {
      showsAll = true;
      updateParts("thread", 0);
    }) : "", ...shown.map((each) => drawItem(each, open.has(each.itemId)))];
  });
  const waiting = part(["approvals"], async () => {
    const {items: asked} = await ask("GET", "/v1/approvals?limit=100");
    const own = asked.filter((each) => each.edgeId === edgeId && each.threadId === threadId);
    return own.length ? [make("h2", {}, "Waiting for you"), rows(own.map(approvalRow))] : "";
  });
  const queue = part(["tasks"], async () => {
    const {items: tasks} = await ask("GET", "/v1/agent-tasks?limit=50");
    const own = tasks.filter((each) => each.threadId === threadId && !each.edgeRunId
      && OPEN_TASKS.includes(each.status));
    return own.length ? [make("h2", {}, "Waiting for the machine"), rows(own.map(taskRow))] : "";
  });
  followThread(edgeId, threadId, signal);
  return [head, list, waiting, queue, continueForm(() => thread, edgeId)];
}

function drawHead(thread, edgeId, failure) {
  const device = deviceOf(edgeId), until = device?.mirror?.uploadedAt;
  const isOpen = ["running", "waiting"].includes(thread.activity) && thread.latestRunId;
  const sent = `This is everything that it had sent${until ? ` by ${formatTime(until)}` : ""}.`;
  const stop = () => run("Stopping …", async () => {
    await ask("POST", `${pathOfEdge(edgeId)}/runs/${encodeURIComponent(thread.latestRunId)}:cancel`);
    say("");
  });
  return [make("h1", {}, thread.title || thread.threadId), make("p", {}, badge("thread", thread.activity)),
    failure ? make("p", {role: "alert"}, verbatim(`${failure.message} (${failure.code})`)) : "",
    make("p", {class: "soft"}, thread.agentId ? `${thread.agentId} on ` : "On ",
      device ? link(`devices/${device.deviceId}`, device.name) : nameOf("")),
    device && !device.online
      ? note(`${device.name} is offline. ${sent} It catches up when it is back.`) : "",
    thread.queuedRuns?.length
      ? note(`${countOf(thread.queuedRuns.length, "message")} will follow when this turn has ended.`) : "",
    isOpen && device?.online && mayStartOn(device)
      ? make("div", {class: "actions"}, command("Stop", stop, "danger")) : ""];
}

function continueForm(threadOf, edgeId) {
  const form = make("form", {class: "card"},
    make("label", {}, "Tell the agent", make("textarea", {name: "prompt", required: ""})),
    make("div", {class: "actions"}, make("button", {}, "Send")));
  const device = deviceOf(edgeId);
  if (!mayStartOn(device)) return "";
  let key = crypto.randomUUID();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run("Sending …", async () => {
      const {threadId, agentId} = threadOf() || {}, prompt = new FormData(form).get("prompt");
      const body = {deviceId: device.deviceId, agentType: agentId, threadId, prompt};
      await ask("POST", "/v1/agent-tasks", body, {"idempotency-key": key});
      key = crypto.randomUUID();
      form.reset();
      say("");
      updateParts("tasks", 0);
    });
  });
  return form;
}

const LOST_DECISIONS = {
  not_acknowledged: "refused", delivery_expired: "expired", device_revoked: "refused",
  right_ended: "refused",
};
const isLost = (approval) => LOST_DECISIONS[approval.code] === approval.state;

function describeApproval(approval) {
  const {approvalSentences: known} = STATUS_WORDS, {state, required} = approval;
  const device = nameOfEdge(approval.edgeId), on = deviceOf(approval.edgeId) || {online: false};
  const isLate = approval.code === "overdue" && approval.decision;
  const votes = approval.votes.filter((each) => each.decision === "allow").length;
  const by = approval.decidedBy?.name ? ` by ${approval.decidedBy.name}` : "";
  const found = isLost(approval) ? known.lost : isLate ? known.late
    : known[`${state}_${presenceOf(on)}`] || known[state] || (required > 1 ? known.votes : "");
  const names = {device, votes, required};
  if (isLost(approval) || isLate || ["decided", "sent", "applied"].includes(state)) {
    return `${approval.decision === "allow" ? "Allowed" : "Denied"}${by}: ${fill(found, names)}.`;
  }
  const why = state === "refused" && approval.code ? ` (${approval.code})` : "";
  return found ? toSentence(found + why, names) : "";
}

function showApproval(approvalId) {
  const path = `/v1/approvals/${encodeURIComponent(approvalId)}`;
  let seen = false, readHash = null;
  const body = part(["approvals", "devices"], async () => {
    const approval = await ask("GET", path), {card} = approval;
    const isWaiting = ["asked", "delivered", "seen"].includes(approval.state);
    const isOpen = isWaiting || isLost(approval);
    if (isWaiting && !seen) {
      seen = true;
      await ask("POST", `${path}/seen`);
    }
    readHash ??= card.argsHash;
    // Nobody decides by a tap that was meant for what stood here before.
    const hasChanged = readHash !== card.argsHash;
    const readAgain = () => { readHash = card.argsHash; updateParts("approvals", 0); };
    const said = describeApproval(approval);
    return [make("h1", {}, verbatim(card.prompt || approval.summary || approval.kind)),
      make("p", {class: "soft"}, joinTexts(nameOfEdge(approval.edgeId), approval.toolName,
        `${approval.riskLevel} risk`)),
      said ? note(said) : "",
      ...(card.shown ? [make("pre", {}, verbatim(card.shown))]
        : card.reason ? [note(`The exact text cannot be shown: ${card.reason}`)] : []),
      card.masks ? soft(`${countOf(card.masks, "secret")} masked.`) : "",
      isOpen && hasChanged ? note("The agent has changed its request. ",
        command("I have read it again", readAgain)) : "",
      isOpen && !hasChanged ? decisionButtons(approval, path) : "",
      make("h2", {}, "Progress"),
      make("dl", {}, Object.entries(STATUS_WORDS.approvalSteps).flatMap(([step, text]) => [
        make("dt", {}, capitalize(text)),
        make("dd", {}, approval[`${step}At`] ? formatTime(approval[`${step}At`], "2-digit") : "—")])),
      approval.threadId ? make("p", {}, link(`threads/${approval.edgeId}/${approval.threadId}`,
        "Open its thread")) : ""];
  });
  return [body];
}

function decisionButtons(approval, path) {
  if (!approval.mayDecide) return soft("You may see this, but not decide it.");
  const argsHash = approval.card.argsHash || approval.argsHash;
  const decide = (decision) => () => run("", async () => {
    await ask("POST", `${path}/decide`, {decision, argsHash})
      .finally(() => updateParts("approvals", 0));
  });
  return make("div", {class: "actions", "data-hash": argsHash},
    approval.card.shown ? command("Allow", decide("allow"), "main") : null,
    command("Deny", decide("deny"), "danger"));
}
