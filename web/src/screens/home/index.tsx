import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { call, newKey } from "../../api/client";
import { wordsOf } from "../../api/refusal";
import { AttachButton, Chips, partsOf, takesFiles, useAttachments, type AssetPart } from "../../attachments";
import { useDraft } from "../../state/drafts";
import { useAgents, useProjects, useThreads } from "../../state/queries";
import { Button, Card, Spinner } from "../../ui";
import { AgentChoice } from "./AgentChoice";
import styles from "./Home.module.css";

const DEMO = "demo";
const DEMO_PROMPT = "demo: tour";

/** Begin a thread: whom to ask, and what. */
export default function Home() {
  const agents = useAgents();
  const isNew = useThreads().data?.length === 0;
  const demo = agents.data?.items.some((agent) => agent.agentId === DEMO && agent.available) ?? false;
  return (
    <div className={styles.page}>
      <h1 className={styles.title}>New thread</h1>
      {isNew && demo && <Demo />}
      {agents.isPending && <Spinner label="Loading agents" />}
      {agents.error && (
        <p className={styles.error} role="alert">
          {wordsOf(agents.error)}
        </p>
      )}
      {agents.data && <Begin agents={agents.data.items} preset={agents.data.default ?? null} />}
    </div>
  );
}

function Demo() {
  const { start, busy, error } = useStart();
  return (
    <Card className={styles.demo} aria-label="Demo">
      <div>
        <h2>See how it works</h2>
        <p className={styles.soft}>A scripted agent does real work: it writes files, asks for approval first, and leaves evidence. No API key needed.</p>
        {error && <p className={styles.error}>{error}</p>}
      </div>
      <Button kind="primary" icon="play" busy={busy} onClick={() => void start({ agentId: DEMO, prompt: DEMO_PROMPT })}>
        Start the demo
      </Button>
    </Card>
  );
}

interface BeginProps {
  agents: Parameters<typeof AgentChoice>[0]["agents"];
  preset: string | null;
}

function Begin({ agents, preset }: BeginProps) {
  const [prompt, setPrompt] = useDraft("new");
  const files = useAttachments("new");
  const [picked, setPicked] = useState<string | null>(null);
  const [projectId, setProjectId] = useState("");
  const { start, busy, error } = useStart();
  const chosen = picked ?? preset ?? agents.find((agent) => agent.available)?.agentId ?? null;
  const input = partsOf(files.attachments);
  const ready = chosen !== null && !files.storing && (prompt.trim() !== "" || input.length > 0);
  const submit = async () => {
    if (!ready || busy) return;
    const begun = await start({ agentId: chosen, prompt, ...(projectId === "" ? {} : { projectId }), ...(input.length === 0 ? {} : { input }) });
    if (!begun) return;
    setPrompt("");
    files.sent(input);
  };
  return (
    <form
      className={styles.form}
      {...takesFiles(files.add)}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <textarea
        className={styles.prompt}
        aria-label="What should the agent do?"
        placeholder="What should the agent do?"
        dir="auto"
        autoFocus
        value={prompt}
        onChange={(event) => setPrompt(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          void submit();
        }}
      />
      <Chips attachments={files.attachments} onRemove={files.remove} />
      <AgentChoice agents={agents} chosen={chosen} onChoose={setPicked} />
      {error && (
        <p className={styles.error} role="alert">
          {error}
        </p>
      )}
      <div className={styles.foot}>
        <AttachButton onFiles={files.add} />
        <ProjectChoice chosen={projectId} onChoose={setProjectId} />
        <span className={styles.space} />
        <Button type="submit" kind="primary" icon="send" busy={busy} disabled={!ready}>
          Start
        </Button>
      </div>
    </form>
  );
}

function ProjectChoice({ chosen, onChoose }: { chosen: string; onChoose: (projectId: string) => void }) {
  const projects = useProjects().data ?? [];
  if (projects.length === 0) return null;
  return (
    <select className={styles.select} aria-label="Project" value={chosen} onChange={(event) => onChoose(event.target.value)}>
      <option value="">No project</option>
      {projects.map((project) => (
        <option key={project.projectId} value={project.projectId}>
          {project.name}
        </option>
      ))}
    </select>
  );
}

interface Wish {
  agentId: string;
  prompt: string;
  projectId?: string;
  input?: AssetPart[];
}

const TITLE_CHARACTERS = 80;

/** Ask for a run on a fresh thread, and go there. What was typed stays until that has worked. */
function useStart() {
  const navigate = useNavigate();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const start = async (wish: Wish): Promise<boolean> => {
    setBusy(true);
    setError(null);
    try {
      const title = wish.prompt.trim().split("\n", 1)[0]?.slice(0, TITLE_CHARACTERS) || "New thread";
      const run = await call("createRun", { body: { ...wish, title }, idempotencyKey: newKey() });
      if (run.threadId != null) await navigate({ to: "/threads/$threadId", params: { threadId: run.threadId } });
      return true;
    } catch (reason) {
      setError(wordsOf(reason));
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { start, busy, error };
}
