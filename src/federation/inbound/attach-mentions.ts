import type { Knex } from 'knex'
import { readMentionedAddresses } from '../../domain/posts/texts.js'
import { type DataOf, discoverMentionedJob } from '../../jobs/definitions.js'
import { enqueueJobsOfKind, type Work } from '../../jobs/outbox/outbox.js'
import { LOOKUP_LIMITS } from '../../limits.js'
import { inTransaction } from '../../persistence/database/errors.js'
import { Mention, type TextIds } from '../../persistence/models/mention.js'
import type { Person } from '../../persistence/models/person.js'
import type { Pod } from '../../pod/pod.js'
import { isElsewhere } from '../discovery/pod-location.js'
import type { StoredRecord } from './batch.js'

/** A text that has been stored with the mentions of those who were known. */
interface Naming {
  readonly kind: keyof TextIds
  readonly id: number
  readonly addresses: readonly string[]
}

/** People elsewhere whom texts name and nobody here knew when they were stored are looked for, each once for all the texts. */
export async function lookForMentioned(
  pod: Pod,
  transaction: Knex.Transaction,
  records: readonly StoredRecord[],
): Promise<void> {
  const texts = records.flatMap((record) => namingElsewhere(pod, record))
  if (texts.length === 0) return
  const searches = searchesFor(await strangersIn(transaction, texts))
  await enqueueJobsOfKind(pod, transaction, discoverMentionedJob, searches)
}

/** Somebody whom texts of other pods name has been found. They live elsewhere, so there is nobody to notify. */
export async function attachFound(pod: Pod, work: Work, person: Pick<Person, 'id'>, texts: TextIds): Promise<void> {
  await inTransaction(pod.db, async (transaction) => {
    await work.finish(transaction)
    await Mention.attachPersonLater(transaction, person.id, texts)
  })
}

function namingElsewhere(pod: Pod, { id, arrival: { entity } }: StoredRecord): readonly Naming[] {
  if (entity.type !== 'status_message' && entity.type !== 'comment') return []
  const addresses = readMentionedAddresses(entity.text).filter((address) => isElsewhere(pod, address))
  return addresses.length === 0 ? [] : [{ kind: entity.type === 'comment' ? 'comments' : 'posts', id, addresses }]
}

/** Asked of the mentions, and not of the people: somebody may have become known since the text was stored. */
async function strangersIn(transaction: Knex.Transaction, texts: readonly Naming[]): Promise<readonly Naming[]> {
  const idsOf = (kind: keyof TextIds) => texts.filter((text) => text.kind === kind).map(({ id }) => id)
  const rows = await Mention.findAttached(transaction, { posts: idsOf('posts'), comments: idsOf('comments') })
  const attached = new Set(rows.map(({ kind, id, address }) => `${kind} ${id} ${address}`))
  return texts.map(({ kind, id, addresses }) => {
    const strangers = addresses.filter((address) => !attached.has(`${kind} ${id} ${address}`))
    return { kind, id, addresses: strangers.slice(0, LOOKUP_LIMITS.strangersOfText) }
  })
}

function searchesFor(texts: readonly Naming[]): readonly DataOf<typeof discoverMentionedJob>[] {
  const namedIn = new Map<string, Record<keyof TextIds, number[]>>()
  for (const { kind, id, addresses } of texts) {
    for (const address of addresses) {
      const all = namedIn.get(address) ?? { posts: [], comments: [] }
      all[kind].push(id)
      namedIn.set(address, all)
    }
  }
  return [...namedIn].map(([address, arrivedIn]) => ({ address, arrivedIn }))
}
