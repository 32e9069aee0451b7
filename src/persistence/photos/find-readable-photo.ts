import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import type { ViewerIds } from '../posts/list-posts.js'
import type { Visibility } from '../posts/visibility.js'
import { hasRowSql } from '../sql/has-row.js'
import { keysetClauses, type Page, type TimePage, toPage } from '../sql/keyset-page.js'
import { type ListedPhoto, PHOTO_COLUMNS_SQL } from './list-photos.js'

/** Lists the photos that the viewer has uploaded, also those not attached to a post yet. Index `photos_of_author`. */
export async function listUploadedPhotos(
  db: Knex,
  { personId }: Pick<ViewerIds, 'personId'>,
  { visibility, page }: { readonly visibility: Visibility; readonly page: TimePage },
): Promise<Page<ListedPhoto>> {
  const values: unknown[] = [personId]
  const { name, condition, order } = keysetClauses(page, values, { time: 'photos.created_at', id: 'photos.id' })
  const photos = await queryPrepared<ListedPhoto>(
    db,
    `uploaded-photos ${visibility} ${name}`,
    `select ${PHOTO_COLUMNS_SQL}
     from photos left join posts on posts.id = photos.post_id
     where photos.author_id = $1 ${visibility === 'public' ? 'and photos.public' : ''} ${condition} ${order}`,
    values,
  )
  return toPage(photos, page)
}

/** Finds a photo that the viewer may see. A pending photo, not attached to a post yet, is visible to its author alone. */
export async function findReadablePhoto(
  db: Knex,
  { userId, personId }: ViewerIds,
  { guid, visibility }: { readonly guid: string; readonly visibility: Visibility },
): Promise<ListedPhoto | undefined> {
  const [photo] = await queryPrepared<ListedPhoto>(db, 'readable-photo', READABLE_PHOTO_SQL, [
    guid,
    personId,
    userId,
    visibility === 'public',
  ])
  return photo
}

const READABLE_PHOTO_SQL = `
  select ${PHOTO_COLUMNS_SQL}
  from photos left join posts on posts.id = photos.post_id
  where photos.guid = $1
    and (photos.public or not $4::boolean)
    and (
      photos.author_id = $2
      or (not photos.pending and (
        photos.public
        or ${hasRowSql('photo_visibilities where user_id = $3 and photo_visibilities.photo_id = photos.id')}
      ))
    )`
