import { LOOKUP_LIMITS } from '../limits.js'
import { findDeleted, findKnownParts, findKnownPosts, type KnownPart } from '../persistence/post-surroundings.js'
import type { Pod } from '../pod.js'
import type { PhotoEntity } from '../protocol/entities/posts.js'
import type { Surroundings } from '../protocol/sender-rules.js'
import type { Arrival, Sorted, Waiting } from './batch.js'
import type { StorableEntity } from './storable.js'

/** An arrival together with everything that decides about it. */
export interface Resolved extends Arrival<StorableEntity> {
  readonly surroundings: Surroundings
  /** Its author has taken it back. */
  readonly deleted: boolean
  /** Something in it has a guid that is somebody else's. */
  readonly taken: boolean
}

/** Finds what the entities refer to, with one statement for each kind of thing; who refers to something unknown has to wait. */
export async function resolveBatch(
  pod: Pick<Pod, 'db'>,
  arrivals: readonly Arrival<StorableEntity>[],
): Promise<Sorted<Resolved>> {
  const found = await findAround(
    pod,
    arrivals.map(({ entity }) => entity),
  )
  const ready: Resolved[] = []
  const waiting: Waiting[] = []
  for (const arrival of arrivals) {
    const { message, entity } = arrival
    const [rootGuid] = rootOf(entity)
    const root = rootGuid === undefined ? undefined : found.roots.get(rootGuid)
    const resolved = {
      ...arrival,
      entity: withoutLostPhotos(entity, found),
      surroundings: { root },
      deleted: isDeleted('post', entity, found),
      taken: partsOf(entity).some((part) => isOfSomebodyElse(part, entity.author, found)),
    }
    const lacksRoot = rootGuid !== undefined && root === undefined
    if (lacksRoot && isWorthWaiting(resolved)) {
      waiting.push({ message, waitsFor: `post:${rootGuid}`, askAt: rootAuthorOf(entity) })
    } else {
      ready.push(resolved)
    }
  }
  return { ready, waiting, wrong: [], over: [] }
}

/** What will not be stored in any case is no reason to ask somebody for something. */
function isWorthWaiting({ sender, signer, entity, deleted }: Resolved): boolean {
  return sender === entity.author && !signer.local && !signer.closed && !signer.blocked && !deleted
}

type Part = Pick<KnownPart, 'type' | 'guid'>

interface Found {
  readonly roots: ReadonlyMap<string, NonNullable<Surroundings['root']>>
  /** What was deleted, with the name of its kind and of who did it. */
  readonly deleted: ReadonlySet<string>
  /** Whose the parts are that are known here. */
  readonly owners: ReadonlyMap<string, string>
}

async function findAround({ db }: Pick<Pod, 'db'>, entities: readonly StorableEntity[]): Promise<Found> {
  const partGuids = entities.flatMap(partsOf).map(({ guid }) => guid)
  const roots = await findKnownPosts(db, entities.flatMap(rootOf))
  const deleted = await findDeleted(db, [...entities.map(({ guid }) => guid), ...partGuids])
  const parts = await findKnownParts(db, partGuids)
  return {
    roots: new Map(roots.map((root) => [root.guid, root])),
    deleted: new Set(deleted.map(({ type, guid, by }) => `${type} ${guid} ${by}`)),
    owners: new Map(parts.map(({ type, guid, author }) => [`${type} ${guid}`, author])),
  }
}

function rootOf(entity: StorableEntity): string[] {
  return entity.type === 'reshare' && entity.root_guid !== undefined ? [entity.root_guid] : []
}

function rootAuthorOf(entity: StorableEntity): string {
  return (entity.type === 'reshare' && entity.root_author) || entity.author
}

/** Everything in a post that has a guid of its own. */
function partsOf(entity: StorableEntity): readonly Part[] {
  if (entity.type === 'reshare') return []
  const { photos, poll } = entity
  return [...photos, ...(poll === undefined ? [] : [poll, ...poll.poll_answers])]
}

function isOfSomebodyElse({ type, guid }: Part, author: string, { owners }: Found): boolean {
  return (owners.get(`${type} ${guid}`) ?? author) !== author
}

/** Names under which a retraction may have come. */
const retractedAs: Readonly<Record<'post' | 'photo', readonly string[]>> = {
  post: ['Post', 'StatusMessage', 'Reshare'],
  photo: ['Photo'],
}

/** Only the word of the author counts: anybody could leave a tombstone for what somebody else is about to write. */
function isDeleted(
  kind: keyof typeof retractedAs,
  { guid, author }: { readonly guid: string; readonly author: string },
  { deleted }: Found,
): boolean {
  return retractedAs[kind].some((type) => deleted.has(`${type} ${guid} ${author}`))
}

/** What nobody can be shown, or was taken back before it came. */
function withoutLostPhotos(entity: StorableEntity, found: Found): StorableEntity {
  if (entity.type === 'reshare') return entity
  return { ...entity, photos: entity.photos.filter((photo) => isShowable(photo) && !isDeleted('photo', photo, found)) }
}

/** The path may be anything that looks like one, and stands in front of a name wherever the photo is shown. */
function isShowable({ remote_photo_path: path }: PhotoEntity): boolean {
  return URL.canParse(path) && /^https?:\/\//i.test(path) && path.length <= LOOKUP_LIMITS.urlCharacters
}
