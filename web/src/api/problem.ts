// What the server refused, in its own words (RFC 9457), and that it could not be asked.
import { common } from "../text/en";

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    readonly detail: string, // one sentence that says what to do
    readonly code: string, // "invalid", "conflict" …
    readonly retryAfter_s = 0,
  ) {
    super(detail);
  }
}

export class Unreachable extends Error {
  constructor(words = common.unreachable) {
    super(words);
  }
}

export function problemOf(response: Response, body: string): Problem {
  const retryAfter_s = Number(response.headers.get("Retry-After") ?? 0) || 0;
  const title = response.statusText || String(response.status);
  try {
    const told = JSON.parse(body) as { title?: string; detail?: string; code?: string };
    return new Problem(response.status, told.title ?? title, told.detail ?? title, told.code ?? "", retryAfter_s);
  } catch {
    // Not a problem document (a proxy's page): the status line says what there is to say.
    return new Problem(response.status, title, `${response.status} ${title}`, "", retryAfter_s);
  }
}

// A refusal begins with the field it is about ("password: is one of those that are tried first"): it then stands beside
// that field, without its name.
export function fieldProblem(problem: Error | null, field: string): string {
  if (!(problem instanceof Problem) || !problem.detail.startsWith(`${field}: `)) return "";
  return problem.detail.slice(field.length + 2);
}
