// The operator's screen: health, freezing and unfreezing, an invitation, and settings changed over a restart.
//
//   node operator.mjs URL_WITH_CODE FOLDER
import { browse } from "./kit.mjs";

const [url, folder] = process.argv.slice(2);
const HTML = "<iframe src=x></iframe><b>spam</b>";

await browse({ url, folder }, async ({ page, seen, until, look, glance, hush, step, forgive, toast, back }) => {
  let freezes = 0;
  page.on("request", (request) => (freezes += request.method() === "POST" && request.url().endsWith("/freeze") ? 1 : 0));
  const beside = (name, word) => page.waitForSelector(`.field:has(input[name='${name}']) [role=alert]:has-text('${word}')`);
  const row = (name) => `.accounts tbody tr:has(th:text-is('${name}'))`;
  const undo = async () => {
    await page.click(".market-settings button:has-text('Undo')");
    await page.waitForSelector("text=Nothing is changed yet.");
  };
  const change = () => page.click(".market-settings button[type=submit]");

  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await page.click("nav a[href='#/operator']");
  await page.waitForSelector(row("ada"));
  await page.waitForSelector(".economy tbody tr");
  seen.members = await page.locator(".economy .figure:has-text('members') strong").textContent();
  await page.waitForSelector(".service .state.online:has-text('ready')");
  seen.service = await page.locator(".service .figure").allTextContents();

  // The market finds accounts by how a name begins; 10 kB of it finds nothing and breaks nothing.
  let searches = 0;
  page.on("request", (request) => (searches += request.url().includes("/v1/accounts?") && request.url().includes("q=") ? 1 : 0));
  await page.fill("input[name=find]", "a".repeat(10_000));
  await page.waitForSelector("text=No account's name begins so");
  await page.fill("input[name=find]", HTML);
  await page.waitForSelector("text=No account's name begins so");
  seen.searchesWrong = searches;
  await page.fill("input[name=find]", "AD");
  await until(() => document.querySelectorAll(".accounts tbody tr").length === 1);
  seen.searches = searches;
  seen.found = await page.locator(".accounts tbody th").allTextContents();
  await page.fill("input[name=find]", "");
  await page.waitForSelector(row("bob"));

  // The first credits, before their turn, once.
  let grants = 0;
  page.on("request", (request) => (grants += request.method() === "POST" && request.url().endsWith("/grant") ? 1 : 0));
  seen.waits = await page.locator(row("dora")).textContent();
  await look("operator-waiting");
  await page.click(`${row("dora")} button:has-text('Give the grant')`);
  await page.click("dialog button:has-text('Give the grant')");
  await page.waitForSelector(`${row("dora")} .state.online`);
  await page.waitForSelector(`${row("dora")} button:has-text('Give the grant')`, { state: "detached" });
  seen.grants = grants;
  await hush();

  // Frozen with a reason, once; the reason is text.
  await page.click(`${row("ada")} button:has-text('Freeze')`);
  await page.click("dialog button:has-text('Freeze')");
  await beside("reason", "Say why");
  await page.fill("dialog input[name=reason]", "r".repeat(10_000));
  await page.click("dialog button:has-text('Freeze')");
  await beside("reason", "At most 127");
  seen.freezesWrong = freezes;
  await page.fill("dialog input[name=reason]", HTML);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.evaluate(() => {
    const yes = [...document.querySelectorAll("dialog button")].find((button) => button.textContent === "Freeze");
    yes.click();
    yes.click();
  });
  await page.waitForSelector(`${row("ada")} .state.frozen`);
  seen.reason = await page.locator(`${row("ada")} .reason`).textContent();
  seen.freezes = freezes;
  seen.frozenAt = await step("frozen");
  await page.click("button:has-text('Audit the books')");
  await page.waitForSelector(".audit .state.succeeded");
  seen.audit = await page.locator(".audit .figure").allTextContents();
  await page.click("button:has-text('Make an invitation')");
  await page.waitForSelector(".invites pre");
  seen.invite = await page.locator(".invites pre").textContent();
  await page.click(".invites [aria-label=Copy]");
  await toast("Copied");
  seen.copied = await page.evaluate(() => navigator.clipboard.readText());
  await hush();
  await look("operator");
  await glance("operator-top");
  await page.click(`${row("ada")} button:has-text('Unfreeze')`);
  await page.click("dialog button:has-text('Unfreeze')");
  await page.waitForSelector(`${row("ada")} button:has-text('Freeze')`);

  // Settings: wrong numbers beside their fields, the market's word, and what was typed over a reload and a restart.
  seen.range = await page.locator(".field:has(input[name=fee_basis_points])").textContent();
  await page.fill("input[name=fee_basis_points]", "much");
  await change();
  await beside("fee_basis_points", "A number like");
  await page.fill("input[name=fee_basis_points]", "250");
  await page.fill("input[name=silence_ms]", "0");
  await change();
  await beside("fee_basis_points", "From 0 to 5.");
  await beside("silence_ms", "From 0.1 to 86400.");
  seen.askedWrong = await page.locator("dialog[open]").count();
  await undo();
  // The market's own word, for what the page would not send.
  const put = "**/v1/settings";
  await page.route(put, (route) => route.continue(route.request().method() === "PUT" ? { postData: '{"fee_basis_points":501}' } : {}));
  await page.fill("input[name=fee_basis_points]", "4");
  await change();
  await page.click("dialog button:has-text('Change')");
  await beside("fee_basis_points", "must be from 0 to 500");
  await page.unroute(put);
  forgive();
  await undo();
  await page.fill("input[name=fee_basis_points]", "2.25");
  await page.fill("input[name=grant_microcredits]", "12.5");
  await page.reload();
  await page.waitForSelector("input[name=fee_basis_points]");
  seen.typed = await page.inputValue("input[name=fee_basis_points]");
  await step("stop");
  await page.waitForSelector(".live.reconnecting");
  await change();
  await page.waitForSelector("dialog[open]");
  seen.asked = await page.locator("dialog .line").allTextContents();
  const lost = page.waitForEvent("requestfailed", (request) => request.method() === "PUT");
  await page.click("dialog button:has-text('Change')");
  await lost;
  await step("start");
  await back();
  await until(() => document.querySelector(".market-settings [aria-busy]") === null);
  // Back later than the page tries by itself: the same button tries again.
  if (await page.locator(".market-settings button:has-text('Undo')").count()) {
    await change();
    await page.click("dialog button:has-text('Change')");
  }
  await toast("The settings are changed");
  await page.waitForSelector("text=Nothing is changed yet.");
  forgive();
});
