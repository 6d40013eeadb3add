// What no event tells of is read again while it is looked at.
import { useEffect } from "preact/hooks";
import { useResource, type Resource } from "./resource";

// again_ms 0: not again.
export function useAgain<Value>(shown: Resource<Value>, again_ms: number): { data: Value | undefined; problem: Error | null } {
  useEffect(() => {
    if (shown.data.peek()) void shown.refresh();
    if (!again_ms) return;
    const timer = setInterval(() => {
      if (!document.hidden) void shown.refresh();
    }, again_ms);
    return () => clearInterval(timer);
  }, [shown, again_ms]);
  return useResource(shown);
}
