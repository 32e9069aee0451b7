import { createWriteStream } from 'node:fs'
import { mkdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Knex } from 'knex'
import { Semaphore } from '../../concurrency/semaphore.js'
import type { Config } from '../../config/config.js'
import { messageOf } from '../../errors/thrown.js'
import { queryRows } from '../../persistence/database/database.js'
import type { ReportProgress } from '../../persistence/operations/progress.js'
import { imagesFolder } from '../../persistence/photos/picture-files.js'
import { openS3Client, type S3Client } from '../../persistence/s3/s3-client.js'
import { isUrl } from '../../protocol/is-url.js'
import type { Source } from '../source/source.js'
import { TakeOverError } from '../take-over-error.js'
import { isPictureName } from './pictures-folder.js'
import type { TakenFiles } from './take-files.js'

/** Pictures that are fetched at a time. */
const CONNECTIONS = 8
const PHOTO_BATCH_SIZE = 500
/** Milliseconds for one picture. */
const FETCH_MS = 60_000
/** Bytes of one picture; diaspora* accepts 4 MB. */
const MAX_BYTES = 64 * 1024 * 1024

const SIZES = ['', 'thumb_small_', 'thumb_medium_', 'thumb_large_', 'scaled_full_'] as const

/** Whether the pictures of the old pod are not in a folder, but in a bucket or at an address. */
export function isRemoteUploads(uploads: string): boolean {
  return /^(https?|s3):\/\//.test(uploads)
}

interface FetchOptions {
  readonly db: Knex
  readonly config: Pick<Config, 'uploadsDir' | 's3'>
  readonly signal: AbortSignal
  readonly report: ReportProgress
}

/**
 * Brings the pictures of an old pod that keeps them in a bucket into the folder of this one, new ones only. `s3://bucket/prefix` is read
 * with the key of the settings `S3_…`. Of an address, the pictures of the copied photos are fetched; a size that is not there is left
 * out.
 */
export async function fetchFiles(uploads: string, options: FetchOptions): Promise<TakenFiles> {
  const folder = imagesFolder(options.config.uploadsDir)
  await mkdir(folder, { recursive: true, mode: 0o755 })
  const remotePictures = openRemotePictures(uploads, options.config)
  const fileCounts = { files: 0, added: 0 }
  const connections = new Semaphore(CONNECTIONS)
  for await (const pictures of remotePictures.list(options.db)) {
    options.signal.throwIfAborted()
    await Promise.all(
      pictures.map(({ name, bytes }) =>
        connections.run(async () => {
          if (!isPictureName(name)) return
          const outcome = await fetchPicture({ path: join(folder, name), bytes }, () =>
            remotePictures.read(name, options.signal),
          )
          if (outcome !== 'missing') fileCounts.files += 1
          if (outcome === 'added') fileCounts.added += 1
          options.report({ step: 'pictures', done: fileCounts.files, total: undefined })
        }),
      ),
    )
  }
  if (fileCounts.files === 0 && (await queryRows(options.db, SELECT_NAMES_SQL, [0, 1])).length > 0) {
    throw new TakeOverError(nothingFoundAt(uploads))
  }
  return fileCounts
}

/** Photos of the old pod that the preflight looks for. */
const TESTED_PHOTOS = 20

/** Looks for the newest photos of the old pod. Returns why the take-over would find no picture; undefined: it finds some. */
export async function findFaultOfUploads(
  uploads: string,
  config: Pick<Config, 's3'>,
  source: Source,
): Promise<string | undefined> {
  const rows = await source.query<{ readonly name: string }>(SELECT_NEWEST_NAMES_SQL, [TESTED_PHOTOS])
  try {
    const remotePictures = openRemotePictures(uploads, config)
    for (const { name } of rows) {
      const picture = await remotePictures.read(name, AbortSignal.timeout(FETCH_MS))
      picture?.stream.on('error', () => undefined).destroy()
      if (picture !== undefined) return undefined
    }
  } catch (error) {
    return messageOf(error)
  }
  return rows.length === 0 ? undefined : nothingFoundAt(uploads)
}

function nothingFoundAt(uploads: string): string {
  return `No photo was found at ${uploads}: check the address, and whether this machine may read it. A server that refuses requests answers as if there were no pictures.`
}

interface ListedPicture {
  readonly name: string
  /** Undefined: it is not known before the picture is read. */
  readonly bytes: number | undefined
}

interface RemotePictures {
  list(db: Knex): AsyncIterable<readonly ListedPicture[]>
  /** Undefined: there is no such picture. */
  read(
    name: string,
    signal: AbortSignal,
  ): Promise<{ readonly stream: Readable; readonly bytes: number | undefined } | undefined>
}

