import { once } from 'node:events'
import { Readable } from 'node:stream'
import yazl from 'yazl'
import { archivedPhotos } from '../../persistence/archives/archived-photos.js'
import { User } from '../../persistence/models/user.js'
import type { Services } from '../../services/services.js'

/** Photos that are read at once. */
const PAGE = 500
const FILE_MODE = 0o100644

/**
 * A zip of the photos of an account as they are stored, one entry for each under its file name, uncompressed. Photos without a file
 * are left out.
 */
export function writePhotosZip(
  source: Pick<Services, 'db' | 'pictures'>,
  username: string,
  { reportProgress }: { reportProgress(section: string, done: number): void },
): Readable {
  const zip = new yazl.ZipFile()
  const output = zip.outputStream as Readable // the types of the library know less
  // The library reports a picture that cannot be read on the zip.
  zip.on('error', (error) => output.destroy(error instanceof Error ? error : undefined))
  addPhotos(source, { username, zip, output, reportProgress }).then(
    () => zip.end(),
    (error: Error) => output.destroy(error),
  )
  return output
}

interface PhotosZip {
  readonly username: string
  readonly zip: yazl.ZipFile
  readonly output: Readable
  reportProgress(section: string, done: number): void
}

async function addPhotos(
  { db, pictures }: Pick<Services, 'db' | 'pictures'>,
  { username, zip, output, reportProgress }: PhotosZip,
): Promise<void> {
  const user = await User.byUsername(db, username)
  if (user === undefined) throw new Error(`There is no account ${username}.`)
  let done = 0
  for await (const page of archivedPhotos(db, { authorId: user.personId, remotePath: null }, PAGE)) {
    for (const { name, createdAt } of page) {
      if ((await pictures.find(name)) === undefined) continue
      const picture = (await pictures.open(name)) ?? Readable.from([]) // deleted in the meantime
      zip.addReadStream(picture, name, { mtime: createdAt, mode: FILE_MODE, compress: false })
      await waitUntilRead(picture, output)
      done += 1
      reportProgress('photos', done)
    }
  }
}

/** Resolves when the zip has read the picture, so that one is open at a time, or when the zip is given up. */
async function waitUntilRead(picture: Readable, zip: Readable): Promise<void> {
  const giveUp = () => picture.destroy()
  zip.once('close', giveUp)
  await once(picture, 'close')
  zip.off('close', giveUp)
  if (zip.destroyed) throw new Error('The export has ended.')
}
