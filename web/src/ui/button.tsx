import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { common } from "../text/en";
import { Icon, type IconName } from "./icon";
import { complain } from "./toast";

interface ButtonProps {
  children?: ComponentChildren;
  kind?: "plain" | "primary" | "danger" | "link";
  type?: "button" | "submit";
  icon?: IconName;
  label?: string; // for a button with an icon alone
  isBusy?: boolean;
  isDisabled?: boolean;
  onClick?: () => unknown; // while a promise it returns is open the button is busy; what it throws is shown
}

// Does what it does once, however often it is clicked.
export function Button({ children, kind = "plain", type = "button", icon, label, isBusy, isDisabled, onClick }: ButtonProps) {
  const [isActing, setActing] = useState(false);
  const under = useRef(false);
  const act = async () => {
    if (!onClick || under.current) return;
    under.current = true;
    try {
      const result = onClick();
      if (result instanceof Promise) {
        setActing(true);
        await result;
      }
    } catch (failure) {
      complain(failure as Error);
    } finally {
      under.current = false;
      setActing(false);
    }
  };
  const busy = isBusy || isActing;
  return (
    <button
      type={type}
      class={`button ${kind}${children === undefined ? " round" : ""}`}
      disabled={isDisabled || busy}
      aria-busy={busy || undefined}
      aria-label={label}
      title={label}
      onClick={type === "button" ? () => void act() : undefined}
    >
      {icon && <Icon name={icon} size={18} />}
      {children !== undefined && <span>{busy && kind !== "link" ? common.busy : children}</span>}
    </button>
  );
}
