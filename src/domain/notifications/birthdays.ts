import type { Knex } from 'knex'
import { inTransaction } from '../../persistence/database/transactions.js'
import { insertBirthdayNotifications } from '../../persistence/notifications/insert-notifications.js'
import type { Pod } from '../../pod/pod.js'
import { enqueueAnnouncement } from './announcements.js'

type BirthdayPod = Pick<Pod, 'config' | 'db' | 'jobs' | 'now'>

/** Notifies users of the birthdays of mutual contacts, each once; returns the number of new notifications. */
export async function notifyOfBirthdays(pod: BirthdayPod, day = currentDay(pod)): Promise<number> {
  return inTransaction(pod, (transaction) => insertAndAnnounce(pod, transaction, day))
}

/** Notifies of today's birthdays unless this has run since midnight. Contacts added later on the day are not considered. */
export async function notifyOfTodaysBirthdays(pod: BirthdayPod): Promise<number> {
  const day = currentDay(pod)
  return inTransaction(pod, async (transaction) => {
    const { rows } = await transaction.raw(claimRunOfDay, { now: pod.now(), midnight: `${day}T00:00:00Z` })
    return rows.length === 0 ? 0 : insertAndAnnounce(pod, transaction, day)
  })
}

async function insertAndAnnounce(pod: BirthdayPod, transaction: Knex.Transaction, day: string): Promise<number> {
  const notifications = await insertBirthdayNotifications(transaction, day, pod.now())
  await enqueueAnnouncement(pod, transaction, { notifications })
  return notifications.length
}

/** In UTC, as YYYY-MM-DD. */
function currentDay(pod: Pick<Pod, 'now'>): string {
  return pod.now().toISOString().slice(0, 10)
}

const claimRunOfDay = `
  insert into periodic (name, last_run_at) values ('birthdays', :now)
  on conflict (name) do update set last_run_at = excluded.last_run_at where periodic.last_run_at < :midnight
  returning name`
