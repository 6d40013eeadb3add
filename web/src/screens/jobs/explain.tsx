// Why a job is still waiting, in the market's words and numbers.
import { get, type Schemas } from "../../api/client";
import { now } from "../../core/clock";
import { relative, timeShort } from "../../core/format";
import { resourceOf, useResource } from "../../core/resource";
import { jobs as words } from "../../text/en";
import { Card, Note, ProblemNote, Skeleton } from "../../ui/parts";

type Wish = NonNullable<Schemas["Explain"]["wishes"]>[number];

const explainOf = resourceOf((id: number) => get("/v1/jobs/{id}/explain", { path: { id } }), ["job", "machines"], { every_ms: 2000 });

// Those that left fewer machines than there were before.
function narrowing(wishes: readonly Wish[], machines: number): Wish[] {
  let before = machines;
  return wishes.filter((wish) => {
    const isNarrower = wish.machines_left < before;
    before = wish.machines_left;
    return isNarrower;
  });
}

function Wishes({ role, wishes, machines }: { role: "worker" | "server"; wishes: readonly Wish[]; machines: number }) {
  const told = narrowing(wishes.filter((wish) => wish.role === role), machines);
  if (!told.length) return null;
  return (
    <>
      <h3>{words.explain.of[role]}</h3>
      <ol>
        {told.map((wish) => (
          <li key={wish.wish}>{words.explain.wish(words.explain.wishes[wish.wish] ?? wish.wish, wish.machines_left)}</li>
        ))}
      </ol>
    </>
  );
}

export function Explain({ id }: { id: number }) {
  const { data, problem } = useResource(explainOf(id));
  return (
    <Card title={words.explain.title} class="explain">
      <ProblemNote problem={problem} />
      {!data && !problem && <Skeleton lines={3} />}
      {data && (
        <>
          <p class="sentences">{data.text}</p>
          {data.warning && (
            <Note tone="warn">
              {words.explain.warning}: {data.warning}.
            </Note>
          )}
          {data.nearest && (
            <Note>
              {words.explain.nearest}: {data.nearest}.
            </Note>
          )}
          {!!data.expected_start_ms && (
            <p>{words.explain.expected(timeShort(data.expected_start_ms), relative(data.expected_start_ms, now.value))}</p>
          )}
          {data.is_lacking && <p>{words.explain.lacking}</p>}
          {data.machine_count !== undefined && <p>{words.explain.machines(data.machine_count)}</p>}
          {data.wishes && (
            <>
              <Wishes role="worker" wishes={data.wishes} machines={data.machine_count ?? Infinity} />
              <Wishes role="server" wishes={data.wishes} machines={data.machine_count ?? Infinity} />
            </>
          )}
        </>
      )}
    </Card>
  );
}
