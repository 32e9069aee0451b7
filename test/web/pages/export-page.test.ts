import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeWaitingExports } from '../../../src/federation/archives/make-exports.js'
import type { TestBrowser } from '../../support/browser/scriptless-browser.js'
import { type ConsolePod, startConsolePod } from '../../support/pods/console-pod.js'

const never = new AbortController().signal

let pod: ConsolePod
let dan: TestBrowser
beforeAll(async () => {
  pod = await startConsolePod()
  dan = await pod.signedIn('dan')
})
afterAll(() => pod.close())

const cookiesOf = (browser: TestBrowser) => [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
const download = (id: string, browser: TestBrowser) =>
  pod.inject({ url: `/settings/export/${id}/file`, headers: { cookie: cookiesOf(browser) } })
const exportsOf = () => pod.pod.db('exports').orderBy('id', 'desc')

it('the page requests an archive with the private key, shows its state, and gives the file to its owner only', async () => {
  await dan.visit('/settings/export')
  await dan.submit({ kind: 'archive' }, '/settings/export')
  expect(dan.page.body).toContain('Archive to move</b>: waiting')
  await makeWaitingExports(pod.pod, never)
  await dan.visit('/settings/export')
  expect(dan.page.body).toContain('Archive to move</b>: ready')

  const [{ uid }] = await exportsOf()
  const file = await download(uid, dan)
  expect([file.statusCode, file.headers['cache-control']]).toEqual([200, 'private, no-store'])
  expect(file.headers['content-disposition']).toMatch(/filename="diaspora_dan_data_\d{4}-\d\d-\d\d\.json\.gz"/)
  expect(JSON.parse(gunzipSync(file.rawPayload).toString()).user.private_key).toContain('BEGIN RSA PRIVATE KEY')
  const [entry] = await pod.pod.db('audit_entries').where({ action: 'archive.download' })
  expect(entry).toMatchObject({ via: 'console', after: { kind: 'archive', export: uid }, actor: { role: 'member' } })

  const mod = await pod.signedIn('mod')
  expect((await download(uid, mod)).statusCode).toBe(404)
  expect((await pod.inject(`/settings/export/${uid}/file`)).statusCode).toBe(303)
})

it('an old sign-in has to be confirmed before a download and before a request', async () => {
  const [{ uid }] = await exportsOf()
  pod.later(660)
  try {
    const answer = await download(uid, dan)
    expect([answer.statusCode, answer.headers.location]).toEqual([
      303,
      `/users/confirm_access?return_to=${encodeURIComponent(`/settings/export/${uid}/file`)}`,
    ])
    await dan.visit('/settings/export')
    await dan.submit({ kind: 'photos' }, '/settings/export')
    expect(dan.url.pathname).toBe('/users/confirm_access')
    expect(await exportsOf()).toHaveLength(1)
  } finally {
    pod.later(-660)
  }
})

it('a second request while one is waiting, and one of no kind, are refused on the page', async () => {
  await dan.visit('/settings/export')
  await dan.submit({ kind: 'photos' }, '/settings/export')
  await dan.submit({ kind: 'photos' }, '/settings/export')
  expect(dan.page.body).toContain('An export of this kind is being made already.')
  await dan.visit('/settings/export')
  await dan.submit({ kind: 'secrets' }, '/settings/export')
  expect(dan.page.body).toContain('Choose what to export.')
})

it('an export is deleted with its file', async () => {
  const [waiting, ready] = await exportsOf()
  await dan.visit('/settings/export')
  await dan.submit({ id: ready.uid }, '/settings/export/delete')
  expect(dan.page.body).toContain('The export is deleted.')
  expect(dan.page.body).not.toContain('Archive to move</b>: ready')
  expect((await download(ready.uid, dan)).statusCode).toBe(404)
  expect(await pod.pod.pictures.openExport(ready.uid)).toBeUndefined()
  expect(waiting.kind).toBe('photos')
})
