import { mkdir } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { violationsOn } from '../../support/browser/axe.js'
import { launchChromium } from '../../support/browser/chromium.js'
import { openView } from '../../support/browser/sample-pages.js'
import { freePort } from '../../support/http/free-port.js'
import { type ConsolePod, startConsolePod } from '../../support/pods/console-pod.js'

const browser = await launchChromium()
/** For a look at the pages: a folder for their pictures. */
const pictures = process.env['IMPORT_PICTURES']

const counts = (imported: number) => ({
  posts: { found: 1_200, imported, skipped: 3, refused: 2, by_reason: { guid_taken: 1, root_missing: 1 } },
  contacts: { found: 40, imported: 38, skipped: 0, refused: 2, by_reason: { not_found: 2 } },
  others_relayables: { found: 900, imported: 0, skipped: 0, refused: 0, by_reason: {} },
})

const OLD = `alice@${'a-long-name-of-a-pod.'.repeat(3)}example`

const report = {
  file: { version: '2.0', bytes: 12_345_678, sha256: 'ab'.repeat(32) },
  old_address: OLD,
  identity: 'unproven',
  sections: counts(1_195),
  refused: { posts: [{ position: 1, ref: 'f'.repeat(32), reason: 'guid_taken' }] },
  posts: { public: 1_000, private: 200 },
  photos: { named: 50, found: 48, missing: 2, not_named: 1 },
  contacts: { reachable: 38, moved: 1, closed: 0, unreachable: 1, on_blocked_pods: 0 },
  warnings: ['no_photos_given', 'identity_unproven', 'old_pod_blocked'],
}

describe.runIf(browser !== undefined)('the page of imports in a browser', () => {
  let pod: ConsolePod
  let url: string
  let userId: number
  beforeAll(async () => {
    const port = await freePort()
    url = `http://localhost:${port}`
    pod = await startConsolePod({ environment: { POD_URL: url } })
    await pod.app.listen({ port, host: 'localhost' })
    await pod.signedIn('dan')
    ;({ id: userId } = await pod.pod.db('users').where({ username: 'dan' }).first())
    if (pictures !== undefined) await mkdir(pictures, { recursive: true })
  })
  afterAll(async () => {
    await browser?.close()
    await pod.close()
  })
  beforeEach(async () => {
    await pod.pod.db('import_uploads').delete()
    await pod.pod.db('imports').delete()
  })

  const upload = (row: Readonly<Record<string, unknown>>) =>
    pod.pod.db('import_uploads').insert({ uid: newGuid(), userId, createdAt: new Date(), ...row })
  const run = (row: Readonly<Record<string, unknown>>) =>
    pod.pod.db('imports').insert({
      uid: newGuid(),
      userId,
      oldAddress: OLD,
      identity: 'proven',
      options: { move: true },
      header: { lists: { posts: 1_200 } },
      bytes: 1,
      sha256: 'x',
      phase: 'posts',
      lines: 600,
      counts: counts(595),
      createdAt: new Date(),
      ...row,
    })

  it.each([
    ['without an upload', async () => undefined],
    ['with a broken upload', () => upload({ state: 'uploading', archiveBytes: 123_456_789 })],
    ['with a check that runs', () => upload({ state: 'checking' })],
    ['with a refused archive', () => upload({ state: 'failed', error: 'key_mismatch' })],
    ['with a check', () => upload({ state: 'checked', checkedAt: new Date(), report: JSON.stringify(report) })],
    ['with an import that runs', () => run({ state: 'running' })],
    ['with a paused import', () => run({ state: 'paused', phase: 'contacts', lines: 12 })],
    ['with a finished import', () => run({ state: 'done', counts: counts(1_195), finishedAt: new Date() })],
    ['with a failed import', () => run({ state: 'failed', error: 'no_space', finishedAt: new Date() })],
  ])('%s: axe finds nothing, and nothing is wider than a small screen', async (name, make) => {
    if (browser === undefined) throw new Error('There is no browser.')
    await make()
    const { cookies } = await pod.signedIn('dan')
    const context = await openView(browser, url, { width: 390, colorScheme: 'light' })
    await context.addCookies([...cookies].map(([cookie, value]) => ({ name: cookie, value, url })))
    const page = await context.newPage()
    await page.goto('/settings/import')
    await page.evaluate(`for (const one of document.querySelectorAll('details')) one.setAttribute('open', '')`)
    const show = async (look: string, colorScheme: 'light' | 'dark', direction: 'ltr' | 'rtl') => {
      await page.emulateMedia({ colorScheme })
      await page.evaluate(`document.documentElement.dir = '${direction}'`)
      if (pictures !== undefined) {
        await page.screenshot({ path: `${pictures}/${name.replaceAll(' ', '-')}-${look}.png`, fullPage: true })
      }
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390)
    }
    await show('light', 'light', 'ltr')
    expect(await violationsOn(page)).toEqual([])
    await show('dark', 'dark', 'ltr')
    expect(await violationsOn(page, { rules: ['color-contrast'] })).toEqual([])
    await show('rtl', 'light', 'rtl')
    await context.close()
  })
})
