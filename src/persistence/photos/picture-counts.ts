import type { Knex } from 'knex'

/** Numbers of a store of pictures. */
export interface PictureCount {
  /** The last name that was read. */
  readonly after: string
  readonly files: number
  readonly bytes: number
  /** Files without a photo. */
  readonly orphans: number
  readonly orphanBytes: number
  readonly countedAt: Date
}

type CountState = 'complete' | 'running'

export async function findPictureCount(db: Knex, state: CountState): Promise<PictureCount | undefined> {
  const row = await db('picture_counts').where({ state }).first()
  if (row === undefined) return undefined
  const { after, countedAt } = row
  const [files, bytes, orphans, orphanBytes] = [row.files, row.bytes, row.orphans, row.orphanBytes].map(Number)
  return {
    after,
    countedAt,
    files: files ?? 0,
    bytes: bytes ?? 0,
    orphans: orphans ?? 0,
    orphanBytes: orphanBytes ?? 0,
  }
}

/** Stores a count. A complete one ends the running one. */
export async function savePictureCount(db: Knex, state: CountState, count: PictureCount): Promise<void> {
  await db.transaction(async (transaction) => {
    if (state === 'complete') await transaction('picture_counts').where({ state: 'running' }).delete()
    await transaction('picture_counts')
      .insert({ state, ...count })
      .onConflict('state')
      .merge()
  })
}
