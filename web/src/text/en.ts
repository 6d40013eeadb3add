// All words of the page in English, a section per screen. A translation is a folder beside en/ with the same sections.
export { common } from "./en/common";
export { dashboard } from "./en/dashboard";
export { jobs } from "./en/jobs";
export { lend } from "./en/lend";
export { market } from "./en/market";
export { notices } from "./en/notices";
export { operator } from "./en/operator";
export { settings } from "./en/settings";
export { train } from "./en/train";
export { wallet } from "./en/wallet";
export { welcome } from "./en/welcome";
