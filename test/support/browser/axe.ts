import axe from 'axe-core'
import type { Page } from 'playwright-core'

/** What axe finds on a page, or in one part of it, in one line each; targets of the minimum size included. */
export async function violationsOn(page: Page, part?: string): Promise<readonly string[]> {
  await page.evaluate(axe.source)
  const { violations } = (await page.evaluate(
    `axe.run(${part === undefined ? 'document' : JSON.stringify(part)}, { resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } })`,
  )) as axe.AxeResults // what axe.run resolves to
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
  )
}
