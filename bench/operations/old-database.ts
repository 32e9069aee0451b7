import { generateKeyPairSync } from 'node:crypto'
import type { Knex } from 'knex'
import { type ColumnType, SOURCE_TABLES } from '../../src/take-over/source/source-tables.js'

const TYPES: Readonly<Record<ColumnType, string>> = {
  ...{ int: 'integer', bool: 'boolean', text: 'text', time: 'timestamp', date: 'date' },
  ...{ json: 'text', yaml: 'text', sealed: 'text', hashed: 'text' },
}

const USERS = 100
const TIME = `timestamp '2019-01-01' + make_interval(secs => i * 60)`
const TIMES = `${TIME}, ${TIME}`

/** Creates a database of diaspora* 0.9 with this number of posts. Returns its number of rows, about eleven times as many. */
export async function generateOldDatabase(db: Knex, posts: number): Promise<number> {
  for (const { name, key, columns } of SOURCE_TABLES) {
    const definitions = Object.entries(columns).map(
      ([column, type]) => `"${column}" ${TYPES[type]}${column === key ? ' primary key' : ''}`,
    )
    await db.raw(`create table "${name}" (${definitions.join(', ')})`)
  }
  await db.raw(`
    create table schema_migrations (version varchar not null);
    insert into schema_migrations values ('20170813222333'), ('20181127012722'), ('20230604015559')`)
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const keys = {
    privateKey: privateKey.export({ type: 'pkcs1', format: 'pem' }).toString(),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  }
  await db.raw(accounts(keys.privateKey))
  await db.raw(people(Math.ceil(posts / 10), keys.publicKey))
  await db.raw(content(posts, Math.ceil(posts / 10) + USERS))
  await db.raw('analyze')
  let rows = 0
  for (const { name } of SOURCE_TABLES) rows += Number((await db(name).count('* as count'))[0]?.['count'])
  return rows
}

const accounts = (privateKey: string) => `
  insert into users (id, username, serialized_private_key, email, encrypted_password, language, last_seen, getting_started,
    disable_mail, show_community_spotlight_in_stream, auto_follow_back, created_at, updated_at)
  select i, 'user' || i, '${privateKey}', 'user' || i || '@mail.example', '$2a$10$' || repeat('x', 53), 'en', ${TIME}, false, false,
    false, false, ${TIMES} from generate_series(1, ${USERS}) as i;
  insert into aspects (id, name, user_id, order_id, created_at, updated_at)
  select i, 'Aspect ' || i, i % ${USERS} + 1, 1, ${TIMES} from generate_series(1, ${4 * USERS}) as i;
  insert into pods (id, host, ssl, port, status, checked_at, software, blocked, created_at, updated_at)
  select i, 'pod' || i || '.example', true, -1, 1, ${TIME}, 'diaspora 0.9.0', false, ${TIMES} from generate_series(1, 200) as i;
  insert into tags (id, name) select i, 'tag' || i from generate_series(1, 1000) as i;
  insert into signature_orders (id, "order") values (1, 'author guid parent_guid text')`

/** Local people have the first ids. */
const people = (remote: number, publicKey: string) => `
  insert into people (id, guid, diaspora_handle, serialized_public_key, owner_id, pod_id, closed_account, fetch_status, created_at, updated_at)
  select i, md5('person' || i),
    case when i <= ${USERS} then 'user' || i || '@old.example' else 'p' || i || '@pod' || (i % 200 + 1) || '.example' end,
    '${publicKey}', case when i <= ${USERS} then i end, case when i > ${USERS} then i % 200 + 1 end, false, 4, ${TIMES}
  from generate_series(1, ${remote + USERS}) as i;
  insert into profiles (id, person_id, first_name, last_name, bio, searchable, nsfw, public_details, created_at, updated_at)
  select i, i, 'First ' || i, 'Last', 'About me', true, false, false, ${TIMES} from generate_series(1, ${remote + USERS}) as i;
  insert into contacts (id, user_id, person_id, sharing, receiving, created_at, updated_at)
  select i, i % ${USERS} + 1, ${USERS} + i / ${USERS} % ${remote} + 1, true, true, ${TIMES}
  from generate_series(${USERS}, ${USERS + Math.min(remote, 200) * USERS - 1}) as i;
  insert into aspect_memberships (id, aspect_id, contact_id, created_at, updated_at)
  select id, aspect, id, created_at, updated_at
  from (select contacts.*, (select min(id) from aspects where aspects.user_id = contacts.user_id) as aspect from contacts) as chosen`

