import type { Thing } from '../../jobs/waiting/waiting-messages.js'
import { findConversations } from '../../persistence/conversations/find-conversations.js'
import {
  findPostReferences,
  type ReferencedPart,
  type ReferencedPost,
} from '../../persistence/inbound/post-references.js'
import { findRetractionTargets } from '../../persistence/inbound/retraction-targets.js'
import type { Destructible } from '../../persistence/posts/destroy-entities.js'
import type { Pod } from '../../pod/pod.js'
import type { PhotoEntity } from '../../protocol/entities/posts.js'
import type { RetractionEntity, TargetType } from '../../protocol/entities/retraction.js'
import type { References } from '../../protocol/envelopes/sender-rules.js'
import type { Arrival } from './batch.js'
import type { StorableEntity } from './store/storable-entity.js'

type KnownThing = NonNullable<References['root']> & Partial<Pick<ReferencedPost, 'readers'>>
type Target = NonNullable<References['target']>
type Conversation = NonNullable<References['conversation']>
type Parent = Pick<ReferencedPost, 'kind' | 'guid'>
type Sent = Pick<Arrival<StorableEntity>, 'entity' | 'sender'>

/** What a batch refers to, as far as it is known; by kind or type and guid where it says so. */
export interface Found {
  readonly roots: Map<string, KnownThing>
  readonly targets: Map<string, Target>
  readonly conversations: Map<string, Conversation>
  /** Guids of reshares that come with the batch: they are all inserted by one statement, so none of them can show another. */
  readonly reshares: Set<string>
  /** What was deleted, with the name of its type and of who did it. */
  readonly deleted: ReadonlySet<string>
  /** The same without a name: what people of this pod have deleted. */
  readonly deletedHere: ReadonlySet<string>
  /** Whose the parts are that are known here or come with the batch. */
  readonly owners: Map<string, string>
  /** Whether anything is taken back in the batch; else nobody asks what of it could be. */
  readonly retracted: boolean
}

/** At most one statement for everything about posts, one for targets of retractions and one for conversations. */
export async function findAround({ db }: Pick<Pod, 'db'>, entities: readonly StorableEntity[]): Promise<Found> {
  const parts = entities.flatMap(partsOf).map(({ guid }) => guid)
  const parents = entities.flatMap(parentOf)
  const known = await findPostReferences(db, {
    ...byKind(parents),
    parts,
    deleted: [...entities.flatMap(guidOf), ...parts, ...parents.map(({ guid }) => guid)],
    authors: entities.flatMap((entity) => (isAnswer(entity) ? [entity.author] : [])),
  })
  const targets = await findRetractionTargets(db, entities.flatMap(targetOf))
  const conversations = await findConversations(db, entities.flatMap(conversationOf))
  return {
    roots: new Map(known.roots.map((root) => [`${root.kind} ${root.guid}`, root])),
    targets: new Map(targets),
    conversations: new Map(conversations.map((conversation) => [conversation.guid, conversation])),
    reshares: new Set(),
    deleted: new Set(known.deleted.map(({ type, guid, by }) => `${type} ${guid} ${by}`)),
    deletedHere: new Set(known.deleted.flatMap(({ type, guid, local }) => (local ? [`${type} ${guid}`] : []))),
    owners: new Map(known.parts.map(({ type, guid, author }) => [`${type} ${guid}`, author])),
    retracted: entities.some(({ type }) => type === 'retraction'),
  }
}

/** Guids of parents, as they are looked for. */
export function byKind(parents: readonly Parent[]): Readonly<Record<`${Parent['kind']}s`, readonly string[]>> {
  const guidsOf = (kind: Parent['kind']) => parents.filter((parent) => parent.kind === kind).map(({ guid }) => guid)
  return { posts: guidsOf('post'), comments: guidsOf('comment'), polls: guidsOf('poll') }
}

type Answer = Extract<StorableEntity, { readonly type: 'comment' | 'like' | 'poll_participation' | 'participation' }>

function isAnswer(entity: StorableEntity): entity is Answer {
  const { type } = entity
  return type === 'comment' || type === 'like' || type === 'poll_participation' || type === 'participation'
}

