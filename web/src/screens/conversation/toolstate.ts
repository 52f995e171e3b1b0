import type { Process, ProjectionState, Tool } from "../../api/generated/projection";

const ENDED = new Set(["output-available", "output-error", "cancelled", "stale", "unknown"]);

export function hasEnded(tool: Tool | undefined): boolean {
  return tool !== undefined && ENDED.has(tool.state);
}

const index = new WeakMap<ProjectionState["processes"], Map<string, Process>>();

/** The program of a call; the index is made once for each set of programs. */
export function programOf(state: ProjectionState, toolCallId: string): Process | undefined {
  let found = index.get(state.processes);
  if (found === undefined) {
    found = new Map(Object.values(state.processes).flatMap((one) => (one.toolCallId == null ? [] : [[one.toolCallId, one]])));
    index.set(state.processes, found);
  }
  return found.get(toolCallId);
}

/** One line about the input, cut where no screen is wider. */
export function inputLine(tool: Tool): string {
  return lineOf(tool).slice(0, LINE_CHARACTERS).replaceAll("\n", " ");
}

const LINE_CHARACTERS = 300;

/** A field that says most, else the whole as JSON. */
function lineOf(tool: Tool): string {
  if (tool.title != null) return tool.title;
  const args = tool.args;
  if (args === undefined || args === null) return tool.argsText;
  if (typeof args !== "object") return String(args);
  for (const name of ["command", "path", "file_path", "query", "url", "pattern", "description", "plan", "prompt"]) {
    const value = (args as Record<string, unknown>)[name];
    if (typeof value === "string") return value;
    if (Array.isArray(value)) return value.map(String).join(" ");
  }
  return pathsOf(args as Record<string, unknown>) ?? JSON.stringify(args);
}

/** Which files a list of changes is about, where each of them names one. */
function pathsOf(args: Record<string, unknown>): string | null {
  const changes = [args["edits"], args["changes"]].find((each): each is { path?: unknown }[] => Array.isArray(each) && each.length > 0);
  const paths = changes?.map((change) => change?.path) ?? [];
  if (paths.length === 0 || paths.some((path) => typeof path !== "string")) return null;
  return [...new Set(paths)].join(" ");
}

/** The whole input, to be read. */
export function inputText(tool: Tool): string {
  if (tool.args === undefined || tool.args === null) return tool.argsText;
  return typeof tool.args === "string" ? tool.args : JSON.stringify(tool.args, null, 2);
}

/** What it printed so far: the program's output, the call's own text, or its value. */
export function outputText(tool: Tool, program: Process | undefined): string {
  if (program !== undefined && program.output !== "") return program.output;
  if (tool.outputText !== "") return tool.outputText;
  if (tool.output === undefined || tool.output === null) return "";
  return typeof tool.output === "string" ? tool.output : JSON.stringify(tool.output, null, 2);
}
