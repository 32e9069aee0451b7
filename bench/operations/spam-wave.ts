import { pino } from 'pino'
import { readConfig } from '../../src/config/config.js'
import { undoAction } from '../../src/domain/moderation/actions.js'
import { COMMAND_ACTOR } from '../../src/domain/moderation/actor.js'
import { cleanCluster } from '../../src/domain/moderation/clusters/clean-cluster.js'
import { cleaningTaskHandlers } from '../../src/domain/moderation/clusters/cleaning-work.js'
import { listSpamClusters } from '../../src/domain/moderation/clusters/clusters.js'
import { findClusters } from '../../src/domain/moderation/clusters/find-clusters.js'
import { runBackgroundTask } from '../../src/domain/operations/background-tasks.js'
import { type OpenServices, openServices } from '../../src/services/open-services.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import type { BenchOptions, Result } from '../bench.js'
import { environmentOf } from '../inbound/inbound-pod.js'
import { openAvailableStores } from '../machine/bench-stores.js'

const PODS = 40
const PEOPLE = 1_000
const ITEMS = 20_000
const LOCAL_POSTS = 50
const MINUTES = 10

/** Time of search, cleaning and undo for a wave of 20 000 posts and comments with three patterns. */
export async function* benchSpamWave(_options: BenchOptions): AsyncGenerator<Result> {
  const stores = await openAvailableStores()
  const crypto = openCryptoPool()
  const services = await openServices(readConfig(environmentOf(stores)), 'worker', {
    crypto,
    log: pino({ level: 'silent' }),
  })
  try {
    await addPeople(services)
    await findClusters(services) // sets the position from which the next search starts
    const searches: number[] = []
    for (let minute = 0; minute < MINUTES; minute += 1) {
      await addItems(services, minute)
      searches.push(await millisecondsOf(() => findClusters(services)))
    }
    yield result('search of 2 000 new items', Math.max(...searches), true)

    const { items: open } = await listSpamClusters(services, COMMAND_ACTOR, { states: ['open'] }, { limit: 100 })
    const found = open.reduce((sum, { itemCount }) => sum + itemCount, 0)
    const actions: number[] = []
    const cleaning = await millisecondsOf(async () => {
      for (const { id } of open) {
        const parts = { hide: true, remove: false, filter: true, authors: 'none', pods: 'none', except: [] } as const
        const { action } = await cleanCluster(services, COMMAND_ACTOR, { id, ...parts }, { reason: 'Spam wave' })
        await finishBackgroundTasks(services)
        if (action !== undefined) actions.push(action.id)
      }
    })
    yield result(
      `cleaning in ${open.length + 1} requests`,
      cleaning,
      found >= ITEMS && (await countVisibleItems(services)) === 0,
    )

    const undo = await millisecondsOf(async () => {
      for (const id of actions) await undoAction(services, COMMAND_ACTOR, id, { reason: 'Undo' })
      await finishBackgroundTasks(services)
    })
    yield result('undo', undo, (await countVisibleItems(services)) === ITEMS)
  } finally {
    await services.close()
    await crypto.close()
    await stores.close()
  }
}

/** Runs the background tasks that a worker would run. */
async function finishBackgroundTasks(services: OpenServices): Promise<void> {
  const ids: readonly number[] = await services.db('operations').whereIn('state', ['queued', 'running']).pluck('id')
  for (const operationId of ids) {
    const work = { data: { operationId }, finish: async () => {} }
    await runBackgroundTask(services, work, cleaningTaskHandlers, new AbortController().signal)
  }
}

function result(name: string, milliseconds: number, ok: boolean): Result {
  const common = { bench: 'spam-wave', unit: 'ms', rounds: 1, spread: 0, cpu_us: {} }
  return { ...common, case: name, value: Math.round(milliseconds), ok }
}

async function millisecondsOf(run: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await run()
  return performance.now() - began
}

async function addPeople({ db }: OpenServices): Promise<void> {
  await db.raw(`
    insert into pods (host, port) select 'wave' || number || '.example', 443 from generate_series(1, ${PODS}) as number;
    insert into people (guid, address, public_key, pod_id)
    select md5('person' || number), 'spam' || number || '@' || pods.host, 'key', pods.id
    from generate_series(1, ${PEOPLE}) as number
    join (select id, host, row_number() over (order by id) as place from pods) as pods on pods.place = number % ${PODS} + 1;
    insert into people (guid, address, public_key) values (md5('local'), 'local@${'pod.example'}', 'key');
    insert into posts (guid, author_id, type, public, text)
    select md5('local post' || number), people.id, 'StatusMessage', true, 'Good morning ' || md5(cast(number as text))
    from generate_series(1, ${LOCAL_POSTS}) as number, people where people.pod_id is null and people.address like 'local@%';
  `)
}

/** Adds posts with a common text, comments with a link and comments with three mentions, a third each. */
async function addItems({ db }: OpenServices, minute: number): Promise<void> {
  const first = (minute * ITEMS) / MINUTES
  const last = ((minute + 1) * ITEMS) / MINUTES - 1
  const authors = `join (select id, row_number() over (order by id) as place from people where pod_id is not null) as authors
    on authors.place = number % ${PEOPLE} + 1`
  const roots = `join (
      select posts.id, row_number() over (order by posts.id) as place from posts join people on people.id = posts.author_id
      where people.address like 'local@%'
    ) as roots on roots.place = number % ${LOCAL_POSTS} + 1`
  await db.raw(`
    insert into posts (guid, author_id, type, public, text)
    select md5('post' || number), authors.id, 'StatusMessage', true, 'The cheapest watches of the whole world, ' || number || ' left'
    from generate_series(${first}, ${last}) as number ${authors} where number % 3 = 0;
    insert into comments (guid, post_id, author_id, text)
    select md5('comment' || number), roots.id, authors.id, case number % 3
      when 1 then 'Win ' || number || ' Euro: https://win.example/now?id=' || number
      else number || ' @{a@a.example} @{b@b.example} @{c@c.example}' end
    from generate_series(${first}, ${last}) as number ${authors} ${roots} where number % 3 <> 0;
    update posts set comments_count = (select count(*) from comments where comments.post_id = posts.id)
    where id in (select post_id from comments);
  `)
}

async function countVisibleItems({ db }: OpenServices): Promise<number> {
  const { rows } = await db.raw(`
    select
      (select count(*) from posts join people on people.id = posts.author_id where people.pod_id is not null and posts.public)
      + (select count(*) from comments where not hidden) as count`)
  return Number(rows[0].count)
}
