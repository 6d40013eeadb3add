// The order of a table's rows.
export interface Order {
  column: string;
  isDown: boolean;
}

interface Sortable<Row> {
  name: string;
  sort?: (row: Row) => number | string; // sortable by this
}

const compare = (a: number | string, b: number | string) =>
  typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));

// Rows that are equal stay as they were; without an order, or by a column that has none, all do.
export function sorted<Row>(rows: readonly Row[], columns: readonly Sortable<Row>[], order: Order | undefined): readonly Row[] {
  const by = columns.find((column) => column.name === order?.column)?.sort;
  if (!by || !order) return rows;
  const sign = order.isDown ? -1 : 1;
  return [...rows].sort((a, b) => sign * compare(by(a), by(b)));
}

// The first click on a head: numbers from the highest, words from A; the next ones turn it.
export const orderAfter = (order: Order | undefined, column: { name: string; isRight?: boolean }): Order =>
  ({ column: column.name, isDown: order?.column === column.name ? !order.isDown : column.isRight === true });
