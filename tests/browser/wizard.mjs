// The ways through the wizard that several walks take.
export function wizard({ page, until }, origin) {
  const to = async (name) => {
    await page.click(`.steps a:has-text('${name}')`);
    await page.waitForSelector(`.steps a[aria-current=step]:has-text('${name}')`);
  };
  return {
    to,
    async anew(way) {
      await page.goto(`${origin}/#/train`);
      await page.waitForSelector("input[name=name]");
      if (way) await page.click(`label.way:has(input[value='${way}'])`);
    },
    // Machines that any test has.
    async small(workers) {
      await to("Machines");
      if (workers) await page.fill("input[name=workers]", workers);
      await page.fill("input[name=cpus]", "0.1");
      await page.fill("input[name=memory]", "0.2");
      await page.fill("input[name=longest]", "5m");
    },
    // Returns the new job's number at once: the test waits for its end while the walk goes on.
    async submit() {
      await to("Check");
      await page.waitForSelector("button:has-text('Submit the job'):not([disabled])");
      await page.click("button:has-text('Submit the job')");
      await until(() => /^#\/jobs\/\d+/.test(location.hash));
      return Number(/\d+/.exec(new URL(page.url()).hash)[0]);
    },
  };
}
