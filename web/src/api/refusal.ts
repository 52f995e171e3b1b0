import type { ProblemDocument } from "./generated/rest";

/** A request that the Edge refused, or that never reached it (`code` is `unreachable`). */
export class Refusal extends Error {
  readonly code: string;
  readonly status: number;
  readonly traceId: string | null;

  constructor(code: string, status: number, message: string, traceId: string | null = null) {
    super(message);
    this.name = "Refusal";
    this.code = code;
    this.status = status;
    this.traceId = traceId;
  }
}

export function unreachable(): Refusal {
  return new Refusal("unreachable", 0, "Cannot reach the Edge. Is it running?");
}

/** The problem document of an answer; whatever else comes is told by its status. */
export async function refusalOf(answer: Response): Promise<Refusal> {
  const problem = await readProblem(answer);
  if (problem === null) {
    return new Refusal("unknown", answer.status, `The Edge answered ${answer.status} without giving a reason.`);
  }
  return new Refusal(problem.code, problem.status, problem.detail, problem.traceId);
}

async function readProblem(answer: Response): Promise<ProblemDocument | null> {
  if (!answer.headers.get("content-type")?.includes("problem+json")) return null;
  try {
    return (await answer.json()) as ProblemDocument;
  } catch {
    return null;
  }
}

/** What to tell a person about anything that was thrown. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
