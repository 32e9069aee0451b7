import type { Knex } from 'knex'
import { queryPreparedRow } from '../database/database.js'
import type { Photo } from '../models/photo.js'
import { openPersonIdSql } from '../people/open-person-id.js'
import type { ViewerIds } from '../posts/list-posts.js'
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
import { hasRowSql } from '../sql/has-row.js'
import { keysetClauses, type Page, type TimePage, toPage } from '../sql/keyset-page.js'
import { ALT_TEXT_LIMITS } from './limits.js'

/** A photo as the client API shows it. */
export interface ListedPhoto
  extends Pick<Photo, 'id' | 'guid' | 'createdAt' | 'name' | 'remotePath' | 'height' | 'width' | 'text'> {
  /** The post that the photo is attached to. */
  readonly postGuid: string | null
}

/** The description, cut: another pod may send a longer one. */
export const SHOWN_ALT_TEXT_SQL = `left(photos.text, ${ALT_TEXT_LIMITS.altTextCharacters})`

/** Columns of `photos`, joined with the post that the photo is attached to. */
export const PHOTO_COLUMNS_SQL = `
  photos.id, photos.guid, photos.created_at as "createdAt", photos.name, photos.remote_path as "remotePath",
  photos.height, photos.width, ${SHOWN_ALT_TEXT_SQL} as text, posts.guid as "postGuid"`

const visibilityCondition: Readonly<Record<Visibility, string>> = {
  public: 'photos.public',
  readable: `(photos.public or photos.author_id = $3
    or ${hasRowSql('photo_visibilities where user_id = $2 and photo_visibilities.photo_id = photos.id')})`,
}

/**
 * Lists the photos of one person that the viewer may see, without pending ones. An unknown or closed person has none. Index
 * `photos_of_author` (author_id, created_at, id) from the page key on.
 */
export async function listPhotosOfPerson(
  db: Knex,
  { userId, personId }: ViewerIds,
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
  const selectPhotos = `
    select * from photos
    where author_id = (${openPersonIdSql('$1')}) and not pending and ${visibilityCondition[visibility]} ${condition} ${order}`
  const row = await queryPreparedRow<PhotosRow>(
    db,
    `photos-of-person ${visibility} ${name}`,
    () => photosSql(selectPhotos, maxRows),
    values,
  )
  return toPage(buildPhotos(row), page)
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
  text: nullableTextColumn(SHOWN_ALT_TEXT_SQL),
})

const postAggregate = aggregateColumns({ id: numberColumn('id'), guid: textColumn('guid') })

/** The single row that `photosSql` returns. */
interface PhotosRow {
  readonly photos: AggregatedColumns
  readonly posts: AggregatedColumns
}

function buildPhotos(row: PhotosRow): readonly ListedPhoto[] {
  const [photos, posts] = [photoAggregate.decode(row.photos), postAggregate.decode(row.posts)]
  const postGuids = new Map<number | null, string>(posts.id.map((id, index) => [id, valueAt(posts.guid, index)]))
  return photos.id.map((id, index) => ({
    id,
    guid: valueAt(photos.guid, index),
    createdAt: new Date(valueAt(photos.createdAt, index)),
    name: valueAt(photos.name, index),
    remotePath: valueAt(photos.remotePath, index),
    text: valueAt(photos.text, index),
    height: valueAt(photos.height, index),
    width: valueAt(photos.width, index),
    postGuid: postGuids.get(valueAt(photos.postId, index)) ?? null,
  }))
}

/** Looks the posts up for all photos at once, by primary key. */
function photosSql(selectPhotos: string, maxRows: number): string {
  return `
    select photos, posts
    from (
      select ${photoAggregate.select} as photos, array_agg(post_id) as post_ids
      from (select * from (${selectPhotos}) as selected limit ${maxRows}) as photos
    ) as page
    cross join lateral (select ${postAggregate.select} as posts from posts where id = any(page.post_ids)) as posts_of_page`
}
