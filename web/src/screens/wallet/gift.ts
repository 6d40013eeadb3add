// A gift from the form, and the mistakes in it that the page finds itself.
import { microcreditsOf } from "../../core/amount";
import { credits } from "../../core/format";
import { wallet as words } from "../../text/en";

const NAME = /^[a-z0-9-]{1,40}$/;
const MEMO_BYTES_MAX = 63;

// The draft keeps the key: even after a reload, the market gives the same gift only once.
export interface Typed {
  to: string;
  amount: string;
  memo: string;
  key: string;
}

interface Giver {
  name: string;
  transferable_microcredits: number;
}

export function wrongs(typed: Typed, known: Giver, unit: string) {
  const amount = microcreditsOf(typed.amount);
  return {
    to: !NAME.test(typed.to) ? words.toWrong : typed.to === known.name ? words.toSelf : "",
    amount_microcredits: !amount ? words.amountWrong
      : amount > known.transferable_microcredits ? words.amountMuch(credits(known.transferable_microcredits), unit) : "",
    memo: new TextEncoder().encode(typed.memo).length > MEMO_BYTES_MAX ? words.memoLong(MEMO_BYTES_MAX) : "",
  };
}
