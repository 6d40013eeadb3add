// What only the operator sees and does.
import { operator as words } from "../../text/en";
import { Head } from "../../ui/parts";
import type { ScreenProps } from "..";
import { Accounts } from "./accounts";
import { Audit } from "./audit";
import { Economy } from "./economy";
import { Invites } from "./invites";
import { ServiceCard } from "./service";
import { MarketSettings } from "./settings";
import "./style.css";

export default function Operator({ query }: ScreenProps) {
  return (
    <>
      <Head title={words.title} />
      <ServiceCard />
      <Economy />
      <Accounts query={query} />
      <Audit />
      <Invites />
      <MarketSettings />
    </>
  );
}
