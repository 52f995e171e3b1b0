import { toast } from "./Toast";

export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied", "good");
  } catch {
    toast("Your browser blocked copying. Select the text instead.");
  }
}
