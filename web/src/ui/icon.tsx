// Every icon of the page: strokes on a grid of 24.
const paths = {
  dashboard: "M4 4h7v9H4zM13 4h7v5h-7zM13 11h7v9h-7zM4 15h7v5H4z",
  lend: "M4 5h16v11H4zM9 20h6M12 16v4M12 13V8.5M9.5 10.5 12 8l2.5 2.5",
  train: "M6 6a2 2 0 1 0 0 .1M6 18a2 2 0 1 0 0 .1M18 12a2 2 0 1 0 0 .1M12 7.5 16.5 11M12 16.5 16.5 13M8 6h3l1 1.5M8 18h3l1-1.5",
  jobs: "M9 6h11M9 12h11M9 18h11M4.5 6h.01M4.5 12h.01M4.5 18h.01",
  market: "M4 10c0-2 1.3-4.5 2-5.5h12c.7 1 2 3.5 2 5.5a2.7 2.7 0 0 1-5.3 0 2.7 2.7 0 0 1-5.4 0A2.7 2.7 0 0 1 4 10zM6 14v6h12v-6",
  wallet: "M4 7.5A2.5 2.5 0 0 1 6.5 5H18v3M4 7.5V18a1.5 1.5 0 0 0 1.5 1.5H20V8H4.5M16 13.8h.01",
  settings: "M4 7h9M17 7h3M15 5v4M4 12h3M11 12h9M9 10v4M4 17h9M17 17h3M15 15v4",
  operator: "M12 3.5 19 6v5.5c0 4.3-2.9 7.3-7 9-4.1-1.7-7-4.7-7-9V6zM9 12l2.2 2.2L15 10.3",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  auto: "M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16",
  light: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M18.7 5.3l-1.4 1.4M6.7 17.3l-1.4 1.4",
  dark: "M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z",
  copy: "M9 9h11v11H9zM15 9V4H4v11h5",
  check: "M5 12.5 10 17.5 19.5 7",
  close: "M6 6l12 12M18 6 6 18",
  signOut: "M10 4H5v16h5M9.5 12H20M16 8l4 4-4 4",
  download: "M12 4v11M7.5 11 12 15.5 16.5 11M5 20h14",
  plus: "M12 5v14M5 12h14",
  search: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13M15.5 15.5 20 20",
  pause: "M8 5v14M16 5v14",
  play: "M7 4.5v15l12-7.5z",
  warn: "M12 4 2.8 20h18.4zM12 10v4.5M12 17.3h.01",
  info: "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17M12 11v5.5M12 7.8h.01",
  up: "M6 14.5 12 8.5l6 6",
  down: "M6 9.5l6 6 6-6",
  next: "M9.5 6l6 6-6 6",
  back: "M14.5 6l-6 6 6 6",
} as const;

export type IconName = keyof typeof paths;

// Beside words, so it says nothing itself; a button with an icon alone has an aria-label.
export function Icon({ name, size = 20 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}
