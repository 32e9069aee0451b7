import type { Knex } from 'knex'
import { enqueueMessage } from '../../domain/outbound/outgoing-messages.js'
import { readMentionedAddresses } from '../../domain/posts/texts.js'
import { discoverMentionedJob, type NamingText } from '../../jobs/definitions.js'
import { enqueueJobsOfKind, type Work } from '../../jobs/outbox/outbox.js'
import { LOOKUP_LIMITS } from '../../limits.js'
import { inTransaction } from '../../persistence/database/errors.js'
import { Mention } from '../../persistence/models/mention.js'
import { Person } from '../../persistence/models/person.js'
import type { Pod } from '../../pod/pod.js'
import { homeOf, isThisPod, placeOf } from '../discovery/pod-location.js'
import { type Outgoing, outgoingOf } from './find-outgoing.js'

/**
 * People whom a text names and nobody here knew when it was written: those who are known by now join its readers, the others
 * are looked for, and get it once they are found.
 */
export async function lookForNamed(
  pod: Pod,
  transaction: Knex.Transaction,
  { message, names }: Outgoing,
): Promise<void> {
  const addresses = names === undefined ? [] : elsewhere(pod, names.text)
  if (names === undefined || addresses.length === 0) return
  await Mention.attach(transaction, names.in, addresses)
  const known = new Set((await Person.byAddresses(transaction, addresses).select('address')).map((row) => row.address))
  const strangers = addresses.filter((address) => !known.has(address)).slice(0, LOOKUP_LIMITS.strangersOfText)
  const text = { record: message.record === 'post' ? 'post' : 'comment', guid: message.guid } as const
  await enqueueJobsOfKind(
    pod,
    transaction,
    discoverMentionedJob,
    strangers.map((address) => ({ address, namedIn: text })),
  )
}

/** Somebody whom a text of ours names has been found: now they get it too, unless it is gone by now. */
export async function tellNamed(
  pod: Pod,
  work: Work,
  person: Pick<Person, 'id' | 'address'>,
  text: NamingText,
): Promise<void> {
  await inTransaction(pod.db, async (transaction) => {
    await work.finish(transaction)
    const outgoing = await outgoingOf(pod, transaction, text)
    if (outgoing?.names === undefined || !readMentionedAddresses(outgoing.names.text).includes(person.address)) return
    await Mention.attach(transaction, outgoing.names.in, [person.address])
    if (!outgoing.names.notify) return
    await enqueueMessage(pod, transaction, outgoing.message, { of: 'people', personIds: [person.id] })
  })
}

function elsewhere(pod: Pod, text: string): string[] {
  const addresses = readMentionedAddresses(text)
  return addresses.filter((address) => {
    const home = homeOf(address)
    return home !== undefined && !isThisPod(pod.config, placeOf(home))
  })
}
