import type { Knex } from 'knex'
import { queryRow, queryRows } from '../database/database.js'

/** A photo of an archive whose file this pod has stored. */
export interface PlacedPhoto {
  readonly oldName: string
  /** The name here. */
  readonly name: string
  /** Bytes of all sizes. */
  readonly bytes: number
}

/** Whether an account had a photo before this import: in a post, as a picture of its own, or by another import. */
export async function hadPhotoBefore(
  db: Knex,
  importId: number,
  photo: { readonly personId: number; readonly name: string; readonly oldName: string },
): Promise<boolean> {
  const { isKnown } = await queryRow<{ readonly isKnown: boolean }>(
    db,
    `select exists (select from photos where author_id = :personId and name = :name)
       or exists (
         select from imports as own join imports as other on other.user_id = own.user_id and other.id <> own.id
         join import_items as items on items.import_id = other.id
         where own.id = :importId and section = 'photos' and ref = :oldName and outcome in ('imported', 'already_there')
           and other.state <> 'cancelled'
       ) as "isKnown"`,
    { ...photo, importId },
  )
  return isKnown
}

/** Turns photos of a person, which point to the old pod, into local ones. Returns the guids of public ones. */
export async function placeImportedPhotos(
  transaction: Knex.Transaction,
  authorId: number,
  photos: readonly PlacedPhoto[],
): Promise<readonly string[]> {
  const rows = await queryRows<{ readonly guid: string; readonly public: boolean }>(
    transaction,
    `update photos set remote_path = null, name = input.name, bytes = input.bytes
     from json_to_recordset(?::json) as input("oldName" text, name text, bytes bigint)
     where photos.author_id = ? and photos.name = input."oldName" and photos.remote_path is not null
     returning photos.guid, photos.public`,
    [JSON.stringify(photos), authorId],
  )
  return rows.flatMap((row) => (row.public ? row.guid : []))
}

/** A photo that belongs to no post, such as the picture of the profile. */
export interface UnplacedPhoto extends Pick<PlacedPhoto, 'name' | 'bytes'> {
  readonly guid: string
  readonly createdAt: Date
  readonly text: string | null
  readonly width: number | null
  readonly height: number | null
}

/** Stores the photo, unless the person has one with this name. */
export async function insertUnplacedPhoto(
  transaction: Knex.Transaction,
  authorId: number,
  photo: UnplacedPhoto,
): Promise<void> {
  await transaction.raw(
    `insert into photos (guid, author_id, name, bytes, text, width, height, public, pending, created_at)
     select :guid, :authorId, :name, :bytes, :text, cast(:width as integer), cast(:height as integer), false, false, :createdAt
     where not exists (select from photos where author_id = :authorId and name = :name)
     on conflict do nothing`,
    { ...photo, authorId },
  )
}

/** Inserts photos with the values of the archive. They replace the values of the row that the profile has created. */
export async function storeUnplacedPhoto(
  transaction: Knex.Transaction,
  authorId: number,
  photo: UnplacedPhoto,
): Promise<void> {
  await insertUnplacedPhoto(transaction, authorId, photo)
  await transaction.raw(
    `update photos set guid = :guid, text = :text, width = :width, height = :height, created_at = :createdAt
     where author_id = :authorId and name = :name and post_id is null
       and not exists (select from photos as other where other.guid = :guid and other.id <> photos.id)`,
    { ...photo, authorId },
  )
}
