import { type Thing, UNREADABLE } from '../../jobs/waiting/waiting-messages.js'
import type { Pod } from '../../pod/pod.js'
import { splitAddress } from '../../protocol/address.js'
import type { References } from '../../protocol/envelopes/sender-rules.js'
import { isAuthorised } from './authorise-batch.js'
import type { Arrival, StepResult, WaitingMessage } from './batch.js'
import {
  addComing,
  type Found,
  findAround,
  isForeignPart,
  isPhotoTakenBack,
  isTakenBack,
  isUnderDeleted,
  isUnreadableParent,
  parentOf,
  referencesOf,
  targetThing,
} from './references.js'
import { isOnTheWeb } from './store/photo-facts.js'
import type { StorableEntity } from './store/storable-entity.js'

/** An arrival together with everything that decides about it. */
export interface Resolved extends Arrival<StorableEntity> {
  readonly references: References
  /** Somebody who had the right to has taken it back, or what it stands under. */
  readonly deleted: boolean
  /** A photo or a poll was left out of it, because another author has used its guid. */
  readonly hasLostParts: boolean
  /** The named author has an account on this pod. */
  readonly authorIsLocal: boolean
  /** Its parent is here, but its author does not receive it. */
  readonly hasUnreadableParent: boolean
}

/** Finds what the entities refer to, with one statement for each kind of thing; who refers to something unknown has to wait. */
export async function resolveBatch(
  pod: Pick<Pod, 'config' | 'db'>,
  arrivals: readonly Arrival<StorableEntity>[],
): Promise<StepResult<Resolved>> {
  const found = await findAround(
    pod,
    arrivals.map(({ entity }) => entity),
  )
  const ready: Resolved[] = []
  const waiting: WaitingMessage[] = []
  for (const arrival of parentsFirst(arrivals)) {
    const resolved = resolve(pod, arrival, found)
    const missing = missingFor(pod, resolved)
    if (missing !== undefined) {
      waiting.push({ message: arrival.message, arrival, sender: arrival.sender, signed: true, ...missing })
    } else {
      ready.push(resolved)
      if (mayBeReferredTo(resolved, found) && isAuthorised(resolved)) {
        addComing(resolved.entity, resolved.references, found)
      }
    }
  }
  return { ready, waiting, rejected: [], ignored: [] }
}

/** Written out: what is spread into a larger object is copied name by name, which takes longer than all the rest of this. */
function resolve({ config }: Pick<Pod, 'config'>, arrival: Arrival<StorableEntity>, found: Found): Resolved {
  const { message, sender, signer, author, signature, firstSigned, recipient } = arrival
  const whole = withoutLostPhotos(arrival.entity, found)
  const entity = withoutForeignParts(whole, found)
  const references = referencesOf(entity, found)
  return {
    message,
    sender,
    signer,
    author,
    entity,
    signature,
    firstSigned,
    recipient,
    parentIsLocal: references.root?.local ?? false,
    references,
    deleted: isTakenBack(arrival, references, found) || isUnderDeleted(arrival, references, found),
    hasLostParts: entity !== whole,
    authorIsLocal: !speaksOfOthers.has(entity.type) && entity.author.endsWith(`@${config.host}`),
    hasUnreadableParent: isUnreadableParent(entity, found),
  }
}

/** The author that these name need not be the sender, and may be local. */
const speaksOfOthers: ReadonlySet<StorableEntity['type']> = new Set(['retraction', 'account_migration'])

/** What others stand under, in the order in which it is stored. */
const parents: readonly StorableEntity['type'][] = ['status_message', 'reshare', 'comment', 'conversation']

/** What others stand under comes before what may stand under it, as it is stored; what takes back comes last. */
function parentsFirst(arrivals: readonly Arrival<StorableEntity>[]): Arrival<StorableEntity>[] {
  const rank = ({ entity: { type } }: Arrival<StorableEntity>) =>
    parents.includes(type) ? parents.indexOf(type) - parents.length : Number(type === 'retraction')
  return arrivals.toSorted((one, other) => rank(one) - rank(other))
}

/** By something that comes with it. Of what nothing stands under, only a retraction speaks. */
function mayBeReferredTo({ entity: { type } }: Resolved, { retracted }: Found): boolean {
  return retracted || parents.includes(type)
}

/** What is unknown, and who is asked for it. */
type Missing = Omit<WaitingMessage, 'message' | 'sender' | 'signed'>

/** What it has to wait for, and who is asked. What would be refused in any case is no reason to ask somebody for something. */
function missingFor(pod: Pick<Pod, 'config'>, resolved: Resolved): Missing | undefined {
  const missing = unknownTo(pod, resolved)
  if (missing === undefined) return undefined
  const references = { ...asHoped(resolved), ...known(resolved.references) }
  return isAuthorised({ ...resolved, references }) ? missing : undefined
}

function unknownTo(
  { config }: Pick<Pod, 'config'>,
  { entity, sender, references, hasUnreadableParent }: Resolved,
): Missing | undefined {
  if (entity.type === 'retraction') {
    const waitsFor = targetThing(entity)
    if (references.target !== undefined || waitsFor === undefined) return undefined
    return { waitsFor, fault: 'TargetNotFound', patience: patienceOfRetraction }
  }
  if (entity.type === 'message') {
    if (references.conversation !== undefined) return undefined
    return { waitsFor: `conversation:${entity.conversation_guid}`, fault: 'ConversationNotFound' }
  }
  const [parent] = parentOf(entity)
  if (parent === undefined || references.root !== undefined) return undefined
  const askAt = (entity.type === 'reshare' ? entity.root_author : undefined) ?? entity.author
  if (hostOf(askAt) === config.host) return undefined // what we do not know of our own is gone
  const orAskAt = hostOf(sender) === hostOf(askAt) ? undefined : sender
  const waitsFor: Thing = `${hasUnreadableParent ? UNREADABLE : ''}${parent.kind}:${parent.guid}`
  return { waitsFor, fault: 'NotFetchable', askAt, orAskAt }
}

/** Longer than a batch takes: the target may be in another one. */
const patienceOfRetraction = 60 * 60

/** The best that can turn out about what is unknown here; what is known of the rest stands. */
function asHoped({ entity, sender, recipient }: Resolved): References {
  const author = (entity.type === 'reshare' ? entity.root_author : undefined) ?? sender
  return {
    root: { author, local: false, public: true },
    target: { author: sender },
    conversation: { participants: [entity.author, ...(recipient === undefined ? [] : [recipient.address])] },
  }
}

function known(references: References): References {
  return Object.fromEntries(Object.entries(references).filter(([, thing]) => thing !== undefined))
}

function hostOf(address: string): string | undefined {
  return splitAddress(address)?.host
}

/** What nobody can be shown, or was taken back before it came. */
function withoutLostPhotos(entity: StorableEntity, found: Found): StorableEntity {
  if (entity.type !== 'status_message') return entity
  const photos = entity.photos.filter((photo) => isOnTheWeb(photo.remote_photo_path) && !isPhotoTakenBack(photo, found))
  return { ...entity, photos }
}

/** Guids can be taken in advance by any author: a post does not end with the part that has such a guid. */
function withoutForeignParts(entity: StorableEntity, found: Found): StorableEntity {
  if (entity.type !== 'status_message') return entity
  const { author, poll } = entity
  const photos = entity.photos.filter((photo) => !isForeignPart(photo, author, found))
  const isPollForeign = poll !== undefined && isForeignPart(poll, author, found)
  if (photos.length === entity.photos.length && !isPollForeign) return entity
  return { ...entity, photos, poll: isPollForeign ? undefined : poll }
}
