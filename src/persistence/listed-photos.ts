import type { Knex } from 'knex'
import { authorOf } from './author-of.js'
import { namedList } from './database.js'
import { hasRow } from './has-row.js'
import type { Reader } from './listed-posts.js'
import type { Photo } from './models/photo.js'
import { type Page, pageOf, seek, type TimePage } from './paged.js'
import type { Sight } from './sight.js'

/** What a client is shown of a photo. */
export interface ListedPhoto
  extends Pick<Photo, 'id' | 'guid' | 'createdAt' | 'name' | 'remotePath' | 'height' | 'width'> {
  /** The post it is part of. */
  readonly postGuid: string | null
}

/** Of a photo, joined with the post it is part of. */
export const PHOTO_COLUMNS = `
  photos.id, photos.guid, photos.created_at as "createdAt", photos.name, photos.remote_path as "remotePath",
  photos.height, photos.width, posts.guid as "postGuid"`

const inSight: Readonly<Record<Sight, string>> = {
  public: 'photos.public',
  readable: `(photos.public or photos.author_id = $3
    or ${hasRow('photo_visibilities where user_id = $2 and photo_visibilities.photo_id = photos.id')})`,
}

/** What one person has shown to others; what waits to become part of a post is not among it. Nothing, as above. */
export async function listedPhotosOf(
  db: Knex,
  { userId, personId }: Reader,
  { authorGuid, sight, page }: { readonly authorGuid: string; readonly sight: Sight; readonly page: TimePage },
): Promise<Page<ListedPhoto>> {
  const values: unknown[] = [authorGuid, ...(sight === 'readable' ? [userId, personId] : [])]
  const { name, condition, order } = seek(page, values, { time: 'photos.created_at', id: 'photos.id' })
  const found = await namedList<ListedPhoto>(
    db,
    `photos-of-person ${sight} ${name}`,
    `select ${PHOTO_COLUMNS}
     from photos left join posts on posts.id = photos.post_id
     where photos.author_id = (${authorOf('$1')}) and not photos.pending and ${inSight[sight]} ${condition} ${order}`,
    { values, times: ['createdAt'] },
  )
  return pageOf(found, page)
}
