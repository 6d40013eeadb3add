// For somebody who has neither lent nor trained: what there is to spend, and the two ways to begin.
import { credits } from "../../core/format";
import { link } from "../../core/router";
import { unit, type Account } from "../../core/store";
import { dashboard as words } from "../../text/en";
import { Icon } from "../../ui/icon";
import { training } from "..";

export function Start({ known }: { known: Account }) {
  const has = known.available_microcredits > 0;
  return (
    <section class="card start" aria-labelledby="start">
      <h2 id="start">{words.welcome(known.name)}</h2>
      <p>{has ? words.startWith(credits(known.available_microcredits), unit.value) : words.startEmpty(unit.value)}</p>
      <div class="ways">
        <a href={link("lend", "add")}>
          <Icon name="lend" size={28} />
          <strong>{words.lend}</strong>
          <span class="faint">{words.lendHint(unit.value)}</span>
        </a>
        <a href={link(training)}>
          <Icon name="train" size={28} />
          <strong>{words.train}</strong>
          <span class="faint">{words.trainHint}</span>
        </a>
      </div>
    </section>
  );
}
