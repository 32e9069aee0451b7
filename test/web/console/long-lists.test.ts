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

it('a case with many reports shows its newest reports and steps, and pages with all of them', async () => {
  const { db } = console.pod
  const target = { targetType: 'post', targetGuid: 'a-post-that-is-reported-often', public: true }
  const [{ id }] = await db('moderation_cases').insert(target).returning('id')
  await db.raw(
    `with reporters as (
       insert into people (guid, address, public_key) select md5('reporter' || n), 'reporter' || n || '@pod.example', 'key' from generate_series(1, 250) as n
       returning id
     ), accounts as (
       insert into users (username, person_id) select 'reporter' || id, id from reporters returning id, username
     ), reported as (
       insert into reports (case_id, user_id, reason) select :id, id, username from accounts returning user_id
     )
     insert into moderation_case_events (case_id, actor_id, event) select :id, user_id, 'reported' from reported`,
    { id },
  )
  const itemsAt = async (path: string) => {
    const lists = (await adm.visit(path)).body.match(/<ul class="history[\s\S]*?<\/ul>/g) ?? []
    return lists.join('').match(/<li>/g)?.length
  }

  expect(await itemsAt(`/admin/reports/${id}`)).toBe(200)
  for (const part of ['reports', 'history']) {
    expect(adm.page.body).toContain(`/admin/reports/${id}/${part}`)
    expect(await itemsAt(`/admin/reports/${id}/${part}`)).toBe(50)
    const [, older = ''] = /href="([^"]*before=[^"]*)"/.exec(adm.page.body) ?? []
    expect(await itemsAt(older)).toBe(50)
    await adm.visit(`/admin/reports/${id}`)
  }
})

it.each([
  ['/admin/dead-letters', 20],
  ['/admin/queues', 32],
])('%s makes no request for each queue that has nothing to show', async (path, most) => {
  await adm.visit(path)

  expect(await statementsDuring(() => adm.visit(path))).toBeLessThanOrEqual(most)
})
