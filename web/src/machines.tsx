import { useState } from "preact/hooks";
import { api, type Machine } from "./api";
import { bytes, cores, credits, time } from "./format";

// Leases go on after an offer has closed.
function state(machine: Machine): string {
  if (machine.availability !== "paused") return machine.availability;
  if (machine.yield === "paused_remotely") return "paused";
  if (machine.yield !== "none" && machine.yield !== "low") return machine.yield;
  if (machine.lease_count > 0) return "busy";
  return machine.offer_state === "closed" ? "closed" : "paused";
}

function State({ machine }: { machine: Machine }) {
  const name = state(machine);
  const isShut = machine.state === "online" && machine.offer_state !== "open";
  const until = isShut && machine.offer_state_until_ms > 0 ? ` until ${time(machine.offer_state_until_ms)}` : "";
  return (
    <>
      <span class={`state ${name}`}>{name}</span>
      {isShut && (
        <span class="faint">
          {name === "busy" ? ` then ${machine.offer_state === "paused" ? "paused" : "closed"}` : ""}
          {until}
        </span>
      )}
    </>
  );
}

/* The owner's word reaches the machine at once; what it then does comes back as its state. */
function Pause({ machine }: { machine: Machine }) {
  const [problem, setProblem] = useState("");
  const isHeld = machine.yield === "paused_remotely";
  const isSaidThere = machine.yield === "paused" || machine.yield === "draining";
  const say = async () => {
    try {
      await (isHeld ? api.resume(machine.id) : api.pause(machine.id));
      setProblem("");
    } catch (failure) {
      setProblem((failure as Error).message);
    }
  };
  if (!machine.is_mine || machine.state !== "online") return null;
  // What was said at the machine ends there: nobody who has this page, or the market, undoes it.
  if (isSaidThere)
    return (
      <span class="faint">
        {machine.yield} at the machine; there: <code>souk lend resume</code>
      </span>
    );
  return (
    <>
      <button type="button" class="link" onClick={say}>
        {isHeld ? "Resume" : "Pause now"}
      </button>
      {problem && <span class="problem">{problem}</span>}
    </>
  );
}

// As `souk machines add` prints it.
async function lendCommand(): Promise<{ command: string; expires_ms: number }> {
  const [server, made] = await Promise.all([api.server(), api.machineCode()]);
  const pin = server.url.startsWith("https://") ? ` --fingerprint ${made.fingerprint}` : "";
  return { command: `souk lend --server ${server.url}${pin} --code ${made.code}`, expires_ms: made.expires_ms };
}

function Lend() {
  const [made, setMade] = useState<{ command: string; expires_ms: number }>();
  const [problem, setProblem] = useState("");
  const make = async () => {
    setProblem("");
    try {
      setMade(await lendCommand());
    } catch (failure) {
      setProblem((failure as Error).message);
    }
  };
  return (
    <div class="lend">
      <button type="button" onClick={make}>
        Lend a machine
      </button>
      {problem && <p role="alert">{problem}</p>}
      {made && (
        <>
          <p class="faint">Run this on the machine to lend, before {time(made.expires_ms)}; the code works once.</p>
          <pre>{made.command}</pre>
        </>
      )}
    </div>
  );
}

export function Machines({ machines }: { machines: Machine[] }) {
  return (
    <section aria-labelledby="machines">
      <h2 id="machines">Machines</h2>
      <div class="card scroll">
        <table>
          <thead>
            <tr>
              <th>machine</th>
              <th>state</th>
              <th>free</th>
              <th>memory</th>
              <th class="right">speed</th>
              <th class="right">round trip</th>
              <th class="right">reliability</th>
              <th>lender</th>
              <th class="right">earned</th>
            </tr>
          </thead>
          <tbody>
            {machines.map((machine) => (
              <tr key={machine.id}>
                <th scope="row" title={machine.probe.cpu_model}>
                  {machine.name}
                  {machine.offer.roles.length === 1 && machine.offer.roles[0] === "server" && (
                    <span class="faint"> · server</span>
                  )}
                </th>
                <td>
                  <State machine={machine} /> <Pause machine={machine} />
                </td>
                <td>
                  {cores(machine.free.cores_milli)} <span class="faint">of {cores(machine.offer.cores_milli)}</span>
                </td>
                <td>
                  {bytes(machine.free.ram_bytes)} <span class="faint">of {bytes(machine.offer.ram_bytes)}</span>
                </td>
                <td class="right">× {(machine.probe.speed_weight_milli / 1000).toFixed(2)}</td>
                <td class="right">{machine.probe.rtt_us ? `${(machine.probe.rtt_us / 1000).toFixed(1)} ms` : "–"}</td>
                <td class="right">{(machine.reputation.reliability_milli / 1000).toFixed(2)}</td>
                <td>{machine.is_mine ? "you" : machine.account_name}</td>
                <td class="right">{credits(machine.earned_microcredits)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {machines.length === 0 && <p class="faint">No machine is lent yet.</p>}
      </div>
      <Lend />
    </section>
  );
}
