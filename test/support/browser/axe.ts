import axe from 'axe-core'
import type { Page } from 'playwright-core'

interface AxeScope {
  /** A part of the page: a selector. */
  readonly part?: string
  /** Only these rules. */
  readonly rules?: readonly string[]
}

/** What axe finds on a page, or in one part of it, in one line each; targets of the minimum size included. */
export async function violationsOn(page: Page, { part, rules }: AxeScope = {}): Promise<readonly string[]> {
  if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(axe.source)
  const options = {
    resultTypes: ['violations'],
    ...(rules === undefined ? { rules: { 'target-size': { enabled: true } } } : { runOnly: rules }),
  }
  const scope = part === undefined ? 'document' : JSON.stringify(part)
  const violations = (await page.evaluate(
    `axe.run(${scope}, ${JSON.stringify(options)}).then(({ violations }) => violations)`,
  )) as axe.AxeResults['violations']
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
  )
}
