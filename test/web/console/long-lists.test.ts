import { afterAll, beforeAll, expect, it } from 'vitest'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import type { TestBrowser } from '../../support/browser/scriptless-browser.js'
import { fillConsoleLists } from '../../support/databases/long-lists.js'
import { type ConsolePod, startConsolePod } from '../../support/pods/console-pod.js'

const ROWS = 10_000

let console: ConsolePod
let adm: TestBrowser
beforeAll(async () => {
  console = await startConsolePod()
  adm = await console.signedIn('adm')
  await fillConsoleLists(console.pod, ROWS)
})
afterAll(() => console.close())

it.each([
  '/admin/pods',
  '/admin/people',
  '/admin/people?pod=p7.example',
  '/admin/clusters',
  '/admin/reports',
  '/admin/rules',
  '/admin/sign-ups',
  '/admin/dead-letters',
  '/admin/quarantine',
  '/admin/audit',
])('%s shows one page of ten thousand rows', async (path) => {
  const { statusCode, body } = await adm.visit(path)

  expect(statusCode).toBe(200)
  const rows = body.match(/<tr>/g)?.length ?? 0
  expect(rows).toBeGreaterThan(1)
  expect(rows).toBeLessThanOrEqual(150)
})

it('a cluster of ten thousand items shows its newest items and its number', async () => {
  const { id } = await console.pod.db('clusters').orderBy('id', 'desc').first('id')
  const { body } = await adm.visit(`/admin/clusters/${id}`)

  expect(body).toContain('<dd>10,000</dd>')
  expect(body.match(/<tr>/g)?.length).toBeLessThanOrEqual(210)
})

it.each([
  ['/admin/dead-letters', 20],
  ['/admin/queues', 32],
])('%s makes no request for each queue that has nothing to show', async (path, most) => {
  await adm.visit(path)

  expect(await statementsDuring(() => adm.visit(path))).toBeLessThanOrEqual(most)
})
