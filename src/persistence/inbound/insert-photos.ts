import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import { isRetractedSql } from '../models/tombstone.js'
import { rowByRowSql } from '../sql/row-by-row.js'

/** A photo that is received separately. Its post can be stored already or arrive later. */
export interface ReceivedSeparatePhoto {
  readonly guid: string
  readonly author: string
  readonly public: boolean
  readonly postGuid?: string | undefined
  readonly text?: string | undefined
  readonly remotePath: string
  readonly name: string
  readonly height?: number | undefined
  readonly width?: number | undefined
  readonly createdAt: Date
}

export interface PhotoRow {
  readonly id: number
  readonly guid: string
  readonly isNew: boolean
}

/**
 * Inserts photos with one statement, or updates photos of the same author; photos of another author are left out. An update neither
 * makes a photo public nor moves it to another post.
 */
export async function upsertPhotos(
  transaction: Knex.Transaction,
  photos: readonly ReceivedSeparatePhoto[],
): Promise<readonly PhotoRow[]> {
  if (photos.length === 0) return []
  return queryRows<PhotoRow>(transaction, STORED_PHOTOS_SQL, [JSON.stringify(photos)])
}

/** Finds the authors of stored photos, by guid. */
export async function findPhotoAuthors(
  transaction: Knex.Transaction,
  guids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (guids.length === 0) return new Map()
  const rows = await queryRows<{ readonly guid: string; readonly address: string }>(transaction, PHOTO_AUTHORS_SQL, [
    [...guids],
  ])
  return new Map(rows.map((row) => [row.guid, row.address]))
}

/** Makes photos visible to users, independently of their posts. */
export async function insertPhotoVisibilities(
  transaction: Knex.Transaction,
  shown: readonly { readonly photoId: number; readonly userId: number }[],
): Promise<void> {
  if (shown.length > 0) await transaction.raw(VISIBLE_PHOTOS_SQL, [JSON.stringify(shown)])
}

const STORED_PHOTOS_SQL = `
  insert into photos (
    guid, author_id, post_id, post_guid, public, text, remote_path, name, height, width, created_at
  )
  select
    input.guid, people.id, posts.id, case when posts.id is null then input."postGuid" end, input.public,
    input.text, input."remotePath", input.name, input.height, input.width, input."createdAt"
  from json_to_recordset(?::json) as input(
    guid text, author text, public boolean, "postGuid" text, text text, "remotePath" text, name text, height integer,
    width integer, "createdAt" timestamptz
  )
  ${rowByRowSql('people', 'people.address = input.author')}
  left join posts on posts.guid = input."postGuid" and posts.author_id = people.id and posts.type = 'StatusMessage'
  where people.closed_at is null and not ${isRetractedSql('photo', 'input.guid', ['people.id'])}
  order by input.guid
  on conflict (guid) do update set
    text = excluded.text, remote_path = excluded.remote_path, name = excluded.name, height = excluded.height,
    width = excluded.width, post_id = coalesce(photos.post_id, excluded.post_id),
    post_guid = case when photos.post_id is null and excluded.post_id is null then excluded.post_guid end
  where photos.author_id = excluded.author_id
  returning id, guid, xmax = 0 as "isNew"`

const PHOTO_AUTHORS_SQL = `
  select photos.guid, people.address from photos join people on people.id = photos.author_id where photos.guid = any(?)`

const VISIBLE_PHOTOS_SQL = `
  insert into photo_visibilities (user_id, photo_id)
  select distinct "userId", "photoId" from json_to_recordset(?::json) as shown("userId" bigint, "photoId" bigint)
  order by 1, 2
  on conflict do nothing`
