import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { violationsOn } from '../../support/browser/axe.js'
import { findChromium, launchChromium } from '../../support/browser/chromium.js'
import { openSampleConsole, type SampleConsole } from '../../support/browser/sample-console.js'
import { openView, type View } from '../../support/browser/sample-pages.js'

const executablePath = findChromium()
if (executablePath === undefined)
  globalThis.console.warn('No Chromium is installed: the tests of the console in a browser are left out.')

let samples: SampleConsole
let browser: Browser | undefined
beforeAll(async () => {
  samples = await openSampleConsole()
  browser = await launchChromium()
}, 60_000)
afterAll(async () => {
  await browser?.close()
  await samples.close()
})

/** The views to test in a browser; empty without a browser. */
const views: readonly View[] =
  executablePath === undefined
    ? []
    : (['light', 'dark'] as const).flatMap((colorScheme) => [320, 390, 1280].map((width) => ({ colorScheme, width })))

async function withPage(view: View, use: (page: Page) => Promise<void>): Promise<void> {
  if (browser === undefined) throw new Error('There is no browser.')
  const context = await openView(browser, samples.url, view)
  try {
    const page = await context.newPage()
    await page.goto('/admin')
    await page.getByLabel('Username').fill('adm')
    await page.getByLabel('Password', { exact: true }).fill('the password of adm')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL('**/admin')
    await use(page)
  } finally {
    await context.close()
  }
}

describe.each(views)('in Chromium, $colorScheme and $width pixels wide,', (view) => {
  it('no page of the console has a violation that axe finds, is wider than the screen, or runs a text of others', async () => {
    await withPage({ ...view }, async (page) => {
      const foreign: string[] = []
      page.on('request', (request) => {
        if (!request.url().startsWith(samples.url)) foreign.push(request.url())
      })
      for (const [name, path] of Object.entries(samples.pages)) {
        await page.goto(path)
        const width = Number(await page.evaluate('document.documentElement.scrollWidth'))
        const injected = await page.locator('main script, main img').count()

        expect([name, await violationsOn(page), width <= view.width, injected]).toEqual([name, [], true, 0])
        expect(await page.title()).not.toContain('hacked')
      }
      expect(foreign).toEqual([])
    })
  }, 120_000)
})

describe.each(executablePath === undefined ? [] : ['without JavaScript, with the keyboard alone'])(
  'in Chromium %s',
  () => {
    it('a queue is paused and resumed', async () => {
      await withPage({ colorScheme: 'light', width: 390, javaScriptEnabled: false }, async (page) => {
        await page.goto('/admin/queues/photos')
        await page.keyboard.press('Tab')
        expect(await page.locator(':focus').innerText()).toBe('Skip to the content')
        await page.keyboard.press('Enter')
        const focusedName = () => page.locator(':focus').getAttribute('name', { timeout: 1_000 })
        do await page.keyboard.press('Tab')
        while ((await focusedName()) !== 'reason')
        await page.keyboard.type('a test of the keyboard')
        await page.keyboard.press('Enter')
        await page.waitForURL('**?notice=paused')
        await page.getByRole('heading', { name: 'Queue photos: paused' }).waitFor()

        await page.getByLabel('Reason').fill('done')
        await page.keyboard.press('Enter')
        await page.getByRole('heading', { name: 'Queue photos: running' }).waitFor()
      })
    })
  },
)
