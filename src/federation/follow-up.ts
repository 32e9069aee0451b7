import type { Knex } from 'knex'
import { notifyAbout } from '../domain/notifications.js'
import { mentionedIn } from '../domain/posts.js'
import { discoverMentionedJob, fetchLinkedJob, participateJob, type WantedEntity } from '../jobs/definitions.js'
import { enqueueAllWith, enqueueWith } from '../jobs/outbox.js'
import { LOOKUP_LIMITS } from '../limits.js'
import { Person } from '../persistence/models/person.js'
import { findSurroundings } from '../persistence/post-surroundings.js'
import type { Pod } from '../pod.js'
import { readLinks } from '../protocol/mentions.js'
import type { StoredRecord, Wrong } from './batch.js'
import { isElsewhere } from './pod-place.js'
import { fetchableKind } from './serve-entity.js'
import { hasSpeaker } from './speaker.js'
import { turnAway } from './turn-away.js'

type Sent = StoredRecord['arrival']

/**
 * What stored records cause, written with them: who lives here is notified, who is mentioned and what is linked to is looked
 * for, and their authors are asked for what will be said under their posts. Some of what was refused has an answer.
 */
export async function followUp(
  pod: Pod,
  transaction: Knex.Transaction,
  records: readonly StoredRecord[],
  wrong: readonly Wrong[],
): Promise<void> {
  await notify(pod, transaction, records)
  await lookForMentioned(pod, transaction, records)
  await lookForLinked(pod, transaction, records)
  await subscribe(pod, transaction, records)
  await turnAway(pod, transaction, wrong)
}

async function notify(pod: Pod, transaction: Knex.Transaction, records: readonly StoredRecord[]): Promise<void> {
  const idsOf = (isCause: (arrival: Sent) => boolean) =>
    records.filter(({ arrival }) => isCause(arrival)).map(({ id }) => id)
  const causes = {
    // Of a post, only those who are named in it are told.
    posts: idsOf(({ entity }) => entity.type === 'status_message' && mentionedIn(entity.text).length > 0),
    comments: idsOf(({ entity }) => entity.type === 'comment'),
    likes: idsOf(({ entity }) => entity.type === 'like' && entity.positive),
    reshares: idsOf(({ entity }) => entity.type === 'reshare' && isOfOurs(pod, entity.root_author)),
  }
  if (Object.values(causes).some((ids) => ids.length > 0)) await notifyAbout(transaction, causes, pod.now())
}

function isOfOurs(pod: Pod, address: string | undefined): boolean {
  return address !== undefined && !isElsewhere(pod, address)
}

async function lookForMentioned(
  pod: Pod,
  transaction: Knex.Transaction,
  records: readonly StoredRecord[],
): Promise<void> {
  const mentioned = records.map(({ arrival }) => mentionedBy(arrival).filter((address) => isElsewhere(pod, address)))
  if (mentioned.every((addresses) => addresses.length === 0)) return
  const people = await Person.byAddresses(transaction, mentioned.flat()).select('address')
  const known = new Set(people.map(({ address }) => address))
  const strangers = mentioned.flatMap((addresses) =>
    addresses.filter((address) => !known.has(address)).slice(0, LOOKUP_LIMITS.strangersOfText),
  )
  const all = [...new Set(strangers)].map((address) => ({ address }))
  await enqueueAllWith(pod, transaction, discoverMentionedJob, all)
}

function mentionedBy({ entity }: Sent): readonly string[] {
  return entity.type === 'status_message' || entity.type === 'comment' ? mentionedIn(entity.text) : []
}

async function lookForLinked(pod: Pod, transaction: Knex.Transaction, records: readonly StoredRecord[]): Promise<void> {
  const linked = records.flatMap(({ arrival }) => linkedFrom(pod, textOf(arrival), arrival.message.wanted?.depth ?? 0))
  const guidsOf = (kind: WantedEntity['type']) => linked.filter(({ type }) => type === kind).map(({ guid }) => guid)
  const { roots } = await findSurroundings(transaction, {
    posts: guidsOf('post'),
    comments: guidsOf('comment'),
    polls: guidsOf('poll'),
  })
  const known = new Set(roots.map(({ kind, guid }) => `${kind} ${guid}`))
  const unknown = linked.filter(({ type, guid }) => !known.has(`${type} ${guid}`))
  const once = new Map(unknown.map((link) => [`${link.type} ${link.guid}`, link]))
  await enqueueAllWith(pod, transaction, fetchLinkedJob, [...once.values()])
}

/** Links lead on to links, from one pod of a stranger to the next: so far, and so many of them. */
function linkedFrom(pod: Pod, text: string, depth: number): readonly WantedEntity[] {
  if (depth >= LOOKUP_LIMITS.chainDepth) return []
  const links = new Map(readLinks(text).map((link) => [link.guid, link]))
  return [...links.values()].slice(0, LOOKUP_LIMITS.linksOfText).flatMap(({ author, type, guid }): WantedEntity[] => {
    const kind = fetchableKind(type)
    if (kind === undefined || !isElsewhere(pod, author)) return []
    // Others sign a comment for the author of its post, whoever wrote it.
    return [{ type: kind, guid, from: author, ...(kind !== 'comment' && { author }), depth: depth + 1 }]
  })
}

function textOf({ entity }: Sent): string {
  switch (entity.type) {
    case 'status_message':
    case 'comment':
    case 'message':
      return entity.text
    case 'conversation':
      return entity.messages.map(({ text }) => text).join('\n')
    default:
      return ''
  }
}

/** Only who takes part hears of comments and likes under a post of somebody who has no contact here. */
async function subscribe(pod: Pod, transaction: Knex.Transaction, records: readonly StoredRecord[]): Promise<void> {
  const postGuids = records.flatMap(({ arrival: { entity } }) =>
    entity.type === 'reshare' || (entity.type === 'status_message' && entity.public) ? [entity.guid] : [],
  )
  if (postGuids.length === 0 || !(await hasSpeaker(pod, transaction))) return
  await enqueueWith(pod, transaction, participateJob, { postGuids })
}
