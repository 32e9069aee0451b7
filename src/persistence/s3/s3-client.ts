import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { AwsV4Signer } from 'aws4fetch'
import { messageOf } from '../../errors/thrown.js'
import { StorageUnavailable } from './storage-unavailable.js'

export interface S3Settings {
  /** Undefined: the endpoint of the region at Amazon. */
  readonly endpoint: string | undefined
  readonly region: string
  readonly bucket: string
  /** Prefix of all keys; empty or with a slash at the end. */
  readonly prefix: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Whether the bucket is part of the path instead of the host name. */
  readonly isPathStyle: boolean
}

interface S3Object {
  readonly bytes: number
  readonly etag: string
  /** Hexadecimal, as `put` has noted it. */
  readonly sha256: string | undefined
}

/** A body that is not in memory. */
export interface S3File {
  readonly bytes: number
  /** Hexadecimal. */
  readonly sha256: string
  /** Opens the content from its start; called for each try. */
  readonly open: () => Readable
}

interface S3Body extends S3Object {
  /** Bytes of the whole object; `bytes` are those of the answer. */
  readonly totalBytes: number
  readonly stream: ReadableStream<Uint8Array> | null
}

interface ListedObject {
  readonly key: string
  readonly bytes: number
  readonly modifiedAt: Date
}

/** A bucket of an S3-compatible store. Keys are without the prefix of the settings. A failure throws StorageUnavailable. */
export interface S3Client {
  put(key: string, body: Uint8Array | S3File, headers?: Readonly<Record<string, string>>): Promise<void>
  /** `range` is the header of HTTP. */
  get(key: string, range?: string): Promise<S3Body | undefined>
  head(key: string): Promise<S3Object | undefined>
  remove(key: string): Promise<void>
  /** Up to 1000 objects after a key, in order of their keys. */
  list(prefix: string, after?: string): Promise<readonly ListedObject[]>
  /** The names of the objects and folders in a folder, which ends with a slash; keys in its folders are not read. */
  listNames(folder: string): Promise<readonly string[]>
  /** An address that opens the object for a time without a key, with one method. */
  presign(key: string, seconds: number, method: 'GET' | 'HEAD'): Promise<string>
}

const TRIES = 3
const FIRST_PAUSE_MS = 100
/** Until the headers of the answer. */
const TIMEOUT_SECONDS = 10
/** A body has more time: it is sent before the store answers. */
const SLOWEST_BYTES_A_SECOND = 1024 * 1024

interface Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE'
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | S3File
}

export function openS3Client(settings: S3Settings): S3Client {
  const { region, accessKeyId, secretAccessKey, prefix } = settings
  const bucketUrl = bucketUrlOf(settings)
  const urlOf = (key: string) =>
    new URL(`${bucketUrl}/${`${prefix}${key}`.split('/').map(encodeURIComponent).join('/')}`)
  const sign = ({ method, url, headers }: Request, shouldSignQuery = false) =>
    new AwsV4Signer({
      method,
      url: url.href,
      headers: { ...headers },
      region,
      accessKeyId,
      secretAccessKey,
      service: 's3',
      signQuery: shouldSignQuery,
    }).sign()

  async function send(request: Request): Promise<Response> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const response = await exchange(request)
        const isTemporary = response.status === 429 || response.status >= 500
        if (!isTemporary) return await requireAccepted(request, response, settings.bucket)
        await response.body?.cancel()
        throw new StorageUnavailable(request.method, `it answered ${response.status}`)
      } catch (error) {
        const isFinal = error instanceof StorageUnavailable && error.isRefused
        if (isFinal || attempt === TRIES) throw toUnavailable(request, error)
        await pause(FIRST_PAUSE_MS * 2 ** attempt * (0.5 + Math.random()))
      }
    }
  }

  async function exchange(request: Request): Promise<Response> {
    const { method, body } = request
    const timeout = new AbortController()
    const bytes = body instanceof Uint8Array ? body.length : (body?.bytes ?? 0)
    const seconds = TIMEOUT_SECONDS + bytes / SLOWEST_BYTES_A_SECOND
    const timer = setTimeout(
      () => timeout.abort(new Error(`no answer within ${Math.ceil(seconds)} s`)),
      seconds * 1_000,
    )
    try {
      const { url, headers } = await sign(request)
      const bodyOptions = body && (body instanceof Uint8Array ? { body } : streamOf(body, headers))
      return await fetch(url, { method, headers, signal: timeout.signal, redirect: 'manual', ...bodyOptions })
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    async put(key, body, headers) {
      const sha256 = body instanceof Uint8Array ? createHash('sha256').update(body).digest('hex') : body.sha256
      const hashes = { 'x-amz-content-sha256': sha256, 'x-amz-meta-sha256': sha256 }
      const response = await send({ method: 'PUT', url: urlOf(key), headers: { ...headers, ...hashes }, body })
      await response.body?.cancel()
    },
    async get(key, range) {
      const response = await send({ method: 'GET', url: urlOf(key), headers: range === undefined ? {} : { range } })
      if (response.status === 404 || response.status === 416) return undefined
      const object = objectOf(response)
      const total = /\/(\d+)$/.exec(response.headers.get('content-range') ?? '')?.[1]
      return { ...object, totalBytes: total === undefined ? object.bytes : Number(total), stream: response.body }
    },
    async head(key) {
      const response = await send({ method: 'HEAD', url: urlOf(key) })
      return response.status === 404 ? undefined : objectOf(response)
    },
    async remove(key) {
      const response = await send({ method: 'DELETE', url: urlOf(key) })
      await response.body?.cancel()
    },
    ...openLists(send, { bucketUrl, bucket: settings.bucket, prefix }),
    async presign(key, seconds, method) {
      const url = urlOf(key)
      url.searchParams.set('X-Amz-Expires', String(seconds))
      return (await sign({ method, url }, true)).url.href
    },
  }
}

