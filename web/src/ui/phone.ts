// Whether the window is a phone's: as wide as the styles' own line between the two.
import { signal } from "@preact/signals";

const query = matchMedia("(max-width: 760px)");

export const isPhone = signal(query.matches);
query.addEventListener("change", () => (isPhone.value = query.matches));
