import type { Browser, BrowserContext, Page } from 'playwright-core'
import type { ConsolePod } from '../pods/console-pod.js'
import { violationsOn } from './axe.js'
import { openView, type View } from './sample-pages.js'

/** The narrowest width that pages support. */
const NARROW = { colorScheme: 'light', width: 320 } as const

/** A view of the console in which the person is signed in. */
export async function openConsoleView(
  browser: Browser,
  { pod, url }: { readonly pod: Pick<ConsolePod, 'signedIn'>; readonly url: string },
  name: 'mod' | 'adm',
  view: View,
): Promise<BrowserContext> {
  const { cookies } = await pod.signedIn(name)
  const context = await openView(browser, url, view)
  await context.addCookies([...cookies].map(([key, value]) => ({ name: key, value, url })))
  return context
}

/** Opens pages as an administrator on a narrow screen. Returns the faults by page, and requests to other hosts. */
export async function walkConsole(
  browser: Browser,
  console: { readonly pod: Pick<ConsolePod, 'signedIn'>; readonly url: string },
  pages: Readonly<Record<string, string>>,
): Promise<{ readonly faults: Readonly<Record<string, readonly string[]>>; readonly foreign: readonly string[] }> {
  const context = await openConsoleView(browser, console, 'adm', NARROW)
  const foreign: string[] = []
  context.on('request', (request) => {
    if (!request.url().startsWith(console.url)) foreign.push(request.url())
  })
  const remaining = Object.entries(pages)
  const faults: Record<string, readonly string[]> = {}
  const walk = async () => {
    const page = await context.newPage()
    for (let next = remaining.shift(); next !== undefined; next = remaining.shift()) {
      const [name, path] = next
      const response = await page.goto(path)
      const found = response?.status() === 200 ? await faultsOf(page) : [`status ${response?.status()}`]
      if (found.length > 0) faults[name] = found
    }
  }
  await Promise.all([walk(), walk()])
  await context.close()
  return { faults, foreign }
}

/** Violations of axe in both colour schemes, pages that are too wide, and injected elements. */
async function faultsOf(page: Page): Promise<readonly string[]> {
  const width = Number(await page.evaluate('document.documentElement.scrollWidth'))
  // The copy of a reported picture comes from this pod.
  const injected = await page.locator('main script, main img:not([src^="/admin/reports/"])').count()
  const inLight = await violationsOn(page)
  await page.emulateMedia({ colorScheme: 'dark' })
  const inDark = await violationsOn(page, { rules: ['color-contrast'] })
  await page.emulateMedia({ colorScheme: 'light' })
  return [
    ...inLight,
    ...inDark.map((fault) => `dark scheme: ${fault}`),
    ...(width > NARROW.width ? [`${width} pixels wide`] : []),
    ...(injected > 0 ? [`${injected} elements of another person`] : []),
    ...((await page.title()).includes('hacked') ? ['a script of another person'] : []),
  ]
}
