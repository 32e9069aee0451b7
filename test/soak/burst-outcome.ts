import type { Services } from '../../src/services/services.js'
import type { Burst, LocalPost } from './burst-messages.js'

type Counts = ReadonlyMap<string, number>

/** What a burst must lead to. */
interface BurstExpectation {
  readonly burst: Burst
  readonly localPosts: readonly LocalPost[]
  /** Ignores notifications of other types than those of a burst, because local users are active as well. */
  readonly onlyBurstNotifications?: boolean
}

/** All differences between the state of the pod and the expected result of the burst, as sentences. */
export async function findViolations(
  pod: Pick<Services, 'db'>,
  { burst, localPosts, onlyBurstNotifications = false }: BurstExpectation,
  logLines: readonly Record<string, unknown>[],
): Promise<readonly string[]> {
  const allNotifications = await countsIn(pod, notifications)
  const found = onlyBurstNotifications
    ? new Map([...allNotifications].filter(([name]) => CAUSED.test(name)))
    : allNotifications
  const posts = [...localPosts, ...burst.posts, ...burst.reshares]
  return [
    ...differences('posts', countOnce(posts), await countsIn(pod, `select guid as name, 1 as count from posts`)),
    ...differences(
      'comments',
      countOnce(burst.comments),
      await countsIn(pod, `select guid as name, 1 as count from comments`),
    ),
    ...differences('likes', countOnce(burst.likes), await countsIn(pod, `select guid as name, 1 as count from likes`)),
    ...differences('counters', countersOf(burst), await countsIn(pod, counters)),
    ...differences('notifications', notificationsOf(burst, localPosts), found),
    ...differences('relays', relaysOf(burst, localPosts), await countsIn(pod, relays)),
    ...differences('participations', participationsOf(burst), await countsIn(pod, participations)),
    ...differences('remaining work', new Map(), await countsIn(pod, remainingWork)),
    ...missingRejections(burst, logLines),
  ]
}

async function countsIn({ db }: Pick<Services, 'db'>, sql: string): Promise<Counts> {
  const { rows } = await db.raw(sql)
  return new Map(rows.map(({ name, count }: { name: string; count: string }) => [name, Number(count)]))
}

/** Notification types caused by a burst. */
const CAUSED = /^(commented_on_post|liked|reshared) /

/** Notifications by type and post, so that merged and missing ones are detected. */
const notifications = `
  select notifications.type || ' ' || posts.guid as name, count(*) as count
  from notifications
  join posts on posts.id = notifications.post_id
  join notification_actors on notification_actors.notification_id = notifications.id
  group by notifications.type, posts.guid`

const counters = `
  select guid || ' ' || kind as name, counter as count
  from posts
  cross join lateral (values
    ('comments', comments_count), ('likes', likes_count), ('reshares', reshares_count)
  ) as counted (kind, counter)
  where counter <> 0`

/** Relays of all stages: outbox rows and outbound messages. Their stage depends on the queues of the workers. */
const relays = `
  select name, count(*) as count
  from (
    select data->>'record' || ' ' || (data->>'guid') as name from outbox where name = 'dispatch'
    union all
    select relay->>'record' || ' ' || (relay->>'guid')
    from outbox cross join jsonb_array_elements(data->'relays') as relay
    where name = 'dispatch-relays'
    union all
    select record || ' ' || guid from outbound_messages
  ) as relayed
  where name ~ '^(comment|like) ' group by 1`

const participations = `
  select guid as name, count(*) as count
  from (
    select jsonb_array_elements_text(data->'postGuids') as guid from outbox where name = 'participate'
    union all
    select about from outbound_messages where record = 'participation'
  ) as participations group by 1`

/** Work that is left. Announcements are ignored, because their number depends on the batches. */
const remainingWork = `
  select 'waiting for ' || waits_for as name, count(*) as count from waiting group by 1
  union all
  select name || ' in the outbox', count(*) from outbox
  where name not in ('dispatch', 'dispatch-relays', 'participate', 'announce') group by 1`

function countOnce(entities: readonly { readonly guid: string }[]): Counts {
  return new Map(entities.map(({ guid }) => [guid, 1]))
}

function countNames(names: readonly string[]): Counts {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

function countersOf({ comments, likes, reshares }: Burst): Counts {
  return countNames([
    ...comments.map(({ parent_guid: guid }) => `${guid} comments`),
    ...likes.map(({ parent_guid: guid }) => `${guid} likes`),
    ...reshares.map(({ root_guid: guid }) => `${guid} reshares`),
  ])
}

/** One notification for each local post and type of event, with all persons who have caused it. */
function notificationsOf({ comments, likes, reshares }: Burst, localPosts: readonly LocalPost[]): Counts {
  const local = new Set(localPosts.map(({ guid }) => guid))
  const caused = [
    ...comments.map(({ parent_guid: guid, author }) => ({ type: 'commented_on_post', guid, author })),
    ...likes.map(({ parent_guid: guid, author }) => ({ type: 'liked', guid, author })),
    ...reshares.map(({ root_guid: guid = '', author }) => ({ type: 'reshared', guid, author })),
  ].filter(({ guid }) => local.has(guid))
  const actors = new Set(caused.map(({ type, guid, author }) => `${type} ${guid} ${author}`))
  return countNames([...actors].map((name) => name.slice(0, name.lastIndexOf(' '))))
}

function relaysOf({ comments, likes }: Burst, localPosts: readonly LocalPost[]): Counts {
  const local = new Set(localPosts.map(({ guid }) => guid))
  return countNames(
    [...comments, ...likes]
      .filter(({ parent_guid: guid }) => local.has(guid))
      .map(({ type, guid }) => `${type} ${guid}`),
  )
}

function participationsOf({ posts, reshares }: Burst): Counts {
  return countNames([...posts, ...reshares].map(({ guid }) => guid))
}

/** Invalid messages are rejected with their reason, once or more: a batch whose worker is killed is processed again. */
function missingRejections({ invalid }: Burst, logLines: readonly Record<string, unknown>[]): readonly string[] {
  const rejections = logLines.filter(({ msg }) => msg === 'inbound message rejected')
  const named = new Set(rejections.map(({ fault, guid }) => `${fault} ${guid}`))
  const counted = countNames(rejections.map(({ fault }) => String(fault)))
  const missing = invalid.filter(({ fault, guid }) => guid !== undefined && !named.has(`${fault} ${guid}`))
  const nameless = countNames(invalid.filter(({ guid }) => guid === undefined).map(({ fault }) => fault))
  return [
    ...missing.map(({ fault, guid }) => `${guid} was not rejected as ${fault}`),
    ...[...nameless]
      .filter(([fault, count]) => (counted.get(fault) ?? 0) < count)
      .map(([fault, count]) => `${count} must be rejected as ${fault}, ${counted.get(fault) ?? 0} were`),
  ]
}

const MAX_LISTED = 10

function differences(subject: string, expected: Counts, found: Counts): readonly string[] {
  const names = new Set([...expected.keys(), ...found.keys()])
  const differing = [...names].filter((name) => expected.get(name) !== found.get(name))
  const listed = differing
    .slice(0, MAX_LISTED)
    .map((name) => `${subject}: ${name} exists ${found.get(name) ?? 0} times, not ${expected.get(name) ?? 0}`)
  return differing.length > MAX_LISTED ? [...listed, `${subject}: and ${differing.length - MAX_LISTED} more`] : listed
}