async function fetchPicture(
  { path, bytes }: { readonly path: string; readonly bytes: number | undefined },
  read: () => ReturnType<RemotePictures['read']>,
): Promise<'added' | 'present' | 'missing'> {
  const present = await stat(path).catch(() => undefined)
  if (present !== undefined && (bytes === undefined || present.size === bytes)) return 'present'
  const photoContent = await read()
  if (photoContent === undefined) return 'missing'
  const part = `${path}.part`
  try {
    await pipeline(limitBytes(photoContent.stream), createWriteStream(part, { mode: 0o644 }))
    const { size } = await stat(part)
    if (photoContent.bytes !== undefined && size !== photoContent.bytes)
      throw new TakeOverError(`The picture ${path} arrived in part.`)
    await rename(part, path)
  } finally {
    await rm(part, { force: true })
  }
  return 'added'
}

async function* limitBytes(stream: Readable): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const chunk of stream) {
    bytes += chunk.length
    if (bytes > MAX_BYTES) throw new TakeOverError(`A picture has more than ${MAX_BYTES} bytes.`)
    yield chunk
  }
}

function openRemotePictures(uploads: string, config: Pick<Config, 's3'>): RemotePictures {
  return uploads.startsWith('s3://') ? openBucket(uploads, config) : openAddress(uploads)
}

function openBucket(uploads: string, { s3 }: Pick<Config, 's3'>): RemotePictures {
  if (s3 === undefined) {
    throw new TakeOverError('--uploads s3://… needs S3_BUCKET, S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY.')
  }
  const { hostname, pathname } = new URL(uploads)
  const path = pathname.replace(/^\/|\/$/g, '')
  const client: S3Client = openS3Client({ ...s3, bucket: hostname, prefix: path === '' ? '' : `${path}/` })
  return {
    async *list() {
      for (let after = 'images/'; ; ) {
        const objects = await client.list('images/', after)
        const last = objects.at(-1)
        if (last === undefined) return
        after = last.key
        yield objects.map(({ key, bytes }) => ({ name: key.slice('images/'.length), bytes }))
      }
    },
    async read(name) {
      const body = await client.get(`images/${name}`)
      if (body === undefined) return undefined
      return {
        stream: body.stream === null ? Readable.from([]) : Readable.fromWeb(body.stream as never),
        bytes: body.bytes,
      }
    },
  }
}

function openAddress(uploads: string): RemotePictures {
  if (!isUrl(uploads)) throw new TakeOverError(`--uploads ${uploads} is not an address.`)
  const base = uploads.replace(/\/+$/, '')
  return {
    async *list(db) {
      for (let after = 0; ; ) {
        const rows = await queryRows<{ readonly id: number; readonly name: string }>(db, SELECT_NAMES_SQL, [
          after,
          PHOTO_BATCH_SIZE,
        ])
        const last = rows.at(-1)
        if (last === undefined) return
        after = last.id
        yield rows.flatMap(({ name }) =>
          name === '' ? [] : SIZES.map((size) => ({ name: `${size}${name}`, bytes: undefined })),
        )
      }
    },
    async read(name, signal) {
      const url = `${base}/images/${encodeURIComponent(name)}`
      const answer = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(FETCH_MS)]) }).catch(
        (cause: unknown) => {
          throw new TakeOverError(`The picture ${url} cannot be fetched (${messageOf(cause)}).`, { cause })
        },
      )
      // A bucket that may not be listed answers 403 for a missing object.
      if (answer.status === 404 || answer.status === 403) return undefined
      if (!answer.ok || answer.body === null) {
        throw new TakeOverError(`The picture ${url} was answered with status ${answer.status}.`)
      }
      const length = answer.headers.get('content-encoding') === null ? answer.headers.get('content-length') : null
      return { stream: Readable.fromWeb(answer.body as never), bytes: length === null ? undefined : Number(length) }
    },
  }
}

const SELECT_NEWEST_NAMES_SQL = `
  select coalesce(nullif(remote_photo_name, ''), nullif(processed_image, ''), unprocessed_image) as name
  from photos join people on people.id = author_id and people.owner_id is not null
  where coalesce(nullif(remote_photo_name, ''), nullif(processed_image, ''), unprocessed_image, '') <> ''
  order by photos.id desc limit $1`

/** Photos of local people. */
const SELECT_NAMES_SQL = `
  select photos.id::float as id,
    coalesce(nullif(remote_photo_name, ''), nullif(processed_image, ''), unprocessed_image, '') as name
  from take_over.photos join take_over.people on people.id = author_id and people.owner_id is not null
  where photos.id > ? order by photos.id limit ?`
