import type { Knex } from 'knex'

/** The copies of a reported picture that a moderator can see. */
export const PICTURE_VARIANTS = ['blurred', 'clear'] as const
export type PictureVariant = (typeof PICTURE_VARIANTS)[number]

export type CasePictureState = 'wanted' | 'ready' | 'failed'

/** Where the file of a photo is. */
export interface PhotoSource {
  /** Null: on this pod. */
  readonly remotePath: string | null
  readonly name: string
}

export async function findPhotoSource(db: Knex, guid: string): Promise<PhotoSource | undefined> {
  return db('photos').where({ guid, pending: false }).first('remotePath', 'name')
}

/** False: it was requested before and has not failed. */
export async function requestCasePicture(transaction: Knex.Transaction, guid: string, at: Date): Promise<boolean> {
  const rows = await transaction('case_pictures')
    .insert({ photoGuid: guid, requestedAt: at })
    .onConflict('photoGuid')
    .merge({ state: 'wanted', requestedAt: at })
    .where('case_pictures.state', 'failed')
    .returning('photoGuid')
  return rows.length > 0
}

/** Undefined: no moderator has requested it in the last day. */
export async function findCasePictureState(db: Knex, guid: string): Promise<CasePictureState | undefined> {
  return (await db('case_pictures').where({ photoGuid: guid }).first('state'))?.state
}

export async function readCasePicture(db: Knex, guid: string, variant: PictureVariant): Promise<Buffer | undefined> {
  const row = await db('case_pictures').where({ photoGuid: guid, state: 'ready' }).first(variant)
  return row?.[variant] ?? undefined
}

/** Stores the copies of a reported picture. No copies: the picture could not be fetched or read. */
export async function saveCasePicture(
  db: Knex,
  guid: string,
  pictures: Readonly<Record<PictureVariant, Buffer>> | undefined,
): Promise<void> {
  await db('case_pictures')
    .where({ photoGuid: guid })
    .update(pictures === undefined ? { state: 'failed' } : { state: 'ready', ...pictures })
}
