/** What a reader has folded or unfolded by hand; rows that leave the screen forget nothing. */

import { create } from "zustand";

const useFolds = create<Record<string, boolean>>(() => ({}));

/** Whether it is open, by hand or else as `preset` says, and how to change that. */
export function useFold(key: string, preset: boolean): [boolean, () => void] {
  const open = useFolds((folds) => folds[key]) ?? preset;
  return [open, () => useFolds.setState({ [key]: !open })];
}
