import { theme, themes } from "../core/theme";
import { common } from "../text/en";
import { Button } from "./button";

export function ThemeButton() {
  const next = () => (theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length]!);
  return <Button kind="link" icon={theme.value} label={common.themeButton(common.theme[theme.value])} onClick={next} />;
}
