// Trains with data of one's own: a table from this computer, the same job again with changes, a network layer by layer,
// and data that stay at a lender.
//
//   node train_own.mjs URL_WITH_CODE FOLDER TABLE HOMES
import { readFileSync } from "node:fs";
import { browse } from "./kit.mjs";
import { wizard } from "./wizard.mjs";

const [url, folder, table, homes] = process.argv.slice(2);
const { origin } = new URL(url);

await browse({ url, folder }, async ({ page, seen, until, look, hush }) => {
  const { to, anew, small, submit } = wizard({ page, until }, origin);
  const choose = (name, text) => page.locator("input[type=file]").first().setInputFiles({ name, mimeType: "text/csv", buffer: Buffer.from(text) });
  const read = () => page.click(".card > button.primary");
  const send = async () => {
    await read();
    await page.waitForSelector(".sent:has-text('is at the market')");
  };
  const addLayer = async (type) => {
    const count = await page.locator(".layer").count();
    await page.selectOption("select[name=add-layer]", type);
    await page.click("button:has-text('Add a layer')");
    await page.waitForSelector(`select[name=layer-${count}]`);
  };
  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");

  // A table.
  await anew("logistic");
  await page.fill("input[name=epochs]", "30");
  await to("Data");
  await page.click("label.way:has(input[value=upload])");
  await choose("wrong.csv", "x,y,label\n1,2,a\n1,tall,b\n" + "1,2,a\n".repeat(20));
  await read();
  await page.waitForSelector(".drop [role=alert]:has-text('tall')");
  seen.wrongRow = await page.locator(".drop [role=alert]").textContent();
  await choose("<img src=x>.csv", "a,b\n1,2\n");
  await page.waitForSelector("p:has-text('<img src=x>.csv')");
  await choose("rows.csv", readFileSync(table, "utf8"));
  await page.waitForSelector("p:has-text('rows.csv')");
  await page.waitForSelector("table th:has-text('kind')");
  await send();
  await look("train-upload");
  await page.reload();
  await page.waitForSelector(".sent:has-text('rows.csv is at the market')");
  await small();
  seen.table = await submit();

  // The same again, with changes.
  await page.click(`a[href='#/train?from=${seen.table}']`);
  await page.waitForSelector(".note:has-text('Filled in from')");
  seen.again = [await page.inputValue("input[name=name]"), await page.inputValue("input[name=epochs]"),
    await page.isChecked("input[value=logistic]"), await page.evaluate(() => location.hash)];
  await to("Data");
  await page.waitForSelector(".sent:has-text('rows.csv')");

  // Layer by layer.
  await to("What");
  await page.click("label.way:has(input[value=layers])");
  await addLayer("conv");
  await page.fill("input[name='layer-1-outputs']", "4");
  await page.fill("input[name='layer-1-kernel']", "50");
  await page.click("[aria-label='Move layer 2 up']");
  await page.waitForSelector(".layer [role=alert]:has-text('kernel of 50')"); // not what was wrong on the way
  await hush();
  seen.layerWrong = await page.locator(".layer [role=alert]").first().textContent();
  await look("train-layers");
  await page.click("[aria-label='Remove layer 1']");
  await until(() => document.querySelectorAll(".layer").length === 1);
  await addLayer("relu");
  await addLayer("dense");
  await page.fill("input[name='layer-0-outputs']", "8");
  await page.fill("input[name=name]", "again");
  seen.layers = await submit();

  // A number to be told, from words and numbers of which some are missing.
  await anew();
  await page.click("label.way:has(input[value=linear])");
  await page.fill("input[name=epochs]", "60");
  await to("Data");
  await page.click("label.way:has(input[value=upload])");
  await choose("homes.csv", readFileSync(homes, "utf8"));
  await page.waitForSelector("p:has-text('homes.csv')");
  await page.selectOption("select[name='train.predict']", "number");
  await page.selectOption("select[name='train.label']", "price");
  await read();
  await page.waitForSelector(".drop [role=alert]:has-text('is not a number')");
  await page.selectOption("select[name='train.read.categories']", "one-hot");
  await read();
  await page.waitForSelector(".drop [role=alert]:has-text('missing')");
  await page.selectOption("select[name='train.read.missing']", "mean");
  await send();
  await small();
  seen.number = await submit();

  // Data that stay at a lender.
  await anew("logistic");
  await page.fill("input[name=epochs]", "30");
  await to("Data");
  await page.click("label.way:has(input[value=peer])");
  await page.waitForSelector("small:has-text('Offered here: ward (1 machine)')");
  await page.fill("input[name=peer]", "ward");
  await choose("own.csv", readFileSync(table, "utf8").split("\n").slice(0, 101).join("\n"));
  await page.waitForSelector("p:has-text('own.csv')");
  await send();
  await small();
  seen.peer = await submit();
});
