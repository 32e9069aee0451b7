import type { Knex } from 'knex'
import { fetchLinkedJob, type WantedEntity } from '../jobs/definitions.js'
import { enqueueAllWith } from '../jobs/outbox.js'
import { LOOKUP_LIMITS } from '../limits.js'
import { findSurroundings } from '../persistence/post-surroundings.js'
import type { Pod } from '../pod.js'
import type { Entity } from '../protocol/entities/registry.js'
import { readLinks } from '../protocol/mentions.js'
import { isElsewhere } from './pod-place.js'
import { fetchableKind } from './serve-entity.js'

interface Linking {
  readonly text: string
  /** How many links have led to it. */
  readonly depth: number
}

/** What texts link to and nobody here knows is fetched from the pods of its authors, so that whoever follows a link finds it. */
export async function lookForLinked(pod: Pod, transaction: Knex.Transaction, texts: readonly Linking[]): Promise<void> {
  const linked = texts.flatMap((text) => linkedFrom(pod, text))
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
function linkedFrom(pod: Pod, { text, depth }: Linking): readonly WantedEntity[] {
  if (depth >= LOOKUP_LIMITS.chainDepth) return []
  const links = new Map(readLinks(text).map((link) => [link.guid, link]))
  return [...links.values()].slice(0, LOOKUP_LIMITS.linksOfText).flatMap(({ author, type, guid }): WantedEntity[] => {
    const kind = fetchableKind(type)
    if (kind === undefined || !isElsewhere(pod, author)) return []
    // Others sign a comment for the author of its post, whoever wrote it.
    return [{ type: kind, guid, from: author, ...(kind !== 'comment' && { author }), depth: depth + 1 }]
  })
}

/** What there is to read in an entity; empty where that is nothing. */
export function textOf(entity: Entity): string {
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
