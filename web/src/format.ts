// Numbers as people read them.

// Exact: no digit that counts is left out.
export function credits(microcredits: number): string {
  return (microcredits / 1e6).toFixed(microcredits % 10_000 === 0 ? 2 : 6);
}

export function cores(milli: number): string {
  const value = milli / 1000;
  return `${Number.isInteger(value) ? value : value.toFixed(2)} ${value === 1 ? "core" : "cores"}`;
}

export function bytes(size: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (size >= 1024 && unit + 1 < units.length) {
    size /= 1024;
    unit++;
  }
  return `${size < 10 && unit > 0 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

export function percent(share: number | null): string {
  return share === null ? "–" : `${(share * 100).toFixed(1)} %`;
}

export function number(value: number | null, digits: number): string {
  return value === null ? "–" : value.toFixed(digits);
}

export function time(at_ms: number): string {
  return new Date(at_ms).toLocaleString(undefined, {
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  });
}

export function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}
