import type { Knex } from 'knex'
import { PHOTO_LIMITS } from '../../limits.js'
import { queryPreparedRow } from '../database/database.js'
import type { Photo } from '../models/photo.js'
import { selectOpenPersonId } from '../people/open-person-id.js'
import type { Reader } from '../posts/list-posts.js'
import type { Visibility } from '../posts/visibility.js'
import {
  type AggregatedColumns,
  aggregateColumns,
  nullableNumberColumn,
  nullableTextColumn,
  numberColumn,
  textColumn,
  timeColumn,
  valueAt,
} from '../sql/column-lists.js'
import { hasRow } from '../sql/has-row.js'
import { keysetClauses, type Page, type TimePage, toPage } from '../sql/keyset-page.js'

/** What a client is shown of a photo. */
export interface ListedPhoto
  extends Pick<Photo, 'id' | 'guid' | 'createdAt' | 'name' | 'remotePath' | 'height' | 'width' | 'text'> {
  /** The post it is part of. */
  readonly postGuid: string | null
}

/** Another pod may send a longer one. */
export const SHOWN_ALT_TEXT = `left(photos.text, ${PHOTO_LIMITS.altTextCharacters})`

/** Of a photo, joined with the post it is part of. */
export const PHOTO_COLUMNS = `
  photos.id, photos.guid, photos.created_at as "createdAt", photos.name, photos.remote_path as "remotePath",
  photos.height, photos.width, ${SHOWN_ALT_TEXT} as text, posts.guid as "postGuid"`

const visibilityCondition: Readonly<Record<Visibility, string>> = {
  public: 'photos.public',
  readable: `(photos.public or photos.author_id = $3
    or ${hasRow('photo_visibilities where user_id = $2 and photo_visibilities.photo_id = photos.id')})`,
}

/** What one person has shown to others; what waits to become part of a post is not among it. Nothing, as above. */
export async function listPhotosOfPerson(
  db: Knex,
  { userId, personId }: Reader,
  {
    authorGuid,
    visibility,
    page,
  }: { readonly authorGuid: string; readonly visibility: Visibility; readonly page: TimePage },
): Promise<Page<ListedPhoto>> {
  const values: unknown[] = [authorGuid, ...(visibility === 'readable' ? [userId, personId] : [])]
  const { name, maxRows, condition, order } = keysetClauses(page, values, {
    time: 'photos.created_at',
    id: 'photos.id',
  })
  const some = `
    select * from photos
    where author_id = (${selectOpenPersonId('$1')}) and not pending and ${visibilityCondition[visibility]} ${condition} ${order}`
  const all = await queryPreparedRow<Found>(
    db,
    `photos-of-person ${visibility} ${name}`,
    () => shown(some, maxRows),
    values,
  )
  return toPage(photosOf(all), page)
}

const photoAggregate = aggregateColumns({
  id: numberColumn('id'),
  createdAt: timeColumn('created_at'),
  height: nullableNumberColumn('height'),
  width: nullableNumberColumn('width'),
  postId: nullableNumberColumn('post_id'),
  guid: textColumn('guid'),
  name: textColumn('name'),
  remotePath: nullableTextColumn('remote_path'),
  text: nullableTextColumn(SHOWN_ALT_TEXT),
})

const postAggregate = aggregateColumns({ id: numberColumn('id'), guid: textColumn('guid') })

/** All in one row. */
interface Found {
  readonly photos: AggregatedColumns
  readonly posts: AggregatedColumns
}

function photosOf(all: Found): readonly ListedPhoto[] {
  const [photos, posts] = [photoAggregate.decode(all.photos), postAggregate.decode(all.posts)]
  const postGuids = new Map<number | null, string>(posts.id.map((id, place) => [id, valueAt(posts.guid, place)]))
  return photos.id.map((id, place) => ({
    id,
    guid: valueAt(photos.guid, place),
    createdAt: new Date(valueAt(photos.createdAt, place)),
    name: valueAt(photos.name, place),
    remotePath: valueAt(photos.remotePath, place),
    text: valueAt(photos.text, place),
    height: valueAt(photos.height, place),
    width: valueAt(photos.width, place),
    postGuid: postGuids.get(valueAt(photos.postId, place)) ?? null,
  }))
}

function shown(some: string, maxRows: number): string {
  return `
    select photos, posts
    from (
      select ${photoAggregate.select} as photos, array_agg(post_id) as post_ids
      from (select * from (${some}) as found limit ${maxRows}) as photos
    ) as page
    cross join lateral (select ${postAggregate.select} as posts from posts where id = any(page.post_ids)) as about`
}
