import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findClusters } from '../../../src/domain/moderation/clusters/find-clusters.js'
import { violationsOn } from '../../support/browser/axe.js'
import { findChromium, launchChromium } from '../../support/browser/chromium.js'
import { openSampleConsole, type SampleConsole } from '../../support/browser/sample-console.js'
import { openView, type View } from '../../support/browser/sample-pages.js'
import { addPost } from '../../support/databases/rows.js'
import { addRemotePerson } from '../../support/people/remote-people.js'

const executablePath = findChromium()
if (executablePath === undefined)
  globalThis.console.warn('No Chromium is installed: the tests of the console in a browser are left out.')

let samples: SampleConsole
let browser: Browser | undefined
beforeAll(async () => {
  ;[samples, browser] = await Promise.all([openSampleConsole(), launchChromium()])
}, 180_000)
afterAll(async () => {
  await browser?.close()
  await samples.close()
})

/** A browser in which the person is signed in. */
async function signedIn(name: 'mod' | 'adm', view: View): Promise<BrowserContext> {
  if (browser === undefined) throw new Error('There is no browser.')
  const { cookies } = await samples.pod.signedIn(name)
  const context = await openView(browser, samples.url, view)
  await context.addCookies([...cookies].map(([key, value]) => ({ name: key, value, url: samples.url })))
  return context
}

const NARROW = { colorScheme: 'light', width: 320 } as const

/** All rules in the light; colours once more in the dark. The width of the page at 320 pixels, and elements of others in it. */
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

describe.skipIf(executablePath === undefined)('in Chromium', () => {
  it('no page of the console has a violation that axe finds, is wider than 320 pixels, or runs a text of others', async () => {
    const context = await signedIn('adm', NARROW)
    const foreign: string[] = []
    context.on('request', (request) => {
      if (!request.url().startsWith(samples.url)) foreign.push(request.url())
    })
    const left = Object.entries(samples.pages)
    const faults: (readonly [string, readonly string[]])[] = []
    const walk = async () => {
      const page = await context.newPage()
      for (let next = left.shift(); next !== undefined; next = left.shift()) {
        const [name, path] = next
        const answer = await page.goto(path)
        faults.push([name, answer?.status() === 200 ? await faultsOf(page) : [`status ${answer?.status()}`]])
      }
    }
    await Promise.all([walk(), walk()])
    await context.close()

    expect(faults.filter(([, found]) => found.length > 0)).toEqual([])
    expect(faults).toHaveLength(Object.keys(samples.pages).length)
    expect(foreign).toEqual([])
  }, 240_000)

  it('a queue is paused and resumed without JavaScript, with the keyboard alone', async () => {
    const context = await signedIn('adm', { colorScheme: 'light', width: 390, javaScriptEnabled: false })
    const page = await context.newPage()
    await page.goto('/admin/queues/photos')
    await page.keyboard.press('Tab')
    expect(await page.locator(':focus').innerText()).toBe('Skip to the content')
    await page.keyboard.press('Enter')
    const focusedName = () => page.locator(':focus').getAttribute('name', { timeout: 1_000 })
    do await page.keyboard.press('Tab')
    while ((await focusedName()) !== 'reason')
    await page.keyboard.type('a test of the keyboard')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Queue photos: paused' }).waitFor()

    await page.getByLabel('Reason').fill('done')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Queue photos: running' }).waitFor()
    await context.close()
  })

  it('a moderator answers a report, cleans a spam wave in ten requests and tries a filter, without JavaScript', async () => {
    const { pod, people } = samples.pod
    const { dan } = await people('dan')
    const eve = await addRemotePerson(pod, 'eve@shop.example')
    const post = await addPost(pod, eve, { text: 'A reported offer' })
    await dan.post(`/api/v1/posts/${post.guid}/report`, { reason: 'An advertisement' })
    const isVisible = async (guid: string) => (await dan.get(`/api/v1/posts/${guid}`)).statusCode === 200
    const context = await signedIn('mod', { colorScheme: 'light', width: 390, javaScriptEnabled: false })
    const page = await context.newPage()

    await page.goto('/admin')
    await page.getByRole('link', { name: /open reports/ }).click()
    await page
      .getByRole('row', { name: /eve@shop\.example/ })
      .getByRole('link')
      .click()
    await page.getByText('A reported offer').waitFor()
    const form = page.locator('form', { has: page.getByRole('button', { name: 'Hide the post' }) })
    await form.getByLabel('Reason').fill('Advertisement')
    await form.getByLabel('Reason').press('Enter')
    await page.getByRole('heading', { name: /: resolved/ }).waitFor()
    expect(await isVisible(post.guid)).toBe(false)
    await page.getByText('Undo', { exact: true }).click()
    const undo = page.locator('form', { has: page.getByRole('button', { name: /^Undo action/ }) })
    await undo.getByLabel('Reason').fill('A mistake')
    await undo.getByRole('button').click()
    await page.getByText('The action is undone.').waitFor()
    expect(await isVisible(post.guid)).toBe(true)

    const authors = await Promise.all(
      Array.from({ length: 12 }, (_, index) => addRemotePerson(pod, `bot${index}@bots${index % 4}.example`)),
    )
    const items = await Promise.all(
      [...authors, ...authors].map((author) =>
        addPost(pod, author, { text: 'Win at https://casino.example/now today' }),
      ),
    )
    await findClusters(pod)
    const requests: string[] = []
    page.on('request', (request) => {
      if (request.isNavigationRequest()) requests.push(request.url())
    })
    await page.goto('/admin/clusters')
    await page
      .getByRole('row', { name: /casino\.example/ })
      .getByRole('link')
      .click()
    await page
      .locator('form', { has: page.getByRole('button', { name: 'Preview' }) })
      .getByLabel('Reason')
      .fill('A wave')
    await page.locator('select[name=authors]').selectOption('silence')
    await page.getByRole('button', { name: 'Preview' }).click()
    await page.getByRole('heading', { name: 'Preview: 24 items' }).waitFor()
    await page.getByRole('button', { name: 'Clean' }).click()
    await page.getByRole('heading', { name: /: cleaned/ }).waitFor()
    expect(requests.length).toBeLessThanOrEqual(10)
    expect(await Promise.all(items.map(({ guid }) => isVisible(guid)))).toEqual(items.map(() => false))

    await page.goto('/admin/filters')
    await page.getByLabel('Kind').selectOption('phrase')
    await page.getByLabel('Value').fill('reported offer')
    await page.getByRole('button', { name: 'Dry run' }).click()
    await page.getByRole('heading', { name: 'Dry run: 1 hits in 7 days' }).waitFor()
    expect(await page.getByLabel('Value').inputValue()).toBe('reported offer')
    await context.close()
  }, 180_000)
})