/** True for an answer to a private local post by a person who does not receive that post: for them it is an unknown parent. */
export function isUnreadableParent(entity: StorableEntity, { roots }: Found): boolean {
  if (!isAnswer(entity)) return false
  const [parent] = parentOf(entity)
  const readers = parent && roots.get(`${parent.kind} ${parent.guid}`)?.readers
  return Array.isArray(readers) && !readers.includes(entity.author)
}

export function referencesOf(entity: StorableEntity, found: Found): References {
  const { roots, targets, conversations, reshares } = found
  const [parent] = isUnreadableParent(entity, found)
    ? []
    : parentOf(entity).filter(({ guid }) => entity.type !== 'reshare' || !reshares.has(guid))
  const [target] = targetOf(entity)
  const [conversation] = conversationOf(entity)
  return {
    root: parent && roots.get(`${parent.kind} ${parent.guid}`),
    target: target && targets.get(`${target.type} ${target.guid}`),
    conversation: conversation === undefined ? undefined : conversations.get(conversation),
  }
}

/** From here on this counts as known: what comes with it in one batch is stored after it. What is here already comes first. */
export function addComing(entity: StorableEntity, { root }: References, found: Found): void {
  const { roots, targets, conversations, reshares, owners, retracted } = found
  const addRoot = (kind: ReferencedPost['kind'], guid: string, thing: KnownThing) => {
    if (!roots.has(`${kind} ${guid}`)) roots.set(`${kind} ${guid}`, thing)
  }
  const addTarget = (types: readonly TargetType[], guid: string, target: Target) => {
    if (!retracted) return
    for (const type of types) if (!targets.has(`${type} ${guid}`)) targets.set(`${type} ${guid}`, target)
  }
  for (const { type, guid } of partsOf(entity)) owners.set(`${type} ${guid}`, entity.author)
  switch (entity.type) {
    case 'status_message': {
      const post = { author: entity.author, local: false, public: entity.public }
      addRoot('post', entity.guid, post)
      addTarget(retractedAs.status_message, entity.guid, post)
      if (entity.poll !== undefined) {
        addRoot('poll', entity.poll.guid, post)
        addTarget(['Poll'], entity.poll.guid, post)
      }
      for (const photo of entity.photos) addTarget(retractedAs.photo, photo.guid, photo)
      break
    }
    case 'reshare': {
      const post = { author: entity.author, local: false, public: true }
      addRoot('post', entity.guid, post)
      addTarget(retractedAs.reshare, entity.guid, post)
      reshares.add(entity.guid)
      break
    }
    case 'comment':
      if (root !== undefined) addRoot('comment', entity.guid, root)
      addTarget(retractedAs.comment, entity.guid, { author: entity.author, root })
      break
    case 'like':
    case 'poll_participation':
      addTarget(retractedAs[entity.type], entity.guid, { author: entity.author, root })
      break
    case 'photo':
    case 'participation':
      addTarget(retractedAs[entity.type], entity.guid, entity)
      break
    case 'conversation':
      if (!conversations.has(entity.guid)) conversations.set(entity.guid, entity)
      addTarget(retractedAs.conversation, entity.guid, entity)
      break
  }
}

/** What an entity stands under, or shows: nothing or one thing. */
export function parentOf(entity: StorableEntity): readonly Parent[] {
  switch (entity.type) {
    case 'comment':
    case 'participation':
      return [{ kind: 'post', guid: entity.parent_guid }]
    case 'like':
      return [{ kind: entity.parent_type === 'Post' ? 'post' : 'comment', guid: entity.parent_guid }]
    case 'poll_participation':
      return [{ kind: 'poll', guid: entity.parent_guid }]
    case 'reshare':
      return entity.root_guid === undefined ? [] : [{ kind: 'post', guid: entity.root_guid }]
    default:
      return []
  }
}

function targetOf(entity: StorableEntity): readonly { readonly type: TargetType; readonly guid: string }[] {
  return entity.type === 'retraction' ? [{ type: entity.target_type, guid: entity.target_guid }] : []
}

/** What a retraction is about, among the things that may be on their way. */
export function targetThing({ target_type: type, target_guid: guid }: RetractionEntity): Thing | undefined {
  return type === 'Person' ? undefined : `${kindOfTarget[type]}:${guid}`
}

