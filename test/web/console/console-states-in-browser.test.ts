import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findChromium, launchChromium } from '../../support/browser/chromium.js'
import { walkConsole } from '../../support/browser/walk-console.js'
import { fillConsoleLists } from '../../support/databases/long-lists.js'
import { freePort } from '../../support/http/free-port.js'
import { type ConsolePod, startConsolePod } from '../../support/pods/console-pod.js'

/** Rows of each list. */
const ROWS = 10_000

/** All pages without an object of their own. */
const PAGES = Object.fromEntries(
  [
    '/admin',
    ...['reports', 'people', 'pods', 'rules', 'rules/import', 'filters', 'clusters', 'sign-ups', 'invitations'],
    ...['network-rules', 'audit', 'roles', 'queues', 'queues/inbound', 'dead-letters', 'quarantine', 'workers'],
    ...['database', 'storage', 'checks', 'settings'],
  ].map((page) => [page, page.startsWith('/') ? page : `/admin/${page}`]),
)

const executablePath = findChromium()
let browser: Browser | undefined
beforeAll(async () => {
  browser = await launchChromium()
})
afterAll(() => browser?.close())

async function startListening(): Promise<ConsolePod> {
  const port = await freePort()
  const pod = await startConsolePod({ environment: { POD_URL: `http://localhost:${port}` } })
  await pod.app.listen({ port, host: 'localhost' })
  return pod
}

describe.skipIf(executablePath === undefined)('in Chromium', () => {
  it.each([0, ROWS])(
    'no page of a console with %i rows in each list has a fault',
    { timeout: 600_000 },
    async (rows) => {
      if (browser === undefined) throw new Error('There is no browser.')
      await using pod = await startListening()
      if (rows > 0) await fillConsoleLists(pod.pod, rows)

      expect(await walkConsole(browser, { pod, url: pod.url }, PAGES)).toEqual({ faults: {}, foreign: [] })
    },
  )
})
