import type { Knex } from 'knex'
import { PHOTO_LIMITS } from '../../limits.js'
import { namedRow } from '../database/database.js'
import type { Photo } from '../models/photo.js'
import { authorOf } from '../people/author-of.js'
import type { Reader } from '../posts/list-posts.js'
import type { Visibility } from '../posts/visibility.js'
import {
  columnForm,
  moment,
  number,
  numberOrNull,
  text,
  textOrNull,
  valueAt,
  type Written,
} from '../sql/column-lists.js'
import { hasRow } from '../sql/has-row.js'
import { type Page, pageOf, seek, type TimePage } from '../sql/keyset-page.js'

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
export async function listedPhotosOf(
  db: Knex,
  { userId, personId }: Reader,
  {
    authorGuid,
    visibility,
    page,
  }: { readonly authorGuid: string; readonly visibility: Visibility; readonly page: TimePage },
): Promise<Page<ListedPhoto>> {
  const values: unknown[] = [authorGuid, ...(visibility === 'readable' ? [userId, personId] : [])]
  const { name, most, condition, order } = seek(page, values, { time: 'photos.created_at', id: 'photos.id' })
  const some = `
    select * from photos
    where author_id = (${authorOf('$1')}) and not pending and ${visibilityCondition[visibility]} ${condition} ${order}`
  const all = await namedRow<Found>(db, `photos-of-person ${visibility} ${name}`, () => shown(some, most), values)
  return pageOf(photosOf(all), page)
}

const photoForm = columnForm({
  id: number('id'),
  createdAt: moment('created_at'),
  height: numberOrNull('height'),
  width: numberOrNull('width'),
  postId: numberOrNull('post_id'),
  guid: text('guid'),
  name: text('name'),
  remotePath: textOrNull('remote_path'),
  text: textOrNull(SHOWN_ALT_TEXT),
})

const postForm = columnForm({ id: number('id'), guid: text('guid') })

/** All in one row. */
interface Found {
  readonly photos: Written
  readonly posts: Written
}

function photosOf(all: Found): readonly ListedPhoto[] {
  const [photos, posts] = [photoForm.read(all.photos), postForm.read(all.posts)]
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

function shown(some: string, most: number): string {
  return `
    select photos, posts
    from (
      select ${photoForm.select} as photos, array_agg(post_id) as post_ids
      from (select * from (${some}) as found limit ${most}) as photos
    ) as page
    cross join lateral (select ${postForm.select} as posts from posts where id = any(page.post_ids)) as about`
}
