// Of what the browser is to tell while this page is in the background. Kept in this browser, like its permission.
import { computed, effect, signal } from "@preact/signals";

export type Notice = "jobs" | "machines" | "earnings";
export const noticeKinds: readonly Notice[] = ["jobs", "machines", "earnings"];

// "none": a browser without them, or a page that is not served safely.
export type Permission = NotificationPermission | "none";

const KEY = "notices";
const canTell = () => "Notification" in window && isSecureContext;

export const permission = signal<Permission>(canTell() ? Notification.permission : "none");
const kept = (localStorage.getItem(KEY) ?? "").split(" ");
const wanted = signal<readonly Notice[]>(noticeKinds.filter((kind) => kept.includes(kind)));
effect(() => localStorage.setItem(KEY, wanted.value.join(" ")));

export const chosen = computed<readonly Notice[]>(() => (permission.value === "granted" ? wanted.value : []));

// What is allowed or blocked in the browser's own settings is seen at once.
if (canTell())
  void navigator.permissions.query({ name: "notifications" }).then((status) => {
    status.onchange = () => (permission.value = Notification.permission);
  });

// To be called by a click alone: the browser asks then, if it has to.
export async function choose(kind: Notice, isOn: boolean): Promise<void> {
  if (isOn && permission.peek() === "default") permission.value = await Notification.requestPermission();
  if (isOn && permission.peek() !== "granted") return;
  wanted.value = noticeKinds.filter((each) => (each === kind ? isOn : wanted.peek().includes(each)));
}

export interface Told {
  tag: string; // one of the same tag is replaced
  title: string;
  body: string;
  onClick?: () => void;
}

export function tellOutside({ tag, title, body, onClick }: Told): void {
  try {
    const shown = new Notification(title, { tag, body, icon: "/icon.svg" });
    shown.onclick = () => {
      focus();
      onClick?.();
      shown.close();
    };
  } catch {
    permission.value = "none"; // a phone's browser has the word, and refuses to be told this way
  }
}
