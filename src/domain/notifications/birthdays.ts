import type { Knex } from 'knex'
import { claimRunOfDay } from '../../persistence/database/periodic-runs.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { insertBirthdayNotifications } from '../../persistence/notifications/insert-notifications.js'
import type { Services } from '../../services/services.js'
import { enqueueLiveEventsAndMails } from './enqueue-live-events.js'

type BirthdayDependencies = Pick<Services, 'config' | 'db' | 'requestContext' | 'jobs' | 'now'>

/** Notifies users of the birthdays of mutual contacts, each once; returns the number of new notifications. */
export async function notifyOfBirthdays(services: BirthdayDependencies, day = currentDay(services)): Promise<number> {
  return inRequestTransaction(services, (transaction) => insertWithLiveEvents(services, transaction, day))
}

/** Notifies of today's birthdays unless this has run since midnight. Contacts added later on the day are not considered. */
export async function notifyOfTodaysBirthdays(services: BirthdayDependencies): Promise<number> {
  const day = currentDay(services)
  return inRequestTransaction(services, async (transaction) => {
    const isFirstRun = await claimRunOfDay(transaction, 'birthdays', services.now(), day)
    return isFirstRun ? insertWithLiveEvents(services, transaction, day) : 0
  })
}

async function insertWithLiveEvents(
  services: BirthdayDependencies,
  transaction: Knex.Transaction,
  day: string,
): Promise<number> {
  const notifications = await insertBirthdayNotifications(transaction, day, services.now())
  await enqueueLiveEventsAndMails(services, transaction, { notifications })
  return notifications.length
}

/** The current day in UTC, as YYYY-MM-DD. */
function currentDay(services: Pick<Services, 'now'>): string {
  return services.now().toISOString().slice(0, 10)
}
