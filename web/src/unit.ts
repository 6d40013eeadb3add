import { createContext } from "preact";

// What amounts are called here: credits, or karma in a market without money.
export type Economy = "credits" | "karma";
export const Unit = createContext<Economy>("credits");