const content = (posts: number, authors: number) => `
  insert into posts (id, author_id, public, guid, type, text, likes_count, comments_count, reshares_count, interacted_at, created_at, updated_at)
  select i, i * 7 % ${authors} + 1, i % 4 <> 0, md5('post' || i), 'StatusMessage',
    'Post ' || i || ' #tag' || i % 1000 || ' ' || repeat('some words ', 5 + i % 30), 2, 2, 0, ${TIME}, ${TIMES}
  from generate_series(1, ${posts}) as i;
  insert into share_visibilities (id, shareable_id, shareable_type, user_id, hidden)
  select row_number() over (), posts.id, 'Post', (posts.id + reader) % ${USERS} + 1, false
  from posts cross join generate_series(1, 3) as reader where not public;
  insert into comments (id, text, commentable_id, commentable_type, author_id, guid, likes_count, created_at, updated_at)
  select i, 'Comment ' || i || repeat(' words', i % 40), i % ${posts} + 1, 'Post', i * 11 % ${authors} + 1, md5('comment' || i), 0, ${TIMES}
  from generate_series(1, ${2 * posts}) as i;
  insert into comment_signatures (comment_id, author_signature, signature_order_id)
  select id, encode(sha256(guid::bytea), 'base64') || repeat('A', 300), 1 from comments where author_id > ${USERS} and id % 5 = 0;
  insert into likes (id, positive, target_id, target_type, author_id, guid, created_at, updated_at)
  select i, true, i % ${posts} + 1, 'Post', (i / ${posts} * 13 + i * 3) % ${authors} + 1, md5('like' || i), ${TIMES}
  from generate_series(1, ${2 * posts}) as i;
  insert into like_signatures (like_id, author_signature, signature_order_id)
  select id, encode(sha256(guid::bytea), 'base64') || repeat('A', 300), 1 from likes where author_id > ${USERS} and id % 5 = 0;
  insert into participations (id, guid, target_id, target_type, author_id, count, created_at, updated_at)
  select i, md5('participation' || i), i, 'Post', i % ${USERS} + 1, 1, ${TIMES} from generate_series(1, ${posts}) as i;
  insert into taggings (id, tag_id, taggable_id, taggable_type, context, created_at)
  select id, id % 1000 + 1, id, 'Post', 'tags', created_at from posts;
  insert into mentions (id, mentions_container_id, mentions_container_type, person_id)
  select id, id, 'Post', id % ${USERS} + 1 from posts where id % 10 = 0;
  insert into photos (id, author_id, public, pending, guid, remote_photo_path, remote_photo_name, status_message_guid, height, width, created_at, updated_at)
  select id, author_id, public, false, md5('photo' || id), 'https://pod1.example/uploads/images/', md5('name' || id) || '.jpg', guid, 600, 800,
    created_at, updated_at from posts where id % 10 = 1;
  insert into notifications (id, target_type, target_id, recipient_id, unread, type, guid, created_at, updated_at)
  select i, 'Post', i, i % ${USERS} + 1, i % 20 = 0, 'Notifications::AlsoCommented', md5('notification' || i), ${TIMES}
  from generate_series(1, ${posts}) as i;
  insert into notification_actors (id, notification_id, person_id)
  select id, id, id * 17 % ${authors} + 1 from notifications;
  insert into conversations (id, subject, guid, author_id, created_at, updated_at)
  select i, 'Subject ' || i, md5('conversation' || i), i % ${USERS} + 1, ${TIMES} from generate_series(1, ${Math.ceil(posts / 50)}) as i;
  insert into conversation_visibilities (id, conversation_id, person_id, unread, created_at, updated_at)
  select 2 * i + reader, i, (i + reader) % ${USERS} + 1, 0, ${TIMES}
  from generate_series(1, ${Math.ceil(posts / 50)}) as i cross join generate_series(0, 1) as reader;
  insert into messages (id, conversation_id, author_id, guid, text, created_at, updated_at)
  select i, i % ${Math.ceil(posts / 50)} + 1, i % ${Math.ceil(posts / 50)} % ${USERS} + 1, md5('message' || i), 'Hello ' || i, ${TIMES}
  from generate_series(1, ${Math.ceil(posts / 5)}) as i`
