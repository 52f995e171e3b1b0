/**
 * Files that were added and not sent, by the place of their draft. Storing goes on when the page shows
 * something else; what is stored outlives a reload, as the draft does.
 */

import { create } from "zustand";

import { call, newKey } from "../api/client";
import { ATTACHMENT_BYTES, ATTACHMENTS } from "../api/limits";
import { wordsOf } from "../api/refusal";
import { readDraft, writeDraft } from "../state/drafts";
import { toast } from "../ui";
import { readKept, sizeWords, type AssetPart, type Attachment } from "./attachment";

const useStore = create<Record<string, Attachment[]>>(() => ({}));
const LIST = "files";

export interface Attachments {
  attachments: Attachment[];
  /** Some are on their way, and a message would leave them behind. */
  storing: boolean;
  add(files: File[]): void;
  remove(id: string): void;
  /** These went with a message; others may have come meanwhile. */
  sent(parts: AssetPart[]): void;
}

export function useAttachments(place: string): Attachments {
  const attachments = useStore((all) => all[place]) ?? listOf(place);
  return {
    attachments,
    storing: attachments.some(({ phase }) => phase === "storing"),
    add: (files) => addTo(place, files),
    remove: (id) => change(place, (list) => list.filter((one) => one.id !== id)),
    sent: (parts) => change(place, (list) => list.filter((one) => !parts.some(({ ref }) => ref === one.ref))),
  };
}

/** Somebody signs out: what the next one adds is theirs alone. */
export function forgetAttachments(): void {
  useStore.setState({}, true);
}

const kept = new Map<string, { text: string | null; list: Attachment[] }>();

/** The list of a place that nobody has changed since the page was loaded. */
function listOf(place: string): Attachment[] {
  const text = readDraft(LIST, place);
  const known = kept.get(place);
  if (known !== undefined && known.text === text) return known.list;
  const list = readKept(text);
  kept.set(place, { text, list });
  return list;
}

function change(place: string, how: (list: Attachment[]) => Attachment[]): void {
  const list = how(useStore.getState()[place] ?? listOf(place));
  useStore.setState({ [place]: list });
  const stored = list.filter(({ phase }) => phase === "stored");
  writeDraft(LIST, place, stored.length === 0 ? "" : JSON.stringify(stored));
}

function addTo(place: string, files: File[]): void {
  const room = ATTACHMENTS - (useStore.getState()[place] ?? listOf(place)).length;
  if (files.length > room) toast(`A message can have up to ${ATTACHMENTS} attachments; ${files.length - room} not added.`);
  for (const file of files.slice(0, room)) void store(place, file);
}

async function store(place: string, file: File): Promise<void> {
  const id = newKey();
  const set = (news: Partial<Attachment>) => change(place, (list) => list.map((one) => (one.id === id ? { ...one, ...news } : one)));
  const fresh: Attachment = { id, name: file.name, mediaType: file.type, bytes: file.size, phase: "storing", ref: null, message: null };
  change(place, (list) => [...list, fresh]);
  try {
    if (file.size > ATTACHMENT_BYTES) throw new Error(`Larger than ${sizeWords(ATTACHMENT_BYTES)}`);
    const { ref } = await call("createBlob", { body: { content: await base64Of(file) }, idempotencyKey: id });
    set({ phase: "stored", ref });
  } catch (reason) {
    set({ phase: "failed", message: wordsOf(reason) });
  }
}

function base64Of(file: File): Promise<string> {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => failed(new Error("The file could not be read."));
    reader.readAsDataURL(file);
  });
}
