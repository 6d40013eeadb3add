export const notices = {
  title: "Notifications",
  hint: "Your browser tells you while this page is open in the background. Kept in this browser.",
  kinds: {
    jobs: "a job ended, failed, or lacks the credits to go on",
    machines: "a machine of yours is lost, paused, or back",
    earnings: "your machines earned something (at most once an hour), or somebody gave you some",
  },
  denied:
    "This browser blocks notifications from here. Allow them for this address in the browser's settings (often behind the icon beside the address); this page notices when you did.",
  none: "This browser has no notifications here: it may be a phone's, or the market's address is not https.",
  dismissed: "The browser did not get an answer. Turn one on again, and allow it when the browser asks.",
  test: "Send one now",
  tested: "This is how it looks.",

  jobEnded: (name: string, state: string) => `${name} ${state}`,
  states: { succeeded: "succeeded", failed: "failed", cancelled: "was cancelled" } as Record<string, string>,
  jobWaits: (name: string) => `${name} does not go on`,
  jobCost: (amount: string, unit: string) => `It cost ${amount} ${unit}.`,
  machine: {
    lost: (name: string) => `${name} is lost`,
    paused: (name: string) => `${name} is paused`,
    well: (name: string) => `${name} is back`,
  },
  machineHints: {
    lost: "The market hears nothing from it. What runs there goes on without it.",
    paused: "It takes no new work.",
    well: "It takes work again.",
  },
  earned: (amount: string, unit: string) => `Your machines earned ${amount} ${unit}`,
  given: (amount: string, unit: string) => `You were given ${amount} ${unit}`,
};
