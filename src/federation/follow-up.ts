import type { Knex } from 'knex'
import { mentionedIn } from '../domain/posts.js'
import { discoverMentionedJob, fetchLinkedJob, type WantedEntity } from '../jobs/definitions.js'
import { enqueueAllWith } from '../jobs/outbox.js'
import { LOOKUP_LIMITS } from '../limits.js'
import { Person } from '../persistence/models/person.js'
import { findKnownParts, findKnownPosts } from '../persistence/post-surroundings.js'
import type { Pod } from '../pod.js'
import { readLinks } from '../protocol/mentions.js'
import type { StoredRecord } from './batch.js'
import { homeOf, isThisPod, placeOf } from './pod-place.js'
import { fetchableKind } from './serve-entity.js'

/** What stored records cause elsewhere, written with them: whom they mention is looked for, and what they link to. */
export async function followUp(
  pod: Pod,
  transaction: Knex.Transaction,
  records: readonly StoredRecord[],
): Promise<void> {
  await lookForMentioned(pod, transaction, records)
  await lookForLinked(pod, transaction, records)
}

async function lookForMentioned(
  pod: Pod,
  transaction: Knex.Transaction,
  records: readonly StoredRecord[],
): Promise<void> {
  const mentioned = records.map(({ arrival }) =>
    mentionedIn(textOf(arrival)).filter((address) => isElsewhere(pod, address)),
  )
  if (mentioned.every((addresses) => addresses.length === 0)) return
  const people = await Person.byAddresses(transaction, mentioned.flat()).select('address')
  const known = new Set(people.map(({ address }) => address))
  const strangers = mentioned.flatMap((addresses) =>
    addresses.filter((address) => !known.has(address)).slice(0, LOOKUP_LIMITS.strangersOfText),
  )
  const all = [...new Set(strangers)].map((address) => ({ address }))
  await enqueueAllWith(pod, transaction, discoverMentionedJob, all)
}

async function lookForLinked(pod: Pod, transaction: Knex.Transaction, records: readonly StoredRecord[]): Promise<void> {
  const linked = records.flatMap(({ arrival }) => linkedFrom(pod, textOf(arrival), arrival.message.wanted?.depth ?? 0))
  const guids = linked.map(({ guid }) => guid)
  const posts = await findKnownPosts(transaction, guids)
  const parts = await findKnownParts(transaction, guids)
  const known = new Set([...posts, ...parts].map(({ guid }) => guid))
  const unknown = new Map(linked.filter(({ guid }) => !known.has(guid)).map((link) => [link.guid, link]))
  await enqueueAllWith(pod, transaction, fetchLinkedJob, [...unknown.values()])
}

/** Links lead on to links, from one pod of a stranger to the next: so far, and so many of them. */
function linkedFrom(pod: Pod, text: string, depth: number): readonly WantedEntity[] {
  if (depth >= LOOKUP_LIMITS.chainDepth) return []
  const links = new Map(readLinks(text).map((link) => [link.guid, link]))
  return [...links.values()].slice(0, LOOKUP_LIMITS.linksOfText).flatMap(({ author, type, guid }): WantedEntity[] => {
    const kind = fetchableKind(type)
    if (kind === undefined || kind === 'comment' || !isElsewhere(pod, author)) return []
    return [{ type: kind, guid, from: author, author, depth: depth + 1 }]
  })
}

function isElsewhere(pod: Pod, address: string): boolean {
  const home = homeOf(address)
  return home !== undefined && !isThisPod(pod.config, placeOf(home))
}

function textOf({ entity }: StoredRecord['arrival']): string {
  return entity.type === 'status_message' ? entity.text : ''
}
