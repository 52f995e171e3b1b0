import { create } from "zustand";

export type Theme = "system" | "light" | "dark";

const KEY = "factwire.theme";
const THEMES: Theme[] = ["system", "light", "dark"];

export const useTheme = create<{ theme: Theme }>(() => ({ theme: kept() }));

export function setTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  useTheme.setState({ theme });
  applyTheme();
}

export function nextTheme(theme: Theme): Theme {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
}

/** Tokens are written with light-dark(), so the colour scheme is all there is to set. */
export function applyTheme(): void {
  const { theme } = useTheme.getState();
  document.documentElement.style.colorScheme = theme === "system" ? "light dark" : theme;
}

function kept(): Theme {
  const found = localStorage.getItem(KEY);
  return THEMES.find((theme) => theme === found) ?? "system";
}
