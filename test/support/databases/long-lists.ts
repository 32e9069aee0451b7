import type { Services } from '../../../src/services/services.js'

/** Adds this number of rows to each long list of the console. */
export async function fillConsoleLists({ db }: Pick<Services, 'db'>, rows: number): Promise<void> {
  for (const statement of STATEMENTS) await db.raw(statement, { rows })
}

const STATEMENTS = [
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
