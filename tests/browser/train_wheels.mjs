// Brings packages to a job through the wizard: a folder whose requirements a page cannot install, wheels dropped beside it,
// the same job again, and the whole project from one archive; then secrets and data for a program.
//
//   node train_wheels.mjs URL_WITH_CODE FOLDER DATA_FOLDER ADDRESS SECRET PROJECT ODD_WHEEL ARCHIVE WHEEL...
import { browse } from "./kit.mjs";
import { mounts } from "./train_mounts.mjs";
import { wizard } from "./wizard.mjs";

const [url, folder, data, address, secret, project, odd, archive, ...wheels] = process.argv.slice(2);
const { origin } = new URL(url);

await browse({ url, folder }, async (parts) => {
  const { page, seen, until, look, hush } = parts;
  const steps = wizard(parts, origin);
  const { to, anew, small, submit } = steps;
  // The job file, once it is of what stands in the wizard now.
  const yaml = async (hasWheels) => {
    await to("Check");
    await until((has) => document.querySelector(".copy pre")?.textContent.includes("split: wheels") === has, hasWheels);
    return page.locator(".copy pre").textContent();
  };
  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");

  // Requirements alone: what to do is said, and nothing is installed.
  await anew("code");
  await page.locator("input[type=file]").nth(1).setInputFiles(project);
  await page.waitForSelector(".needs:has-text('which a page cannot run')");
  seen.fetch = await page.locator(".needs pre").textContent();
  await hush();
  await look("train-requirements");
  seen.before = await yaml(false);

  // What is no wheel is refused; wheels take a place of their own, and the files stay.
  await to("What");
  await page.locator("input[type=file]").first().setInputFiles(odd);
  await page.waitForSelector(".drop [role=alert]:has-text('is no wheel')");
  await page.locator("input[type=file]").first().setInputFiles(wheels);
  await page.waitForSelector(".wheels:has-text('2 packages')");
  seen.listed = await page.locator(".wheels li").allTextContents();
  await page.waitForSelector(".needs", { state: "detached" });
  seen.main = await page.inputValue("input[name=main]");
  await look("train-wheels");
  await page.reload();
  await page.waitForSelector(".wheels:has-text('2 packages')");
  await small("2");
  seen.yaml = await yaml(true);
  // Two machines are here, and one of them installs.
  await page.waitForSelector(".note:has-text('It waits at first')");
  seen.lacking = await page.locator(".note:has-text('It waits at first')").textContent();
  await small("1");
  seen.first = await submit();

  // Again: they are still told apart, and can be left out.
  await page.click("a:has-text('Train again')");
  await page.waitForSelector(".wheels:has-text('of the earlier job')");
  seen.again = await yaml(true);
  await page.waitForSelector("button:has-text('Submit the job'):not([disabled])");
  await to("What");
  await page.click(".wheels button:has-text('Leave them out')");
  await page.waitForSelector(".wheels", { state: "detached" });
  seen.without = await yaml(false);

  // From inside an archive they are taken out; the rest of it is the code.
  await to("What");
  await page.locator("input[type=file]").first().setInputFiles(archive);
  await page.waitForSelector(".wheels:has-text('2 packages')");
  await page.fill("textarea[name=run]", "");
  await page.fill("input[name=main]", "main.py");
  seen.packed = await yaml(true);
  seen.second = await submit();

  await mounts(parts, steps, { data, address, secret });
});
