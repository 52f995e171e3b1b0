/** How each word of a status looks. The words are the projection's; none is made up here. */

import type { IconName } from "./Icon";

export type Tone = "calm" | "good" | "warn" | "bad" | "busy";

export interface Look {
  tone: Tone;
  icon: IconName;
  words: string;
}

const look = (tone: Tone, icon: IconName, words: string): Look => ({ tone, icon, words });

const LOOKS: Record<string, Look> = {
  idle: look("calm", "circle", "Idle"),
  draft: look("calm", "circle", "Draft"),
  pending: look("calm", "clock", "Pending"),
  accepted: look("busy", "clock", "Accepted"),
  submitted: look("busy", "clock", "Submitted"),
  queued: look("calm", "queue", "Queued"),
  held: look("warn", "pause", "Held"),
  preparing: look("busy", "play", "Preparing"),
  running: look("busy", "play", "Running"),
  progress: look("busy", "play", "Running"),
  streaming: look("busy", "play", "Running"),
  retrying: look("busy", "retry", "Retrying"),
  "input-streaming": look("busy", "play", "Preparing"),
  "input-available": look("busy", "clock", "Ready"),
  "output-available": look("good", "check", "Done"),
  "output-error": look("bad", "alert", "Failed"),
  waiting: look("warn", "pause", "Needs you"),
  waiting_input: look("warn", "pause", "Needs input"),
  waiting_permission: look("warn", "pause", "Needs permission"),
  waiting_resource: look("warn", "clock", "Waiting for a resource"),
  needs_input: look("warn", "pause", "Needs you"),
  plan_ready: look("warn", "plan", "Plan ready"),
  blocked: look("warn", "pause", "Blocked"),
  paused: look("warn", "pause", "Paused"),
  created: look("calm", "plus", "Created"),
  updated: look("calm", "retry", "Updated"),
  changed: look("calm", "retry", "Changed"),
  deleted: look("calm", "close", "Deleted"),
  started: look("busy", "play", "Started"),
  available: look("calm", "circle", "Available"),
  recorded: look("calm", "check", "Recorded"),
  exported: look("good", "check", "Exported"),
  passed: look("good", "check", "Passed"),
  allow: look("good", "check", "Allowed"),
  deny: look("bad", "skip", "Denied"),
  completed: look("good", "check", "Completed"),
  finished: look("good", "check", "Finished"),
  final: look("good", "check", "Done"),
  ready: look("good", "check", "Ready"),
  approved: look("good", "check", "Approved"),
  resolved: look("good", "check", "Decided"),
  denied: look("bad", "skip", "Denied"),
  rejected: look("bad", "skip", "Rejected"),
  expired: look("calm", "clock", "Expired"),
  closed: look("calm", "skip", "Closed"),
  failed: look("bad", "alert", "Failed"),
  timed_out: look("bad", "clock", "Timed out"),
  lost: look("bad", "alert", "Lost"),
  cancelling: look("calm", "stop", "Stopping"),
  cancelled: look("calm", "stop", "Stopped"),
  canceled: look("calm", "stop", "Stopped"),
  interrupted: look("calm", "stop", "Interrupted"),
  archived: look("calm", "archive", "Archived"),
  stale: look("warn", "clock", "Stale"),
  spawned: look("busy", "clock", "Spawned"),
  connected: look("busy", "check", "Connected"),
  disconnected: look("warn", "alert", "Disconnected"),
  requested: look("warn", "clock", "Requested"),
  unknown: look("calm", "unknown", "Unknown"),
  unavailable: look("calm", "skip", "Unavailable"),
};

export function lookOf(status: string | null | undefined): Look {
  const word = status ?? "unknown";
  return (Object.hasOwn(LOOKS, word) ? LOOKS[word] : undefined) ?? look("calm", "unknown", word);
}
