// Adding a machine goes through these stages: the command waits for it, or has expired, or the machine has arrived.
interface Known {
  id: number;
}

interface Found<M> {
  stage: "waiting" | "expired" | "arrived";
  arrived?: M;
}

// `known`: the machines that were there when the command was made. One that arrives counts however late it is.
export function stageOf<M extends Known>(expires_ms: number, now_ms: number, known: ReadonlySet<number>, machines: readonly M[]): Found<M> {
  const arrived = machines.find((machine) => !known.has(machine.id));
  if (arrived) return { stage: "arrived", arrived };
  return { stage: now_ms > expires_ms ? "expired" : "waiting" };
}
