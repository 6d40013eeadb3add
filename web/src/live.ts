// The server's event stream: tells what to read again, never carries state of its own.
//
// Any event marks the things it touches as stale; they are fetched at most four times a second.
// So a missed or doubled event cannot make the page show something that is not so.

export type Topic = "account" | "machines" | "jobs" | "metrics";

const touches: Record<string, Topic[]> = {
  metric: ["metrics", "jobs"],
  state: ["jobs", "machines", "account", "metrics"],
  bill: ["account", "jobs"],
};

export interface Live {
  close(): void;
}

export function watch(refresh: (topics: Set<Topic>) => void, online: (is: boolean) => void): Live {
  const stale = new Set<Topic>();
  let timer: number | undefined;
  const mark = (topics: Topic[]) => {
    topics.forEach((topic) => stale.add(topic));
    timer ??= window.setTimeout(() => {
      timer = undefined;
      const due = new Set(stale);
      stale.clear();
      refresh(due);
    }, 250);
  };

  const source = new EventSource("/v1/events");
  source.onopen = () => {
    online(true);
    mark(["account", "machines", "jobs", "metrics"]);
  };
  source.onerror = () => online(false);
  for (const [name, topics] of Object.entries(touches)) {
    source.addEventListener(name, () => mark(topics));
  }
  return {
    close() {
      source.close();
      window.clearTimeout(timer);
    },
  };
}
