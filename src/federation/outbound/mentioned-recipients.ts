import type { Knex } from 'knex'
import { storeMessage } from '../../domain/outbound/outgoing-messages.js'
import { readMentionedAddresses } from '../../domain/posts/texts.js'
import { discoverMentionedJob, type LocalText } from '../../jobs/definitions.js'
import { enqueueJobsOfKind } from '../../jobs/outbox/enqueue-jobs.js'
import type { JobContext } from '../../jobs/outbox/load-job.js'
import { REFERENCE_LIMITS } from '../../jobs/waiting/limits.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Mention } from '../../persistence/models/mention.js'
import { Person } from '../../persistence/models/person.js'
import type { Services } from '../../services/services.js'
import { isRemoteAddress } from '../discovery/pod-location.js'
import { type DispatchPlan, planDispatch } from './dispatch-plan.js'

/**
 * Attaches the known remote people that a text mentions, and enqueues lookups of the unknown ones. They get the text after their
 * discovery.
 */
export async function attachMentionedPeople(
  services: Services,
  transaction: Knex.Transaction,
  { message, mentions }: DispatchPlan,
): Promise<void> {
  const addresses = mentions === undefined ? [] : mentionedRemotely(services, mentions.text)
  if (mentions === undefined || addresses.length === 0) return
  await Mention.attach(transaction, mentions.textId, addresses)
  const knownAddresses = new Set(
    (await Person.byAddresses(transaction, addresses).select('address')).map((row) => row.address),
  )
  const unknown = addresses
    .filter((address) => !knownAddresses.has(address))
    .slice(0, REFERENCE_LIMITS.unknownPeopleOfText)
  const text = { record: message.record === 'post' ? 'post' : 'comment', guid: message.guid } as const
  await enqueueJobsOfKind(
    services,
    transaction,
    discoverMentionedJob,
    unknown.map((address) => ({ address, namedIn: text })),
  )
}

/** Delivers a text of a local person to a mentioned person who has been discovered after the dispatch. A deleted text is skipped. */
export async function deliverToMentioned(
  services: Services,
  work: JobContext,
  person: Pick<Person, 'id' | 'address'>,
  text: LocalText,
): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    await work.finish(transaction)
    const plan = await planDispatch(services, transaction, text)
    if (plan?.mentions === undefined || !readMentionedAddresses(plan.mentions.text).includes(person.address)) return
    await Mention.attach(transaction, plan.mentions.textId, [person.address])
    if (!plan.mentions.shouldDeliverToMentioned) return
    await storeMessage(services, transaction, plan.message, { kind: 'people', personIds: [person.id] })
  })
}

function mentionedRemotely(services: Services, text: string): string[] {
  return readMentionedAddresses(text).filter((address) => isRemoteAddress(services, address))
}
