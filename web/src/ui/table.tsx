// A table with a sortable head. Of many rows only those in sight are in the document, so 10,000 scroll as well as ten.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Icon } from "./icon";
import { orderAfter, sorted, type Order } from "./order";
import { isPhone } from "./phone";

export type { Order } from "./order";

export interface Column<Row> {
  name: string;
  head: string;
  cell: (row: Row) => ComponentChildren;
  sort?: (row: Row) => number | string; // sortable by this
  isRight?: boolean; // numbers
  isRowHead?: boolean; // names the row
  isWideOnly?: boolean; // left out on a phone
  isHidden?: boolean; // rows may be in its order, but it is not shown
}

interface TableProps<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string | number;
  order?: Order | undefined; // at first
  onOrder?: (order: Order) => void; // given: the caller keeps the order
  isSelected?: (row: Row) => boolean;
  isStacked?: boolean; // on a phone each row is a block of its own; for few rows with something to press
  isTwoLined?: boolean; // on a phone each row has two lines: of three columns the first two, and the third below
}

// Of a virtual row: all are equal, table.css holds them to it.
const ROW_PX = 44;
const TWO_LINES_PX = 64;
const VIRTUAL_MIN = 200;
// Rows of a long table are no blocks on a phone, so they have only what fits there.
export const isLong = (rows: readonly unknown[]) => rows.length >= VIRTUAL_MIN;
const REUSED = 64; // at least as many as are drawn at a time: a row that goes out of sight is drawn again as one that comes
const SPARE = 4; // rows drawn above and below what is in sight

interface Range {
  first: number;
  end: number;
}

// Which rows are in sight of the element that scrolls.
function useSight(count: number, row_px: number, isOn: boolean) {
  const holder = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<Range>({ first: 0, end: 40 });
  useLayoutEffect(() => {
    const element = holder.current;
    if (!isOn || !element) return;
    const look = () => {
      const first = Math.max(0, Math.floor(element.scrollTop / row_px) - SPARE);
      const end = Math.min(count, Math.ceil((element.scrollTop + element.clientHeight) / row_px) + SPARE);
      setRange((known) => (known.first === first && known.end === end ? known : { first, end }));
    };
    look();
    element.addEventListener("scroll", look, { passive: true });
    const resize = new ResizeObserver(look);
    resize.observe(element);
    return () => {
      element.removeEventListener("scroll", look);
      resize.disconnect();
    };
  }, [isOn, count, row_px]);
  return { holder, range: isOn ? range : { first: 0, end: count } };
}

interface HeadProps<Row> {
  column: Column<Row>;
  order: Order | undefined;
  onOrder: (order: Order) => void;
  canSort: boolean;
}

const sides = <Row,>(column: Column<Row>) =>
  [column.isRight && "right", column.isWideOnly && "wide-only"].filter(Boolean).join(" ") || undefined;

function ColumnHead<Row>({ column, order, onOrder, canSort }: HeadProps<Row>) {
  const isBy = order?.column === column.name;
  return (
    <th scope="col" class={sides(column)} aria-sort={isBy ? (order.isDown ? "descending" : "ascending") : undefined}>
      {canSort ? (
        <button type="button" onClick={() => onOrder(orderAfter(order, column))}>
          {column.head}
          {isBy && <Icon name={order.isDown ? "down" : "up"} size={14} />}
        </button>
      ) : (
        column.head
      )}
    </th>
  );
}

export function Table<Row>({ label, columns, rows, rowKey, order: first, onOrder, isSelected, isStacked, isTwoLined }: TableProps<Row>) {
  const [own, setOwn] = useState<Order | undefined>(first);
  const order = onOrder ? first : own;
  const shown = useMemo(() => sorted(rows, columns, order), [rows, columns, order?.column, order?.isDown]);
  const isVirtual = isLong(shown);
  const row_px = isTwoLined && isPhone.value ? TWO_LINES_PX : ROW_PX;
  const { holder, range } = useSight(shown.length, row_px, isVirtual);
  const gap = (count: number) => count > 0 && <tr class="gap" aria-hidden="true" style={{ height: `${count * row_px}px` }} />;
  const drawn = useMemo(() => columns.filter((column) => !column.isHidden), [columns]);
  const kinds = [isVirtual && "virtual", isTwoLined && "two-lined", isStacked && !isVirtual && "stacked"].filter(Boolean);
  return (
    <div ref={holder} class={["scroll", ...kinds].join(" ")} tabIndex={0} role="group" aria-label={label}>
      <table aria-label={label} aria-rowcount={isVirtual ? shown.length + 1 : undefined}>
        <thead>
          <tr>
            {drawn.map((column) => (
              <ColumnHead key={column.name} column={column} order={order} onOrder={onOrder ?? setOwn}
                canSort={column.sort !== undefined} />
            ))}
          </tr>
        </thead>
        <tbody>
          {gap(range.first)}
          {shown.slice(range.first, range.end).map((row, index) => (
            <tr key={isVirtual ? (range.first + index) % REUSED : rowKey(row)} class={isSelected?.(row) ? "selected" : undefined}
              aria-rowindex={isVirtual ? range.first + index + 2 : undefined}>
              {drawn.map((column) =>
                column.isRowHead ? (
                  <th key={column.name} scope="row" class={sides(column)}>
                    {column.cell(row)}
                  </th>
                ) : (
                  <td key={column.name} class={sides(column)} data-head={column.head}>
                    {column.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
          {gap(shown.length - range.end)}
        </tbody>
      </table>
    </div>
  );
}
