import type { Knex } from 'knex'
import { named } from './database.js'
import { hasRow } from './has-row.js'
import type { Reach, Reader } from './listed-posts.js'
import type { Photo } from './models/photo.js'
import { type Page, pageOf, seek, type TimePage } from './paged.js'

/** What a client is shown of a photo. */
export interface ListedPhoto
  extends Pick<Photo, 'id' | 'guid' | 'createdAt' | 'name' | 'remotePath' | 'height' | 'width'> {
  /** The post it is part of. */
  readonly postGuid: string | null
}

const reaches: Readonly<Record<Reach, string>> = {
  public: 'and photos.public',
  readable: `and (photos.public or ${hasRow('photo_visibilities where user_id = $2 and photo_visibilities.photo_id = photos.id')})`,
  all: '',
}

/** What one person has shown to others; what waits to become part of a post is not among it. */
export async function listedPhotosOf(
  db: Knex,
  { userId }: Reader,
  { authorId, reach, page }: { readonly authorId: number; readonly reach: Reach; readonly page: TimePage },
): Promise<Page<ListedPhoto>> {
  const values: unknown[] = [authorId, ...(reach === 'readable' ? [userId] : [])]
  const { name, condition, order } = seek(page, values, { time: 'photos.created_at', id: 'photos.id' })
  const found = await named<ListedPhoto>(
    db,
    `photos-of-person ${reach} ${name}`,
    `select
       photos.id, photos.guid, photos.created_at as "createdAt", photos.name, photos.remote_path as "remotePath",
       photos.height, photos.width, posts.guid as "postGuid"
     from photos left join posts on posts.id = photos.post_id
     where photos.author_id = $1 and not photos.pending ${reaches[reach]} ${condition} ${order}`,
    values,
  )
  return pageOf(found, page)
}
