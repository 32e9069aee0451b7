import { opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { InvalidRowFinding } from '../preflight/findings.js'
import type { Source } from '../source/source.js'
import { isPictureName, picturesFolder } from './pictures-folder.js'

export interface FileCount {
  /** Files in the folder, in all sizes. */
  readonly files: number
  /** Photos of local people. */
  readonly photos: number
  /** Photos without their original file. */
  readonly missing: number
}

interface CountedFiles {
  readonly files: FileCount
  /** Photos without file, and files without photo. */
  readonly findings: readonly InvalidRowFinding[]
}

const BATCH_SIZE = 1_000
const EXAMPLES = 20

/** Counts the files of the old pod, the photos of its users that have none, and the pictures that belong to no photo. */
export async function countFiles(source: Source, uploads: string, host: string): Promise<CountedFiles> {
  const folder = picturesFolder(uploads)
  const { files, names } = await listNames(folder)
  const missing: string[] = []
  const counts = { photos: 0, missing: 0 }
  for (let after = 0; ; ) {
    const rows = await source.query<{ id: number; name: string }>(SELECT_LOCAL_PHOTOS_SQL, [after, BATCH_SIZE, host])
    const last = rows.at(-1)
    if (last === undefined) break
    after = last.id
    counts.photos += rows.length
    const fileStats = await Promise.all(rows.map(({ name }) => stat(join(folder, name)).catch(() => undefined)))
    for (const [index, { id, name }] of rows.entries()) {
      names.delete(name)
      if (fileStats[index]?.isFile() === true) continue
      counts.missing += 1
      if (missing.length < EXAMPLES) missing.push(String(id))
    }
  }
  const unused = [...names].sort().slice(0, EXAMPLES)
  const findings = [
    { code: 'D17', table: 'photos without file', count: counts.missing, examples: missing },
    { code: 'D17', table: 'files without photo', count: names.size, examples: unused },
  ]
  return { files: { files, ...counts }, findings: findings.filter(({ count }) => count > 0) }
}

/** The names of the photos whose files are in the folder: each name once, whatever sizes there are. */
async function listNames(folder: string): Promise<{ readonly files: number; readonly names: Set<string> }> {
  const names = new Set<string>()
  let files = 0
  for await (const entry of await opendir(folder)) {
    if (entry.isDirectory()) continue
    files += 1
    const { name } = entry
    if (isPictureName(name)) names.add(name.replace(/^(?:thumb_(?:small|medium|large)|scaled_full)_/, ''))
  }
  return { files, names }
}

const SELECT_LOCAL_PHOTOS_SQL = `
  select photos.id::float as id,
    coalesce(nullif(remote_photo_name, ''), nullif(processed_image, ''), unprocessed_image, '') as name
  from photos join people on people.id = author_id and people.owner_id is not null
  where photos.id > $1 and (remote_photo_path is null or split_part(remote_photo_path, '/', 3) in ($3, 'www.' || $3))
  order by photos.id limit $2`
