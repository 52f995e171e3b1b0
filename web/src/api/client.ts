/** One typed function for every operation of the Edge; addresses and types are generated. */

import { signOut, token } from "./auth";
import { OPERATIONS, type Operations } from "./generated/rest";
import { Refusal, refusalOf, unreachable } from "./refusal";

export type OperationName = keyof Operations;
export type Answer<Name extends OperationName> = Operations[Name]["answer"];

export interface Request<Name extends OperationName> {
  path?: Operations[Name]["path"];
  query?: Operations[Name]["query"];
  body?: Operations[Name]["body"];
  /** Sending the same key again does nothing new, so a lost answer can be asked for again. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

/** Carry out an operation; a refusal is thrown as `Refusal`. */
export async function call<Name extends OperationName>(
  name: Name,
  request: Request<Name> = {},
): Promise<Answer<Name>> {
  const answer = await send(name, request);
  if (answer.status === 204) return undefined as Answer<Name>;
  const json = answer.headers.get("content-type")?.includes("json") ?? false;
  return (json ? await answer.json() : await answer.blob()) as Answer<Name>;
}

/** The health of the Edge; one that is not well says so with the status 503, and why. */
export async function readHealth(signal?: AbortSignal): Promise<Answer<"readHealth">> {
  const answer = await reach(addressOf("readHealth", {}), { headers: headersOf({}), signal: signal ?? null, cache: "no-store" });
  if (!answer.ok && answer.status !== 503) throw await refusalOf(answer);
  return (await answer.json()) as Answer<"readHealth">;
}

/** The same, with the answer as it came: for bytes that are read piece by piece. */
export async function send<Name extends OperationName>(
  name: Name,
  request: Request<Name> = {},
): Promise<Response> {
  const { method } = OPERATIONS[name];
  const answer = await reach(addressOf(name, request), {
    method,
    headers: headersOf(request),
    body: request.body == null ? null : JSON.stringify(request.body),
    signal: request.signal ?? null,
    cache: "no-store",
  });
  if (answer.ok) return answer;
  if (answer.status === 401) signOut();
  throw await refusalOf(answer);
}

export function addressOf<Name extends OperationName>(name: Name, request: Request<Name>): string {
  const fields = (request.path ?? {}) as Record<string, string>;
  const path = OPERATIONS[name].path.replace(/\{(\w+)\}/g, (_, field: string) =>
    encodeURIComponent(fields[field] ?? ""),
  );
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(request.query ?? {})) {
    if (value !== undefined && value !== null) query.set(key, String(value));
  }
  return query.size > 0 ? `${path}?${query}` : path;
}

export function newKey(): string {
  return crypto.randomUUID();
}

async function reach(address: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw unreachable();
  }
}

function headersOf(request: Request<OperationName>): Record<string, string> {
  const held = token();
  return {
    ...(held === null ? {} : { authorization: `Bearer ${held}` }),
    ...(request.body == null ? {} : { "content-type": "application/json" }),
    ...(request.idempotencyKey === undefined ? {} : { "idempotency-key": request.idempotencyKey }),
  };
}

export { Refusal };
