/**
 * Changes of a state, carried out on a copy that shares all it can with the one before: whatever no
 * operation touched is the same object, so React renders only what changed. All or nothing: an
 * operation that does not fit throws, and the state before is as it was.
 */

import type { Operation } from "../api/generated/projection";
import { PatchFailed, stepsOf } from "./pointers";

export { PatchFailed };

type Members = Record<string, unknown>;
type Holder = Members | unknown[];

/** The state after all operations, in order. */
export function patched<State>(state: State, operations: Iterable<Operation>): State {
  const draft = new Draft(state);
  for (const operation of operations) draft.carryOut(operation);
  return draft.root as State;
}

/** One round of changes; a container is copied when it is first touched, and then only changed. */
class Draft {
  root: unknown;
  #own = new Set<object>();

  constructor(root: unknown) {
    this.root = root;
  }

  carryOut(operation: Operation): void {
    const steps = stepsOf(operation.path);
    const last = steps.pop();
    if (last === undefined) this.#replaceRoot(operation);
    else CARRY_OUT[operation.op]?.(this.#holder(steps), last, operation) ?? unknown(operation);
  }

  #replaceRoot(operation: Operation): void {
    if (operation.op !== "replace" && operation.op !== "add") throw misfit(operation.path);
    this.root = operation.value;
  }

  /** The container at a place, with every container on the way there made our own. */
  #holder(steps: string[]): Holder {
    let holder = (this.root = this.#owned(this.root, ""));
    for (const step of steps) {
      const child = this.#owned(childOf(holder, step), step);
      put(holder, step, child);
      holder = child;
    }
    return holder;
  }

  #owned(value: unknown, step: string): Holder {
    if (typeof value !== "object" || value === null) throw misfit(step);
    if (this.#own.has(value)) return value as Holder;
    const copy: Holder = Array.isArray(value) ? value.slice() : { ...value };
    this.#own.add(copy);
    return copy;
  }
}

const CARRY_OUT: Record<string, (holder: Holder, step: string, operation: Operation) => true> = {
  add: (holder, step, operation) => {
    if (Array.isArray(holder)) {
      holder.splice(step === "-" ? holder.length : indexOf(step, holder.length + 1), 0, valueOf(operation));
    } else put(holder, step, valueOf(operation));
    return true;
  },
  replace: (holder, step, operation) => {
    childOf(holder, step);
    put(holder, step, valueOf(operation));
    return true;
  },
  remove: (holder, step) => {
    childOf(holder, step);
    if (Array.isArray(holder)) holder.splice(Number(step), 1);
    else delete holder[step];
    return true;
  },
  append: (holder, step, operation) => {
    const text = childOf(holder, step);
    const more = valueOf(operation);
    if (typeof text !== "string" || typeof more !== "string") throw misfit(operation.path);
    put(holder, step, text + more);
    return true;
  },
};

function valueOf(operation: Operation): unknown {
  if (!("value" in operation)) throw new PatchFailed(`${operation.op} ${operation.path} needs a value`);
  return operation.value;
}

function childOf(holder: Holder, step: string): unknown {
  if (Array.isArray(holder)) return holder[indexOf(step, holder.length)];
  if (!Object.hasOwn(holder, step)) throw misfit(step);
  return holder[step];
}

/** Keys come from agents: `__proto__` must become a member like any other. */
function put(holder: Holder, step: string, value: unknown): void {
  if (Array.isArray(holder)) holder[Number(step)] = value;
  else if (step !== "__proto__") holder[step] = value;
  else Object.defineProperty(holder, step, { value, writable: true, enumerable: true, configurable: true });
}

function indexOf(step: string, end: number): number {
  if (!/^(0|[1-9]\d*)$/.test(step) || Number(step) >= end) throw misfit(step);
  return Number(step);
}

function misfit(place: string): PatchFailed {
  return new PatchFailed(`the change does not apply at ${place}`);
}

function unknown(operation: Operation): never {
  throw new PatchFailed(`${operation.op} is not a known operation`);
}
