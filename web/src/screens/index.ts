// The screens in the order of the navigation. A screen stands here as soon as it works.
import type { ComponentType } from "preact";
import { common } from "../text/en";
import type { IconName } from "../ui/icon";

export interface ScreenProps {
  rest: string[]; // the address after the screen's name: #/jobs/7/logs gives ["7", "logs"]
  query: URLSearchParams;
}

export interface Screen {
  name: string; // in the address: #/jobs
  label: string;
  icon: IconName;
  load: () => Promise<{ default: ComponentType<ScreenProps> }>;
  isOperators?: boolean;
}

export const screens: readonly Screen[] = [
  { name: "dashboard", label: common.nav.dashboard, icon: "dashboard", load: () => import("./dashboard") },
  { name: "lend", label: common.nav.lend, icon: "lend", load: () => import("./lend") },
  { name: "train", label: common.nav.train, icon: "train", load: () => import("./train") },
  { name: "jobs", label: common.nav.jobs, icon: "jobs", load: () => import("./jobs") },
  { name: "market", label: common.nav.market, icon: "market", load: () => import("./market") },
  { name: "wallet", label: common.nav.wallet, icon: "wallet", load: () => import("./wallet") },
  { name: "settings", label: common.nav.settings, icon: "settings", load: () => import("./settings") },
  { name: "operator", label: common.nav.operator, icon: "operator", isOperators: true, load: () => import("./operator") },
];

export const first = "dashboard";

// Where "Train a model" leads.
export const training = "train";
