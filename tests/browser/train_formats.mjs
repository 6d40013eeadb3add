// Trains with data of one's own in several forms: sparse lines, arrays, a folder of images and the same as a zip file, texts.
// The market restarts while it reads one of them, and fetches one from an address.
//
//   node train_formats.mjs URL_WITH_CODE FOLDER DATA ADDRESS_OF_DATA SHA256_OF_SPARSE
import { readFileSync } from "node:fs";
import { browse } from "./kit.mjs";
import { wizard } from "./wizard.mjs";

const [url, folder, data, web, sha256] = process.argv.slice(2);
const { origin } = new URL(url);

await browse({ url, folder }, async ({ page, seen, until, look, step, forgive, hush, back }) => {
  const { to, anew, small, submit } = wizard({ page, until }, origin);
  const begin = async (model, epochs, source = "upload") => {
    await anew(model);
    await page.fill("input[name=epochs]", epochs);
    await to("Data");
    await page.click(`label.way:has(input[value=${source}])`);
  };
  const chooseFile = async (name) => {
    await page.locator("input[type=file]").first().setInputFiles(`${data}/${name}`);
    await page.waitForSelector(`p:has-text('${name}')`);
  };
  const read = async () => {
    await page.click(".card > button.primary");
    await page.waitForSelector(".sent:has-text('records')");
    return page.locator(".sent").textContent();
  };
  seen.asked = seen.chunks = 0;
  page.on("request", (request) => {
    if (request.method() === "POST" && request.url().endsWith("/v1/imports")) seen.asked++;
    if (request.method() === "POST" && request.url().endsWith("/v1/chunks")) seen.chunks++;
  });
  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");

  // Sparse lines; the market forgets that it reads them.
  await begin("svm", "20");
  await chooseFile("rows.libsvm");
  await page.waitForSelector("p:has-text('It looks like sparse rows')");
  let isFirst = true;
  await page.route("**/v1/imports/*", async (route) => {
    if (isFirst && route.request().method() === "GET") {
      isFirst = false;
      await step("restart");
    }
    await route.continue();
  });
  seen.sparseRead = await read();
  await page.unroute("**/v1/imports/*");
  await back();
  seen.askedOfSparse = seen.asked;
  forgive();
  await small();
  seen.sparse = await submit();

  // Arrays, read again in another way without being sent again.
  await begin("mlp", "15");
  await chooseFile("arrays.npz");
  // The page is loaded again, at another step, while the market reads: it is followed further, and not asked anew.
  await page.route("**/v1/imports/*", () => undefined); // no answer comes
  const followed = page.waitForRequest("**/v1/imports/*");
  await page.click(".card > button.primary");
  await followed;
  await page.unroute("**/v1/imports/*");
  const askedBefore = seen.asked;
  await to("Machines");
  await page.reload();
  await page.waitForSelector(".wizard-foot [role=status]:has-text('Would hold')");
  await to("Data");
  await page.waitForSelector(".sent:has-text('records')");
  seen.arraysRead = await page.locator(".sent").textContent();
  seen.askedAfterReload = seen.asked - askedBefore;
  await page.waitForSelector("p:has-text('It looks like NumPy arrays')");
  await page.click("summary:has-text('More about reading')");
  await page.fill("input[name='train.read.label_skew']", "0.5");
  await page.waitForSelector(".sent:has-text('read again')");
  await hush();
  await look("train-reading");
  const asked = seen.asked;
  await read();
  seen.askedAgain = seen.asked - asked;
  await small();
  seen.arrays = await submit();

  // A folder of images, and the same as a zip file.
  await begin("logistic", "30");
  await page.locator("input[type=file]").nth(1).setInputFiles(`${data}/shapes`);
  await page.waitForSelector("p:has-text('shapes.tar')");
  seen.imagesRead = await read();
  seen.imageClasses = await page.locator(".classes li").allTextContents();
  await hush();
  await look("train-images");
  await small();
  seen.images = await submit();
  // What was sent is gone: it is sent once more.
  await begin("logistic", "30");
  await chooseFile("shapes.zip");
  let isGone = true;
  await page.route("**/v1/imports", async (route) => {
    if (!isGone) return route.continue();
    isGone = false;
    const problem = { type: "about:blank", title: "Not Found", status: 404, detail: "what was sent is not here", code: "not_found" };
    await route.fulfill({ status: 404, contentType: "application/problem+json", body: JSON.stringify(problem) });
  });
  const sentBefore = seen.chunks;
  seen.zipRead = await read();
  seen.zipClasses = await page.locator(".classes li").allTextContents();
  seen.chunksAgain = seen.chunks - sentBefore;
  await page.unroute("**/v1/imports");
  forgive();

  // Running text, dropped, and something that is nothing.
  await begin("char-lstm", "1");
  const dropped = await page.evaluateHandle((text) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], "plays.txt"));
    return transfer;
  }, readFileSync(`${data}/plays.txt`, "utf8"));
  await page.dispatchEvent(".drop .place", "drop", { dataTransfer: dropped });
  await page.waitForSelector("p:has-text('plays.txt')");
  seen.textRead = await read();
  await page.locator("input[type=file]").first().setInputFiles(`${data}/noise.bin`);
  await page.waitForSelector(".drop [role=alert]");
  seen.noise = await page.locator(".drop [role=alert]").textContent();
  forgive();

  // What lies at an address: one that is none, one where there is nothing, and one with something.
  await page.click("label.way:has(input[value=url])");
  await page.fill("input[name=url]", "<b>rows</b>.csv");
  await page.waitForSelector(".field:has(input[name=url]) [role=alert]");
  seen.noAddress = await page.locator(".field:has(input[name=url]) [role=alert]").textContent();
  await page.fill("input[name=url]", "s3://bucket/rows.csv");
  await page.waitForSelector("input[name=AWS_SECRET_ACCESS_KEY]");
  await page.fill("input[name=AWS_SECRET_ACCESS_KEY]", "not to be kept");
  await hush();
  await look("train-store");
  seen.kept = await page.evaluate(() => JSON.stringify({ ...sessionStorage, ...localStorage }).includes("not to be kept"));
  await page.fill("input[name=url]", `${web}/none.csv`);
  await page.click("button:has-text('Fetch and read it')");
  await page.waitForSelector(".field:has(input[name=url]) [role=alert]");
  seen.address = await page.locator(".field:has(input[name=url]) [role=alert]").textContent();
  await hush();
  await look("train-address");
  await begin("svm", "20", "url");
  await page.fill("input[name=url]", `${web}/rows.libsvm`);
  await page.fill("input[name=sha256]", "0".repeat(63));
  await page.waitForSelector(".field:has(input[name=sha256]) [role=alert]");
  await page.fill("input[name=sha256]", sha256);
  seen.fetchedRead = await read();
  await small();
  seen.fetched = await submit();
});
