import { tellOfTodaysBirthdays } from '../src/domain/birthdays.js'
import { checkPods } from '../src/federation/check-pods.js'
import { birthdaysJob, checkPodsJob, type Handlers, pruneJob, sweepJob } from '../src/jobs/definitions.js'
import { knock } from '../src/jobs/knock.js'
import { failUnknownQueues, leftBehind, sweepAllNow, sweptAgain, type Work } from '../src/jobs/outbox.js'
import { QUEUES, type QueueName } from '../src/jobs/queue-names.js'
import type { Schedule } from '../src/jobs/queues.js'
import { wakeOverdue } from '../src/jobs/waiting.js'
import { forgottenPods, giveUpDeliveries } from '../src/persistence/due-deliveries.js'
import type { Pod } from '../src/pod.js'

const ROWS_A_TURN = 1_000
/** A queue that is this long has enough to do. */
const CEILING = 5_000
const HAND_OVER_WITHIN = 10_000
const LOOK_AFTER_EVERY = 10_000

const schedules: readonly Schedule[] = [
  { job: sweepJob, every: 2_000 },
  { job: pruneJob, every: 600_000 },
  { job: checkPodsJob, every: 60_000 },
  { job: birthdaysJob, every: 60_000 },
]

type MaintenanceJob = typeof sweepJob | typeof pruneJob | typeof checkPodsJob | typeof birthdaysJob

export const maintenanceHandlers: Handlers<MaintenanceJob, Pod, Work> = {
  sweep: (pod) => sweep(pod),
  prune: (pod) => prune(pod),
  'check-pods': (pod) => checkPods(pod),
  birthdays: (pod) => tellOfBirthdays(pod),
}

/**
 * Adds again what no job has picked up: the hand-over was lost, or the queue was emptied. One run at a time in all processes;
 * what it adds twice is the same job.
 */
export async function sweep(pod: Pod): Promise<void> {
  await pod.db.transaction(async (transaction) => {
    if (!(await isMyTurn(transaction, 'sweep'))) return
    await failUnknownQueues(transaction)
    await wakeOverdue(pod, transaction, ROWS_A_TURN)

    // Mostly there is nothing, and then the queues need not be asked.
    const isAnythingLeft = (await leftBehind(transaction, QUEUES, 1)).length > 0
    const rows = isAnythingLeft ? await leftBehind(transaction, await queuesWithRoom(pod), ROWS_A_TURN) : []
    if (rows.length > 0) {
      await pod.jobs.handOver(rows, HAND_OVER_WITHIN)
      await sweptAgain(transaction, rows)
      pod.log.info({ rows: rows.length }, 'swept')
    }
    await knockAgain(pod, transaction)
    await noteRun(transaction, 'sweep')
  })
}

/** At pods whose time has come, and at those whose knock was lost. */
async function knockAgain(pod: Pod, transaction: Pod['db']): Promise<void> {
  const pods = await forgottenPods(transaction, ROWS_A_TURN)
  if (pods.length === 0) return
  const open = await queuesWithRoom(pod)
  const knocks = pods.filter(({ proven }) => open.includes(proven ? 'outbound' : 'outbound-slow'))
  await knock(pod, knocks, HAND_OVER_WITHIN)
}

async function queuesWithRoom({ jobs }: Pod): Promise<readonly QueueName[]> {
  const waiting = await Promise.all(QUEUES.map(async (queue) => (await jobs.counts(queue)).waiting))
  return QUEUES.filter((_, index) => (waiting[index] ?? 0) < CEILING)
}

/** What is kept too long, table by table. A dead letter is kept for 30 days, a tombstone for 400. */
const leftovers = {
  access_tokens: `expires_at < now() - interval '1 day'`,
  refresh_tokens: `expires_at < now() - interval '1 day'`,
  authorization_codes: `expires_at < now() - interval '1 day'`,
  oidc_records: `expires_at < now() - interval '1 day'`,
  // Anybody may register a client; nobody has ever let these in.
  clients: `created_at < now() - interval '30 days'
    and not exists (select from authorizations where authorizations.client_id = clients.id)`,
  invitations: `used_at is null and expires_at < now() - interval '30 days'`,
  outbox: `failed_at < now() - interval '30 days'`,
  deliveries: `state = 'dead' and died_at < now() - interval '30 days'`,
  outbound_messages: `created_at < now() - interval '1 day'
    and not exists (select from deliveries where deliveries.message_id = outbound_messages.id)`,
  tombstones: `created_at < now() - interval '400 days'`,
  // Their files go with them.
  photos: `pending and created_at < now() - interval '1 day'`,
  refused_uploads: `created_at < now() - interval '1 hour'`,
  figures: `minute < now() - interval '2 days'`,
  // None that is later than one which stays; the latest stays, to count from.
  announcements: `id < coalesce(
    (select min(id) from announcements where created_at >= now() - interval '2 days'),
    (select max(id) from announcements)
  )`,
  idempotency_keys: `created_at < now() - interval '1 day'`,
} as const

/** Deletes in small bites: nobody waits long for a lock of ours. */
export async function prune(pod: Pod): Promise<void> {
  for (let given = ROWS_A_TURN; given === ROWS_A_TURN; ) given = await giveUpDeliveries(pod.db, ROWS_A_TURN)
  for (const [table, isLeftover] of Object.entries(leftovers)) {
    let deleted = ROWS_A_TURN
    while (deleted === ROWS_A_TURN) {
      const bite = `delete from ${table} where ctid = any(array(select ctid from ${table} where ${isLeftover} limit ${ROWS_A_TURN}))`
      deleted = (await pod.db.raw(bite)).rowCount
      if (deleted > 0) pod.log.info({ table, rows: deleted }, 'pruned')
    }
  }
  await noteRun(pod.db, 'prune')
}

/** A day begins once, whichever process notices it first. */
async function tellOfBirthdays(pod: Pod): Promise<void> {
  const notifications = await tellOfTodaysBirthdays(pod)
  if (notifications > 0) pod.log.info({ notifications }, 'told of birthdays')
}

/**
 * Keeps the schedules alive: an emptied Redis has forgotten them. It has forgotten the jobs as well then, so every outbox row
 * is due.
 */
export function lookAfterSchedules(pod: Pod): { stop(): void } {
  async function look(): Promise<void> {
    try {
      const made = await Promise.all(schedules.map((schedule) => pod.jobs.keepScheduled(schedule)))
      if (made.includes(true)) await sweepAllNow(pod.db)
    } catch (err) {
      pod.log.debug({ err }, 'could not look after the schedules')
    }
  }
  void look()
  const timer = setInterval(look, LOOK_AFTER_EVERY)
  return { stop: () => clearInterval(timer) }
}

async function isMyTurn(transaction: Pod['db'], name: string): Promise<boolean> {
  const { rows } = await transaction.raw(`select pg_try_advisory_xact_lock(hashtextextended(?, 0)) as mine`, [name])
  return rows[0].mine
}

async function noteRun(db: Pod['db'], name: string): Promise<void> {
  await db.raw(
    `insert into periodic (name, last_run_at) values (?, date_trunc('milliseconds', now()))
     on conflict (name) do update set last_run_at = excluded.last_run_at`,
    [name],
  )
}
