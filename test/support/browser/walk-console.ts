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

/** Opens pages as an administrator on a narrow screen. Returns the faults of each page that has some, and requests to other hosts. */
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
  const left = Object.entries(pages)
  const faults: Record<string, readonly string[]> = {}
  const walk = async () => {
    const page = await context.newPage()
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [name, path] = next
      const answer = await page.goto(path)
      const found = answer?.status() === 200 ? await faultsOf(page) : [`status ${answer?.status()}`]
      if (found.length > 0) faults[name] = found
    }
  }
  await Promise.all([walk(), walk()])
  await context.close()
  return { faults, foreign }
}

/** All rules in the light; colours once more in the dark. The width of the page, and elements of other people in it. */
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
    ...inDark.map((fault) => `in the dark: ${fault}`),
    ...(width > NARROW.width ? [`${width} pixels wide`] : []),
    ...(injected > 0 ? [`${injected} elements of another person`] : []),
    ...((await page.title()).includes('hacked') ? ['a script of another person'] : []),
  ]
}
