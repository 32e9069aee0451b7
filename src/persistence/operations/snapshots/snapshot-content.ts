import type { Readable } from 'node:stream'
import type pg from 'pg'
import { copyOut } from '../../database/copy.js'

/** A photo whose files are on this pod. */
interface StoredPhoto {
  readonly id: number
  readonly name: string
}

/** Reads the guids of closed accounts, one a line. */
export function readClosedAccounts(session: pg.Client): Readable {
  return copyOut(session, `copy (${CLOSED_ACCOUNTS_SQL}) to stdout`)
}

const CLOSED_ACCOUNTS_SQL = `
  select people.guid from users join people on people.id = users.person_id where users.closed_at is not null order by users.id`

/** Reads the photos whose files are on this pod, by id: a line has id and name, with a tab between them. */
export function readStoredPhotos(session: pg.Client): Readable {
  return copyOut(session, `copy (${STORED_PHOTOS_SQL} order by id) to stdout`)
}

/** Local photos, and those of accounts that have moved away whose files are still here; each photo once. */
const STORED_PHOTOS_SQL = `
  select id, name from photos where remote_path is null
  union all
  (select distinct on (photo_id) photo_id, moved_photo_files.name
   from moved_photo_files join photos on photos.id = photo_id and photos.remote_path is not null
   where deleted_at is null
   order by photo_id, moved_at desc)`

interface PhotoPage {
  /** The id of the last photo of the page before. */
  readonly after: number
  readonly limit: number
  /** False: the table of moved files does not exist; backups of earlier versions have none. */
  readonly hasMovedFiles: boolean
}

/** Lists the same photos page by page. */
export async function listStoredPhotos(
  session: pg.Client,
  { after, limit, hasMovedFiles }: PhotoPage,
): Promise<readonly StoredPhoto[]> {
  const statement = hasMovedFiles ? PHOTO_PAGE_WITH_MOVED_FILES_SQL : LOCAL_PHOTO_PAGE_SQL
  const { rows } = await session.query<StoredPhoto>(statement, [after, limit])
  return rows
}

const LOCAL_PHOTO_PAGE_SQL = 'select id, name from photos where remote_path is null and id > $1 order by id limit $2'

/** Each half reads one page of its index. */
const PHOTO_PAGE_WITH_MOVED_FILES_SQL = `
  select id, name from (
    (${LOCAL_PHOTO_PAGE_SQL})
    union all
    (select distinct on (photo_id) photo_id, moved_photo_files.name
     from moved_photo_files join photos on photos.id = photo_id and photos.remote_path is not null
     where deleted_at is null and photo_id > $1
     order by photo_id, moved_at desc limit $2)
  ) as stored order by id limit $2`
