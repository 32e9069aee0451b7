import { afterAll, beforeAll, expect, it } from 'vitest'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import type { TestBrowser } from '../../support/browser/scriptless-browser.js'
import { type ConsolePod, startConsolePod } from '../../support/pods/console-pod.js'

const ROWS = 10_000

let console: ConsolePod
let adm: TestBrowser
beforeAll(async () => {
  console = await startConsolePod()
  adm = await console.signedIn('adm')
  for (const statement of SEED) await console.pod.db.raw(statement, { rows: ROWS })
})
afterAll(() => console.close())

const SEED = [
  `insert into pods (host, port, ssl) select 'p' || n || '.example', 443, true from generate_series(1, :rows) as n`,
  `insert into people (guid, address, public_key, pod_id)
   select md5('person' || pods.id), 'someone@' || pods.host, 'key', pods.id from pods where host like 'p%.example'`,
  `insert into posts (guid, author_id, type, public, text)
   select md5('post' || people.id), people.id, 'StatusMessage', true, 'Buy' from people where address like 'someone@%'`,
  `insert into clusters (key, kind, label) select 'key' || n, 'link', 'spam.example/' || n from generate_series(1, :rows) as n`,
  `insert into cluster_items (cluster_id, type, content_id, author_id, at)
   select (select max(id) from clusters), 'post', posts.id, posts.author_id, now() from posts where text = 'Buy'`,
  'update clusters set item_count = :rows, author_count = :rows, pod_count = :rows where id = (select max(id) from clusters)',
  `insert into moderation_cases (target_type, target_guid, kind, public, text, author_guid, author_address)
   select 'post', md5('case' || n), 'report', true, 'Buy', md5('author'), 'someone@p1.example' from generate_series(1, :rows) as n`,
  `insert into pod_rules (domain, subdomains, state, reason, public_comment, obfuscate, source, created_by)
   select 'bad' || n || '.example', true, 'limited', 'Spam', '', false, 'manual', 'adm' from generate_series(1, :rows) as n`,
  `insert into pending_sign_ups (username, password_hash, language, reason, needs_confirmation, needs_approval, network, rules, expires_at)
   select 'user' || n, 'x', 'en', 'Let me in', false, true, '192.0.2.0/24', '{}', now() + interval '1 day' from generate_series(1, :rows) as n`,
  `insert into outbox (queue, name, data, payload, accepted_at, failed_at)
   select 'inbound', 'receive-public', '{"fault":"discarded"}', 'x', now(), now() - n * interval '1 second' from generate_series(1, :rows) as n`,
  `insert into quarantine (received_at, author, host, fault, payload, bytes, is_whole, digest)
   select now(), 'eve@evil.example', 'evil.example', 'NotPublic', 'x', 1, true, decode(md5(cast(n as text)), 'hex') from generate_series(1, :rows) as n`,
  `insert into audit_entries (id, at, actor, via, action, target, hash)
   select (select max(id) from audit_entries) + n, now(), '{"guid":null,"name":"adm","role":"admin"}', 'console', 'hide', '{"type":"post","guid":null,"label":"a post"}', decode(md5(cast(n as text)), 'hex')
   from generate_series(1, :rows) as n`,
]

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