/** Parents before children; all kinds of posts may be called by their own name. */
export const kindOfTarget: { readonly [Type in Exclude<TargetType, 'Person'>]: Destructible } = {
  Post: 'post',
  StatusMessage: 'post',
  Reshare: 'post',
  Photo: 'photo',
  Comment: 'comment',
  Like: 'like',
  PollParticipation: 'poll_participation',
  Participation: 'participation',
  Poll: 'poll',
  Conversation: 'conversation',
}

function conversationOf(entity: StorableEntity): readonly string[] {
  return entity.type === 'message' ? [entity.conversation_guid] : []
}

function guidOf(entity: StorableEntity): readonly string[] {
  if (entity.type === 'retraction') return [entity.target_guid]
  return 'guid' in entity ? [entity.guid] : []
}

/** Everything in a post that has a guid of its own in all of the pod; answers have one within their poll. */
function partsOf(entity: StorableEntity): readonly Pick<ReferencedPart, 'type' | 'guid'>[] {
  if (entity.type !== 'status_message') return []
  const { photos, poll } = entity
  return [...photos, ...(poll === undefined ? [] : [poll])]
}

/** True for a part of a post whose guid another author has already used. */
export function isForeignPart(
  { type, guid }: Pick<ReferencedPart, 'type' | 'guid'>,
  author: string,
  { owners }: Found,
): boolean {
  return (owners.get(`${type} ${guid}`) ?? author) !== author
}

/** Names under which a retraction may have come. */
const retractedAs = {
  status_message: ['Post', 'StatusMessage', 'Reshare'],
  reshare: ['Post', 'StatusMessage', 'Reshare'],
  photo: ['Photo'],
  comment: ['Comment'],
  like: ['Like'],
  poll_participation: ['PollParticipation'],
  participation: ['Participation'],
  conversation: ['Conversation'],
} as const satisfies { readonly [Type in StorableEntity['type']]?: readonly TargetType[] }

const namesOfKind: Readonly<Record<Parent['kind'], readonly TargetType[]>> = {
  post: retractedAs.status_message,
  comment: retractedAs.comment,
  poll: ['Poll'],
}

/** Only the word of those counts who may take it back: anybody could leave a tombstone for what somebody else is about to write. */
export function isTakenBack({ entity, sender }: Sent, { root, target }: References, { deleted }: Found): boolean {
  switch (entity.type) {
    case 'retraction':
      return target === undefined && deleted.has(nameOfTombstone(entity, sender))
    case 'comment':
    case 'like':
    case 'poll_participation':
      return wasDeleted(retractedAs[entity.type], entity.guid, [entity.author, root?.author], deleted)
    case 'status_message':
    case 'reshare':
    case 'photo':
    case 'participation':
    case 'conversation':
      return wasDeleted(retractedAs[entity.type], entity.guid, [entity.author], deleted)
    default:
      return false
  }
}

/**
 * True for an answer to something that a person of this pod has deleted, or that its sender has. Tombstones of others say nothing:
 * anybody could leave one for what somebody else is about to write.
 */
export function isUnderDeleted({ entity, sender }: Sent, { root }: References, found: Found): boolean {
  const { deleted, deletedHere } = found
  if (root !== undefined || deleted.size === 0 || isUnreadableParent(entity, found)) return false
  return parentOf(entity).some(({ kind, guid }) =>
    namesOfKind[kind].some((type) => deletedHere.has(`${type} ${guid}`) || deleted.has(`${type} ${guid} ${sender}`)),
  )
}

/** A photo that comes with its post. */
export function isPhotoTakenBack({ guid, author }: PhotoEntity, { deleted }: Found): boolean {
  return wasDeleted(retractedAs.photo, guid, [author], deleted)
}

function wasDeleted(
  types: readonly TargetType[],
  guid: string,
  by: readonly (string | undefined)[],
  deleted: Found['deleted'],
): boolean {
  return deleted.size > 0 && types.some((type) => by.some((address) => deleted.has(`${type} ${guid} ${address}`)))
}

function nameOfTombstone({ target_type: type, target_guid: guid }: RetractionEntity, by: string): string {
  return `${type} ${guid} ${by}`
}
