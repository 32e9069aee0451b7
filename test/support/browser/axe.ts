import axe from 'axe-core'
import type { Page } from 'playwright-core'

interface AxeScope {
  /** Selector of a part of the page. Default: the whole page. */
  readonly part?: string
  /** The only rules that are checked. Default: all rules. */
  readonly rules?: readonly string[]
}

/** Violations that axe finds on a page or in a part of it, one line each. Includes the minimum size of targets. */
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