/** Lists the objects and the folders below a prefix. */
function openLists(
  send: (request: Request) => Promise<Response>,
  { bucketUrl, bucket, prefix }: Pick<S3Settings, 'bucket' | 'prefix'> & { readonly bucketUrl: string },
): Pick<S3Client, 'list' | 'listNames'> {
  async function sendList(listed: string, parameters: Readonly<Record<string, string>>): Promise<string> {
    const url = new URL(bucketUrl)
    url.searchParams.set('list-type', '2')
    url.searchParams.set('prefix', `${prefix}${listed}`)
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
    const response = await send({ method: 'GET', url })
    if (!response.ok) throw new StorageUnavailable('GET', `there is no bucket ${bucket}`, true)
    return response.text()
  }

  return {
    async list(listed, after) {
      const xml = await sendList(listed, after === undefined ? {} : { 'start-after': `${prefix}${after}` })
      return readList(xml).map((object) => ({ ...object, key: object.key.slice(prefix.length) }))
    },
    async listNames(folder) {
      const names: string[] = []
      for (let token: string | undefined; ; ) {
        const xml = await sendList(folder, {
          delimiter: '/',
          ...(token !== undefined && { 'continuation-token': token }),
        })
        const keys = [...readList(xml).map(({ key }) => key), ...readFolders(xml)]
        names.push(...keys.map((key) => key.slice(prefix.length + folder.length).replace(/\/$/, '')))
        token = readField(xml, 'NextContinuationToken')
        if (token === undefined) return names
      }
    },
  }
}

function bucketUrlOf({ endpoint, region, bucket, isPathStyle }: S3Settings): string {
  const url = new URL(endpoint ?? `https://s3.${region}.amazonaws.com`)
  if (!isPathStyle) url.hostname = `${bucket}.${url.hostname}`
  const base = url.href.replace(/\/+$/, '')
  return isPathStyle ? `${base}/${bucket}` : base
}

/** Returns the body with its length: S3 refuses chunked bodies. */
function streamOf({ bytes, open }: S3File, headers: Headers): RequestInit {
  headers.set('content-length', String(bytes))
  // `duplex` is in the standard, but not in the types of Node.
  return { body: open(), duplex: 'half' } as unknown as RequestInit
}

/** Returns successful responses and those for missing objects. A missing bucket has another code, but the answer to HEAD has no body. */
async function requireAccepted({ method }: Request, response: Response, bucket: string): Promise<Response> {
  if (response.ok) return response
  const code = /<Code>([A-Za-z]+)<\/Code>/.exec(await response.text())?.[1]
  if (code === 'NoSuchBucket') throw new StorageUnavailable(method, `there is no bucket ${bucket}`, true)
  if (method !== 'PUT' && (response.status === 404 || response.status === 416)) return response
  const reason = code === undefined ? `it answered ${response.status}` : `it answered ${response.status}, ${code}`
  throw new StorageUnavailable(method, reason, true)
}

function toUnavailable({ method }: Request, error: unknown): StorageUnavailable {
  if (error instanceof StorageUnavailable) return error
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return new StorageUnavailable(method, messageOf(cause), false, { cause: error })
}

function objectOf({ headers }: Response): S3Object {
  return {
    bytes: Number(headers.get('content-length') ?? 0),
    etag: headers.get('etag') ?? '""',
    sha256: headers.get('x-amz-meta-sha256') ?? undefined,
  }
}

/** Reads an answer of ListObjectsV2. */
function readList(xml: string): readonly ListedObject[] {
  return [...xml.matchAll(/<Contents>(.*?)<\/Contents>/gs)].map(([, content = '']) => {
    const field = (name: string) => readField(content, name) ?? ''
    return { key: field('Key'), bytes: Number(field('Size')), modifiedAt: new Date(field('LastModified')) }
  })
}

function readFolders(xml: string): readonly string[] {
  return [...xml.matchAll(/<CommonPrefixes>(.*?)<\/CommonPrefixes>/gs)].map(
    ([, content = '']) => readField(content, 'Prefix') ?? '',
  )
}

/** Keys of the pod need no decoding, except for the ampersand of a prefix. */
function readField(xml: string, name: string): string | undefined {
  return new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]?.replaceAll('&amp;', '&')
}
