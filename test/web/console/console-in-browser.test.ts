import type { Browser, BrowserContext } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findClusters } from '../../../src/domain/moderation/clusters/find-clusters.js'
import { findChromium, launchChromium } from '../../support/browser/chromium.js'
import { openSampleConsole, type SampleConsole } from '../../support/browser/sample-console.js'
import type { View } from '../../support/browser/sample-pages.js'
import { openConsoleView, walkConsole } from '../../support/browser/walk-console.js'
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

async function signedIn(name: 'mod' | 'adm', view: View): Promise<BrowserContext> {
  if (browser === undefined) throw new Error('There is no browser.')
  return openConsoleView(browser, samples, name, view)
}

describe.skipIf(executablePath === undefined)('in Chromium', () => {
  it('no page of the console has a violation that axe finds, is wider than 320 pixels, or runs a text of others', async () => {
    if (browser === undefined) throw new Error('There is no browser.')

    expect(Object.keys(samples.pages).length).toBeGreaterThan(40)
    expect(await walkConsole(browser, samples, samples.pages)).toEqual({ faults: {}, foreign: [] })
  }, 240_000)

  it('a table that is wider than the screen scrolls to its last column, and shows that there is more', async () => {
    const context = await signedIn('adm', { colorScheme: 'light', width: 600 })
    const page = await context.newPage()
    await page.goto('/admin/queues')
    const region = page.getByRole('region', { name: /^Queues/ })
    const read = (expression: string) =>
      page.evaluate(`(() => { const element = document.querySelector('.scroll'); ${expression} })()`)
    const hiddenPixels = () => read('return element.scrollWidth - element.clientWidth')
    expect(await hiddenPixels()).toBeGreaterThan(0)
    expect(await read('return getComputedStyle(element).backgroundAttachment')).toContain('local')
    await region.focus()
    await read('element.scrollTo(element.scrollWidth, 0)')
    const last = await page.getByRole('columnheader', { name: 'Workers' }).boundingBox()
    expect(Number(last?.x) + Number(last?.width)).toBeLessThanOrEqual(600)

    await page.setViewportSize({ width: 1_100, height: 900 })
    expect(await hiddenPixels()).toBeLessThanOrEqual(0)
    await context.close()
  })

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
