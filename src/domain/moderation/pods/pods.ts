import type { Knex } from 'knex'
import { raw } from 'objection'
import { startDeliveries } from '../../../jobs/outbox/start-deliveries.js'
import { queryRows } from '../../../persistence/database/database.js'
import { RemotePod } from '../../../persistence/models/remote-pod.js'
import { giveUpDeliveries, reviveDeliveriesOfPods } from '../../../persistence/outbound/dead-deliveries.js'
import { deletePerson } from '../../../persistence/people/delete-person.js'
import type { Services } from '../../../services/services.js'

const ROW_BATCH_SIZE = 1_000

const PERSON_BATCH_SIZE = 100

/** People of the pod, and people with an address at its host. A block applies to both. */
const PEOPLE_OF_POD_SQL = `
  select people.id from people
  join pods on pods.id = ?
  where people.pod_id is not null and (
    people.pod_id = pods.id
    or split_part(people.address, '@', 2) = pods.host || case when pods.port = 443 then '' else ':' || pods.port end
  )
  order by people.id limit ?`

/** Deletes the people of a blocked pod with all that came from them, person by person; returns how many. */
export async function purgePod({ db, now }: Pick<Services, 'db' | 'now'>, podId: number): Promise<number> {
  for (let purged = 0; ; ) {
    const rows = await queryRows<{ readonly id: number }>(db, PEOPLE_OF_POD_SQL, [podId, PERSON_BATCH_SIZE])
    const ids = rows.map(({ id }) => id)
    if (ids.length === 0) return purged
    for (const id of ids) await deletePerson(db, id, now())
    purged += ids.length
  }
}

/**
 * Treats a pod as if it had been offline for two weeks: no deliveries are stored until a check of the pod succeeds. A message from it
 * requests a check.
 */
export async function putPodToSleep({ db }: Pick<Services, 'db'>, podId: number): Promise<void> {
  const offlineSince = raw('coalesce(offline_since, now())')
  await RemotePod.query(db)
    .findById(podId)
    .patch({ offlineSince, asleepAt: raw('now()'), checkWanted: false })
  await giveUpAllDeliveries(db)
}

/** Clears the failures of a pod, revives deliveries that it lost while asleep, and enqueues due deliveries. */
export async function wakePod(services: Pick<Services, 'db' | 'jobs'>, podId: number): Promise<void> {
  await RemotePod.query(services.db).findById(podId).patch({ offlineSince: null, failures: 0, nextTryAt: null })
  await reviveDeliveriesOfPods(services.db, [podId], 'pod_asleep')
  await startDeliveries(services, [{ podId, isProven: false }])
}

async function giveUpAllDeliveries(db: Knex): Promise<void> {
  for (let given = ROW_BATCH_SIZE; given === ROW_BATCH_SIZE; ) given = await giveUpDeliveries(db, ROW_BATCH_SIZE)
}
