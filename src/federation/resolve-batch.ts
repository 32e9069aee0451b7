import { LOOKUP_LIMITS } from '../limits.js'
import {
  type Deleted,
  findDeleted,
  findKnownParts,
  findKnownPosts,
  type KnownPart,
} from '../persistence/post-surroundings.js'
import type { Pod } from '../pod.js'
import type { PhotoEntity } from '../protocol/entities/posts.js'
import type { Surroundings } from '../protocol/sender-rules.js'
import type { Arrival, Sorted, Waiting } from './receive-batch.js'
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
  { db }: Pick<Pod, 'db'>,
  arrivals: readonly Arrival<StorableEntity>[],
): Promise<Sorted<Resolved>> {
  const entities = arrivals.map(({ entity }) => entity)
  const parts = entities.flatMap(partsOf)
  const partGuids = parts.map(({ guid }) => guid)
  const roots = await findKnownPosts(db, entities.flatMap(rootOf))
  const deleted = await findDeleted(db, [...entities.map(({ guid }) => guid), ...partGuids])
  const known = await findKnownParts(db, partGuids)

  const ready: Resolved[] = []
  const waiting: Waiting[] = []
  for (const arrival of arrivals) {
    const { message, entity } = arrival
    const [rootGuid] = rootOf(entity)
    const root = roots.find(({ guid }) => guid === rootGuid)
    if (rootGuid !== undefined && root === undefined) {
      waiting.push({ message, waitsFor: `post:${rootGuid}`, askAt: rootAuthorOf(entity) })
      continue
    }
    ready.push({
      ...arrival,
      entity: withoutLostPhotos(entity, deleted),
      surroundings: { root },
      deleted: isDeleted('post', entity, deleted),
      taken: partsOf(entity).some((part) => isOfSomebodyElse(part, entity.author, known)),
    })
  }
  return { ready, waiting, wrong: [], over: [] }
}

function rootOf(entity: StorableEntity): string[] {
  return entity.type === 'reshare' && entity.root_guid !== undefined ? [entity.root_guid] : []
}

function rootAuthorOf(entity: StorableEntity): string {
  return (entity.type === 'reshare' && entity.root_author) || entity.author
}

type Part = Pick<KnownPart, 'type' | 'guid'>

/** Everything in a post that has a guid of its own. */
function partsOf(entity: StorableEntity): readonly Part[] {
  if (entity.type === 'reshare') return []
  const { photos, poll } = entity
  return [...photos, ...(poll === undefined ? [] : [poll, ...poll.poll_answers])]
}

function isOfSomebodyElse(part: Part, author: string, known: readonly KnownPart[]): boolean {
  return known.some(({ type, guid, ...one }) => type === part.type && guid === part.guid && one.author !== author)
}

/** Names under which a retraction may have come. */
const retractedAs: Readonly<Record<'post' | 'photo', readonly string[]>> = {
  post: ['Post', 'StatusMessage', 'Reshare'],
  photo: ['Photo'],
}

/** Only the word of the author counts: anybody could leave a tombstone for what somebody else is about to write. */
function isDeleted(
  kind: keyof typeof retractedAs,
  thing: { readonly guid: string; readonly author: string },
  deleted: readonly Deleted[],
): boolean {
  return deleted.some(
    ({ type, guid, by }) => guid === thing.guid && by === thing.author && retractedAs[kind].includes(type),
  )
}

/** What nobody can be shown, or was taken back before it came. */
function withoutLostPhotos(entity: StorableEntity, deleted: readonly Deleted[]): StorableEntity {
  if (entity.type === 'reshare') return entity
  return {
    ...entity,
    photos: entity.photos.filter((photo) => isShowable(photo) && !isDeleted('photo', photo, deleted)),
  }
}

/** The path may be anything that looks like one, and stands in front of a name wherever the photo is shown. */
function isShowable({ remote_photo_path: path }: PhotoEntity): boolean {
  return URL.canParse(path) && /^https?:\/\//i.test(path) && path.length <= LOOKUP_LIMITS.urlCharacters
}
