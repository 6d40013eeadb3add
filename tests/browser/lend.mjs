// A lender's way: adds a machine by the command the page shows, sets how much, when, for how much and to whom it lends,
// while the market restarts in between, sees a job run on it and what it earned, and pauses it.
//
//   node lend.mjs URL_WITH_CODE FOLDER
import { browse, sizes } from "./kit.mjs";

const [url, folder] = process.argv.slice(2);

await browse({ url, folder }, async ({ context, page, seen, until, look, glance, shoot, step, forgive, hush, toast, back }) => {
  const cell = (day, hour) => `.week [data-day="${day}"][data-hour="${hour}"]`;
  const middle = async (day, hour) => {
    const box = await page.locator(cell(day, hour)).boundingBox();
    return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  };
  const said = (words) => until((wanted) => document.querySelector(".said .when")?.textContent === wanted, words);
  const save = async () => {
    await page.click(".offer button:has-text('Save')");
    await toast("Saved.");
    await hush();
    await page.waitForSelector(".offer :text('Changes hold at once')");
  };

  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await page.click("nav a[href='#/lend']");
  await page.click("button:has-text('Lend a machine')");
  await page.waitForSelector(".lend pre");
  await step(await page.locator(".lend pre").textContent()); // it runs
  await page.waitForSelector(".arrived:has-text('heron has arrived.')");
  await look("lend-arrived");
  await page.click(".arrived a");
  await page.waitForSelector("h1:text('heron')");
  await page.waitForSelector(".offer form");
  seen.machine = Number(page.url().split("/").at(-1));

  // How much: by the slider's keys, and by a number.
  await page.focus(".slider input[type=range] >> nth=0");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  await page.fill(".slider input[type=number] >> nth=1", "0.5");
  await page.keyboard.press("Tab");
  // When: empty is refused, then painted by mouse, finger and keys.
  await page.click("button:has-text('Clear')");
  await page.waitForSelector(".said [role=alert]:has-text('at least one hour')");
  seen.mayNotSave = await page.locator(".offer button:has-text('Save')").isDisabled();
  seen.noEstimate = await page.locator(".estimate").textContent();
  await page.click(".offer .save .amiss button:has-text('When')");
  await until(() => document.activeElement?.id === "offer-when");
  await page.locator(".week").scrollIntoViewIfNeeded();
  const [from, to] = [await middle(0, 18), await middle(4, 21)];
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move((from.x + to.x) / 2, (from.y + to.y) / 2);
  await page.mouse.move(to.x, to.y);
  await page.mouse.up();
  await said("Mon-Fri 18:00-22:00");
  await page.focus(cell(4, 21));
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Space");
  await said("Mon-Fri 18:00-22:00; Sat 22:00-23:00");
  await page.keyboard.press("Shift+ArrowRight");
  await page.keyboard.press("Space"); // takes the last one back
  await said("Mon-Fri 18:00-22:00; Sat 22:00-23:00");

  await page.setViewportSize(sizes.phone);
  await page.locator(cell(6, 9)).scrollIntoViewIfNeeded();
  await page.locator(cell(6, 6)).scrollIntoViewIfNeeded();
  const touch = await context.newCDPSession(page);
  const finger = (type, ...points) => touch.send("Input.dispatchTouchEvent", { type, touchPoints: points });
  await finger("touchStart", await middle(6, 6));
  await finger("touchMove", await middle(6, 7));
  await finger("touchMove", await middle(6, 9));
  await finger("touchEnd");
  await touch.detach();
  await said("Mon-Fri 18:00-22:00; Sat 22:00-23:00; Sun 06:00-10:00");
  await page.setViewportSize(sizes.wide);

  // For how much and to whom: what is wrong is said beside the field.
  await page.uncheck(".toggle input");
  await page.fill("[name=price-core]", "<b>much</b>");
  await page.waitForSelector(".field:has([name=price-core]) [role=alert]:has-text('amount like')");
  await page.fill("[name=price-core]", "");
  await page.waitForSelector(".wrong-words:has-text('at least one price')");
  await page.fill("[name=price-core]", "0.000125");
  await page.selectOption("label:has-text('Lent to') + select", "accounts");
  await page.waitForSelector(".field:has([name=accounts]) [role=alert]:has-text('at least one')");
  await page.fill("[name=accounts]", `<script>alert(1)</script>${"x".repeat(10_000)}`);
  await page.waitForSelector(".field:has([name=accounts]) [role=alert]:has-text('<script>')");
  await page.fill("[name=accounts]", "borrower, nobody-there");
  await page.waitForSelector(".estimate .figure");
  await look("lend-wrong");
  await page.click(".offer button:has-text('Save')");
  await page.waitForSelector(".field:has([name=accounts]) [role=alert]:has-text('nobody-there')");
  forgive(); // the refusal is on the console by the browser's own word

  // A reload and a market that restarts lose nothing that was typed.
  await page.fill("[name=accounts]", "borrower");
  await page.reload();
  await page.waitForSelector("[name=accounts]");
  seen.typedAfterReload = await page.inputValue("[name=accounts]");
  await said("Mon-Fri 18:00-22:00; Sat 22:00-23:00; Sun 06:00-10:00");
  await step("stop");
  await page.waitForSelector(".live.reconnecting");
  await page.click(".offer button:has-text('Save')");
  await page.waitForSelector(".offer .note.bad");
  await page.fill("[name=accounts]", "borrower, lender");
  await step("start");
  await back();
  await until(() => document.querySelector(".note.bad") === null);
  forgive();
  seen.typedAfterRestart = await page.inputValue("[name=accounts]");
  await page.dblclick(".offer button:has-text('Save')");
  await toast("Saved.");
  await hush();
  await page.waitForSelector(".head .state.closed, .head .state.free");
  await step("saved");

  // Open to anyone again, and a job comes.
  await page.click("button:has-text('Always')");
  await page.check(".toggle input");
  await page.selectOption("label:has-text('Lent to') + select", "anyone");
  for (const index of [0, 1]) {
    await page.focus(`.slider input[type=range] >> nth=${index}`);
    await page.keyboard.press("End");
  }
  await save();
  await step("job");
  await page.waitForSelector(".leases tbody tr");
  await until(() => /earnings/i.test(document.querySelector(".earnings .chart")?.getAttribute("aria-label") ?? ""));
  seen.lease = await page.locator(".leases tbody tr").first().textContent();
  // Its first tick has come: what it uses and earned.
  await until(() => /MiB.*MiB|GiB.*MiB/.test(document.querySelector(".leases tbody tr")?.textContent ?? ""));
  // The rows of a busy machine say 0.00 cores at first.
  await until(() => Number.parseFloat(document.querySelector(".leases tbody td.right")?.textContent) > 0);
  seen.used = await page.locator(".leases tbody td.right").first().textContent();
  await glance("lend");
  await look("lend-machine");
  await step("done");
  await page.waitForSelector(".leases :text('Nothing')");
  // The sum of the chart is what the machine earned: once its last tick has come it is the same.
  await until(() => {
    const earned = document.querySelector(".figure strong")?.textContent;
    return earned !== "0.00" && document.querySelector(".earnings .faint")?.textContent.startsWith(`${earned} `);
  });
  seen.earned = await page.locator(".figure:has-text('Earned in all') strong").textContent();
  seen.earnings = await page.locator(".earnings .faint").textContent();
  await until(() => !document.querySelector(".reputation pre")?.textContent.includes("(0.00 + 1)"));
  seen.reputation = await page.locator(".reputation pre").textContent();
  await page.click(".earnings [role=tab]:has-text('Last 30 days')");
  await page.waitForSelector(".earnings .chart[aria-label*='30 days']");

  for (const word of ["For an hour", "Until tomorrow"]) {
    await page.click(`.head button:has-text('${word}')`);
    await toast("pauses until");
    await page.waitForSelector(".head .state.paused");
    await page.click(".head button:has-text('Resume')");
    await page.waitForSelector(".head .state.free");
  }
  await shoot("lend-after");
});
