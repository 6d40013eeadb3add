// A lender's wallet: the statement by its filters, as CSV, and a gift that is asked, given once, and outlives a market
// that is away.
//
//   node wallet.mjs URL_WITH_CODE FOLDER JOB
import { readFileSync } from "node:fs";
import { browse } from "./kit.mjs";

const [url, folder, job] = process.argv.slice(2);
const { origin } = new URL(url);
const HTML = "<img src=x onerror=alert(1)><b>bold</b>";

await browse({ url, folder }, async ({ page, seen, until, look, glance, hush, step, forgive, toast, back }) => {
  const rows = () => page.locator(".statement tbody tr").allTextContents();
  const showing = async (words) => {
    await page.waitForSelector(words.map((word) => `.statement td:has-text('${word}')`).join(", "));
    return rows();
  };
  const fill = async (to, amount, memo) => {
    await page.fill("input[name=to]", to);
    await page.fill("input[name=amount]", amount);
    await page.fill("input[name=memo]", memo);
    await page.click(".transfer button[type=submit]");
  };
  const refusal = async (field, word) => {
    await page.waitForSelector(`.transfer .field:has(input[name=${field}]) [role=alert]:has-text('${word}')`);
  };

  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await page.click("nav a[href='#/wallet']");
  await showing(["paid for work"]);
  seen.all = await rows();
  await page.waitForSelector("select[name=machine] option:has-text('lender-0')", { state: "attached" });

  // By kind, by machine, and holds apart: in the address, so a reload keeps them.
  await page.selectOption("select[name=kind]", "grant");
  await until(() => {
    const shown = [...document.querySelectorAll(".statement tbody tr")];
    return shown.length > 0 && shown.every((row) => /welcome grant|matched grant/.test(row.textContent));
  });
  seen.grants = await rows();
  await page.reload();
  await showing(["welcome grant"]);
  seen.kindAfterReload = await page.inputValue("select[name=kind]");
  await page.click("[role=tab]:has-text('Set aside')");
  await page.waitForSelector("text=No entry like this"); // a lender holds nothing
  await page.click("[role=tab]:has-text('Paid and received')");
  await showing(["paid for work"]);
  await page.selectOption("select[name=machine]", { index: 1 });
  await page.waitForSelector(".statement .figure:has-text('paid for work')");
  seen.machine = await rows();
  await page.goto(`${origin}/#/wallet?job=${job}`);
  await until((id) => document.querySelector("select[name=job]")?.value === id, job);
  await showing(["paid for work"]);
  seen.job = await rows();
  await page.goto(`${origin}/#/wallet?job=999999`);
  await page.waitForSelector(".statement [role=alert]");
  forgive(); // the job that is not there
  await page.goto(`${origin}/#/wallet`);
  await showing(["paid for work"]);

  await glance("wallet-top");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("button:has-text('CSV')")]);
  seen.csvName = download.suggestedFilename();
  seen.csv = readFileSync(await download.path(), "utf8");

  // What is wrong is said beside its field before anything is sent.
  let sent = 0;
  page.on("request", (request) => (sent += request.method() === "POST" && request.url().endsWith("/v1/transfers") ? 1 : 0));
  await fill("x".repeat(10_000), "0", "y".repeat(10_000));
  await refusal("to", "A name has");
  await refusal("amount", "More than 0");
  await refusal("memo", "At most 63");
  await look("wallet-wrong");
  seen.sentWrong = sent;
  await fill("nobody-here", "0.000001", "");
  await page.click("dialog button:has-text('Give')");
  await refusal("to", "no account named");
  forgive();

  // A no gives nothing; a yes, clicked as often as one likes, gives once.
  await fill("borrower", "0.000002", HTML);
  await page.waitForSelector("dialog[open]");
  seen.asked = await page.locator("dialog h2").textContent();
  await page.click("dialog button:has-text('Cancel')");
  await until(() => !document.querySelector("dialog[open]"));
  await page.reload();
  await page.waitForSelector("input[name=to]");
  seen.typed = [await page.inputValue("input[name=to]"), await page.inputValue("input[name=amount]"), await page.inputValue("input[name=memo]")];
  const before = sent;
  await page.dblclick(".transfer button[type=submit]");
  await page.waitForSelector("dialog[open]");
  await page.evaluate(() => {
    const yes = [...document.querySelectorAll("dialog button")].find((button) => button.textContent === "Give");
    yes.click();
    yes.click();
  });
  await toast("borrower has 0.000002");
  await showing(["−0.000002"]);
  seen.sentOnce = sent - before;
  seen.memo = await page.locator(".statement tr:has-text('−0.000002') .memo").textContent();
  seen.images = await page.locator(".statement img").count();

  // The market goes away with the yes on its way: typed text stays, and once it is back the gift is given once.
  await page.fill("input[name=to]", "borrower");
  await page.fill("input[name=amount]", "0.000003");
  await page.click(".transfer button[type=submit]");
  await page.waitForSelector("dialog[open]");
  await step("stop");
  await page.waitForSelector(".live.reconnecting");
  const lost = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/v1/transfers"));
  await page.click("dialog button:has-text('Give')");
  await lost;
  seen.typedWhileAway = await page.inputValue("input[name=amount]");
  await step("start");
  await back();
  await until(() => document.querySelector(".transfer [aria-busy]") === null);
  // Back later than the page tries by itself: the same button tries the same gift again.
  if (await page.inputValue("input[name=amount]")) {
    await page.click(".transfer button[type=submit]");
    await page.click("dialog button:has-text('Give')");
  }
  await toast("borrower has 0.000003");
  await showing(["−0.000003"]);
  await until(() => document.querySelector(".note.bad") === null);
  forgive();
  await hush();
  await look("wallet");
});
