// Numbers as they are typed, exactly: decimals of a unit become whole numbers of what the API counts in.
const SHAPE = /^(-?)(\d{1,12})(?:\.(\d{1,6}))?$/;
const PARTS = 1_000_000n;

// How many of what the API counts in, of which `scale` make one of what is typed; null: no number, or too fine a one.
export function scaledOf(typed: string, scale: number): number | null {
  const parts = SHAPE.exec(typed.trim());
  if (!parts) return null;
  const millionths = BigInt(parts[2]!) * PARTS + BigInt((parts[3] ?? "").padEnd(6, "0"));
  const whole = millionths * BigInt(scale);
  const value = Number(whole / PARTS) * (parts[1] ? -1 : 1);
  return whole % PARTS === 0n && Number.isSafeInteger(value) ? value : null;
}

export function microcreditsOf(typed: string): number | null {
  const value = scaledOf(typed, 1_000_000);
  return value !== null && value >= 0 ? value : null;
}
