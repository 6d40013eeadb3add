// Light, dark, or as the system says: kept in this browser.
import { computed, effect, signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";
export const themes: readonly Theme[] = ["auto", "light", "dark"];

const KEY = "theme";
const asked = matchMedia("(prefers-color-scheme: dark)");
const isSystemDark = signal(asked.matches);
asked.addEventListener("change", (event) => (isSystemDark.value = event.matches));

const isTheme = (word: string | null): word is Theme => themes.includes(word as Theme);
const kept = localStorage.getItem(KEY);
export const theme = signal<Theme>(isTheme(kept) ? kept : "auto");
export const isDark = computed(() => (theme.value === "auto" ? isSystemDark.value : theme.value === "dark"));

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  localStorage.setItem(KEY, theme.value);
});

// A colour of the tokens as a canvas takes it: tokens differ by theme, so the browser has to say.
export function colour(token: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${token})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
