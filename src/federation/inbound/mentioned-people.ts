import type { Knex } from 'knex'
import { readMentionedAddresses } from '../../domain/posts/texts.js'
import { type DataOf, discoverMentionedJob } from '../../jobs/definitions.js'
import { enqueueJobsOfKind } from '../../jobs/outbox/enqueue-jobs.js'
import type { JobContext } from '../../jobs/outbox/load-job.js'
import { REFERENCE_LIMITS } from '../../jobs/waiting/limits.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Mention, type TextIds } from '../../persistence/models/mention.js'
import type { Person } from '../../persistence/models/person.js'
import type { Services } from '../../services/services.js'
import { isRemoteAddress } from '../discovery/pod-location.js'
import type { StoredRecord } from './batch.js'
import { receivingRulesOf } from './receiving-rules.js'

/** A stored text with the addresses it mentions. */
interface MentioningText {
  readonly kind: keyof TextIds
  readonly id: number
  readonly addresses: readonly string[]
}

/** Enqueues a lookup of each unknown remote person that the stored texts mention, once for all texts. */
export async function enqueueMentionedLookups(
  services: Services,
  transaction: Knex.Transaction,
  records: readonly StoredRecord[],
): Promise<void> {
  const texts = records.flatMap((record) => remoteMentionsOf(services, record))
  if (texts.length === 0) return
  const unknown = await findUnknownMentions(transaction, texts)
  await enqueueJobsOfKind(services, transaction, discoverMentionedJob, lookupsOf(unknown))
}

/** Adds the mentions of a person who has been discovered after the texts were stored. The person is remote, so nobody is notified. */
export async function attachDiscoveredPerson(
  services: Services,
  work: JobContext,
  person: Pick<Person, 'id'>,
  texts: TextIds,
): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    await work.finish(transaction)
    await Mention.attachPersonLater(transaction, person.id, texts)
  })
}

function remoteMentionsOf(services: Services, { id, message: { entity } }: StoredRecord): readonly MentioningText[] {
  const mentioningText = receivingRulesOf(entity).mentioningText(entity)
  if (mentioningText === undefined) return []
  const { text, kind } = mentioningText
  const addresses = readMentionedAddresses(text).filter((address) => isRemoteAddress(services, address))
  return addresses.length === 0 ? [] : [{ kind, id, addresses }]
}

/** Compares with the stored mentions, not with the people: a person may have become known since the text was stored. */
async function findUnknownMentions(
  transaction: Knex.Transaction,
  texts: readonly MentioningText[],
): Promise<readonly MentioningText[]> {
  const idsOf = (kind: keyof TextIds) => texts.filter((text) => text.kind === kind).map(({ id }) => id)
  const rows = await Mention.findAttached(transaction, { posts: idsOf('posts'), comments: idsOf('comments') })
  const attachedKeys = new Set(rows.map(({ kind, id, address }) => `${kind} ${id} ${address}`))
  return texts.map(({ kind, id, addresses }) => {
    const unknown = addresses.filter((address) => !attachedKeys.has(`${kind} ${id} ${address}`))
    return { kind, id, addresses: unknown.slice(0, REFERENCE_LIMITS.unknownPeopleOfText) }
  })
}

function lookupsOf(texts: readonly MentioningText[]): readonly DataOf<typeof discoverMentionedJob>[] {
  const textsByAddress = new Map<string, Record<keyof TextIds, number[]>>()
  for (const { kind, id, addresses } of texts) {
    for (const address of addresses) {
      const textsOfAddress = textsByAddress.get(address) ?? { posts: [], comments: [] }
      textsOfAddress[kind].push(id)
      textsByAddress.set(address, textsOfAddress)
    }
  }
  return [...textsByAddress].map(([address, arrivedIn]) => ({ address, arrivedIn }))
}
