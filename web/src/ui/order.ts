// The order of a table's rows.
export interface Order {
  column: string;
  isDown: boolean;
}

interface Sortable<Row> {
  name: string;
  sort?: (row: Row) => number | string; // the sort key
}

const compare = (a: number | string, b: number | string) =>
  typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));

// Equal rows keep their order. Without an order or a sort key, all rows do.
export function sorted<Row>(rows: readonly Row[], columns: readonly Sortable<Row>[], order: Order | undefined): readonly Row[] {
  const by = columns.find((column) => column.name === order?.column)?.sort;
  if (!by || !order) return rows;
  const sign = order.isDown ? -1 : 1;
  return [...rows].sort((a, b) => sign * compare(by(a), by(b)));
}

// The first click on a head sorts numbers from the highest and words from A; each further click reverses.
export const orderAfter = (order: Order | undefined, column: { name: string; isRight?: boolean }): Order =>
  ({ column: column.name, isDown: order?.column === column.name ? !order.isDown : column.isRight === true });
