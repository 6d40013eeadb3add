import { options, render } from "preact";
import { App } from "./shell/app";
import "./style/tokens.css";
import "./style/base.css";
import "./style/ui.css";
import "./style/table.css";
import "./style/shell.css";

// One render a frame, however many events came; a page in the background has no frames and draws nothing.
options.debounceRendering = (draw) => {
  requestAnimationFrame(draw);
};

render(<App />, document.getElementById("page")!);
