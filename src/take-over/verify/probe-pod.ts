import type pg from 'pg'
import { openCryptoPool } from '../../../workers/threads/crypto-pool.js'
import type { Config } from '../../config/config.js'
import { openLog, STDERR } from '../../logging/log.js'
import { readMagicEnvelope, signMagicEnvelope, verifyMagicEnvelope } from '../../protocol/envelopes/magic-envelope.js'
import { signRelayable } from '../../protocol/signatures/relayable-signature.js'
import { readPublicKey } from '../../protocol/signatures/rsa.js'
import { cleanText, readXml } from '../../protocol/xml/xml.js'
import { openServices } from '../../services/open-services.js'
import type { PodCrypto } from '../../services/pod-crypto.js'
import { buildApp } from '../../web/server/app.js'
import { HTTP_LIMITS } from '../../web/server/limits.js'
import { expectedGuid } from './comparisons.js'
import type { Difference } from './verify-target.js'

const POSTS = 200
const COMMENTS = 50
const PEOPLE = 20
const PHOTOS = 50
const SIZES = ['', 'thumb_small_', 'thumb_medium_', 'thumb_large_', 'scaled_full_']
const EXAMPLES = 20
/** A busy machine may take longer for a signature than a request waits. */
const ATTEMPTS = 5

type Request = (path: string, method?: 'GET' | 'HEAD') => Promise<{ readonly status: number; readonly body: string }>

export interface ProbeReport {
  readonly posts: number
  readonly comments: number
  readonly people: number
  readonly pictures: number
}

/**
 * Requests public content from this pod as other pods will, without a network: posts and comments must be signed with the keys of the
 * source and have its texts, people their guids and keys, photos all sizes.
 */
export async function probeTakenOverPod(
  session: pg.Client,
  config: Config,
): Promise<{ readonly report: ProbeReport; readonly differences: readonly Difference[] }> {
  return withApp(config, async (request) => {
    const checks: readonly [name: keyof ProbeReport, select: string, count: number, check: CheckRow][] = [
      ['posts', SELECT_POSTS_SQL, POSTS, checkPost],
      ['comments', SELECT_COMMENTS_SQL, COMMENTS, checkComment],
      ['people', SELECT_PEOPLE_SQL, PEOPLE, checkPerson],
      ['pictures', SELECT_PHOTOS_SQL, PHOTOS, checkPhoto],
    ]
    const report = { posts: 0, comments: 0, people: 0, pictures: 0 }
    const differences: Difference[] = []
    for (const [name, select, count, check] of checks) {
      const { rows } = await session.query<ProbedRow>(select, [count])
      const differentIds: string[] = []
      for (const row of rows) if (!(await check(request, row))) differentIds.push(row.id)
      report[name] = rows.length
      if (differentIds.length > 0) {
        const detail = `${differentIds.length} of ${rows.length} answers differ`
        differences.push({ check: `requests for ${name}`, detail, examples: differentIds.slice(0, EXAMPLES) })
      }
    }
    return { report, differences }
  })
}

/** A row with the columns that its check needs. */
interface ProbedRow {
  readonly id: string
  readonly guid: string
  readonly handle: string
  readonly publicKey: string
  readonly text: string
  readonly createdAt: string
  readonly parentGuid: string
  readonly author: string
  readonly signature: string | null
  readonly name: string
}

type CheckRow = (request: Request, row: ProbedRow) => Promise<boolean>

const checkPost: CheckRow = async (request, row) => {
  const elements = await fetchSigned(request, `/fetch/post/${encodeURIComponent(row.guid)}`, row)
  if (elements === undefined) return false
  const isReshare = elements.get('type') === 'reshare'
  return (
    elements.get('author') === row.handle &&
    elements.get('guid') === row.guid &&
    elements.get('created_at') === row.createdAt &&
    (isReshare || elements.get('text') === cleanText(row.text))
  )
}

const checkComment: CheckRow = async (request, row) => {
  const elements = await fetchSigned(request, `/fetch/comment/${encodeURIComponent(row.guid)}`, row)
  if (elements === undefined) return false
  return (
    elements.get('guid') === row.guid &&
    (elements.get('parent_guid') ?? elements.get('target_guid')) === row.parentGuid &&
    elements.get('text') === cleanText(row.text) &&
    (row.signature === null || elements.get('author_signature') === row.signature)
  )
}

const checkPerson: CheckRow = async (request, { handle, guid, publicKey }) => {
  const finger = await request(`/.well-known/webfinger?resource=${encodeURIComponent(`acct:${handle}`)}`)
  const card = await request(`/hcard/users/${encodeURIComponent(guid)}`)
  return (
    finger.status === 200 &&
    finger.body.includes(`acct:${handle}`) &&
    finger.body.includes(guid) &&
    card.status === 200 &&
    card.body.includes(guid) &&
    card.body.includes(publicKey.trim())
  )
}

/** A photo without its original was without it before. `HEAD` enqueues nothing. */
const checkPhoto: CheckRow = async (request, { name }) => {
  const path = (prefix: string) => `/uploads/images/${prefix}${encodeURIComponent(name)}`
  if ((await request(path(''), 'HEAD')).status !== 200) return true
  for (const prefix of SIZES) if ((await request(path(prefix), 'HEAD')).status !== 200) return false
  return true
}

/** The elements of an entity whose envelope the owner of the key has signed; undefined: there is no such answer. */
async function fetchSigned(
  request: Request,
  path: string,
  { publicKey, author }: ProbedRow,
): Promise<ReadonlyMap<string, string> | undefined> {
  const { status, body } = await request(path)
  const key = readPublicKey(publicKey)
  if (status !== 200 || key === undefined) return undefined
  try {
    const envelope = readMagicEnvelope(body)
    verifyMagicEnvelope(envelope, key)
    if (envelope.sender !== author) return undefined
    const payload = readXml(envelope.payload, 'InvalidEnvelope')
    return new Map([['type', payload.name], ...payload.children.map(({ name, text }) => [name, text] as const)])
  } catch {
    return undefined
  }
}

/** The web application without a port. The load of this machine and the limits of an address do not count. */
async function withApp<Result>(config: Config, run: (request: Request) => Promise<Result>): Promise<Result> {
  const threads = openCryptoPool(1)
  // One request follows the other: a thread would not save time, but take memory.
  const crypto: PodCrypto = {
    ...threads,
    signRelayable: async (relayable, key) => signRelayable(relayable, key),
    signEnvelope: async (payload, sender, key) => signMagicEnvelope(payload, sender, key),
  }
  try {
    const log = openLog({ ...config, logLevel: 'error' }, 'command', STDERR)
    const withoutLimits = { ...config, addressLimits: { ...config.addressLimits, pages: 0 } }
    const services = await openServices(withoutLimits, 'command', { crypto, log })
    try {
      const app = await buildApp(services, { limits: { ...HTTP_LIMITS, eventLoopDelayMs: Number.POSITIVE_INFINITY } })
      try {
        return await run(async (url, method = 'GET') => {
          for (let attempt = 1; ; attempt += 1) {
            const { statusCode: status, body } = await app.inject({ method, url })
            if (status < 500 || attempt === ATTEMPTS) return { status, body }
          }
        })
      } finally {
        await app.close()
      }
    } finally {
      await services.close()
    }
  } finally {
    await threads.close()
  }
}

const UTC_SECONDS_SQL = `'YYYY-MM-DD"T"HH24:MI:SS"Z"'`

const isKept = (table: string, alias: string) =>
  `not exists (select from take_over.skipped_rows as skipped where skipped.source = '${table}' and skipped.id = ${alias}.id)`

/** People of accounts that are neither closed nor locked: the key of a locked one may not fit. */
const OPEN_OWNER_SQL = `people.closed_account is not true and exists (
  select from users where users.id = people.owner_id and users.closed_at is null and users.locked_at is null
)`

const SELECT_POSTS_SQL = `
  select posts.id::text as id, ${expectedGuid('posts')} as guid, lower(people.diaspora_handle) as handle,
    lower(people.diaspora_handle) as author, people.serialized_public_key as "publicKey",
    coalesce(posts.text, '') as text, to_char(posts.created_at, ${UTC_SECONDS_SQL}) as "createdAt"
  from take_over.posts join take_over.people on people.id = posts.author_id
  where (posts.public or posts.type = 'Reshare') and posts.created_at is not null and ${OPEN_OWNER_SQL} and ${isKept('posts', 'posts')}
  order by md5(posts.id::text) limit $1`

/** Comments that this pod can send: of local people, or with a signature. */
const SELECT_COMMENTS_SQL = `
  select comments.id::text as id, ${expectedGuid('comments')} as guid, lower(people.diaspora_handle) as author,
    people.serialized_public_key as "publicKey", comments.text, ${expectedGuid('posts')} as "parentGuid",
    regexp_replace(signed.author_signature, '\\s', '', 'g') as signature
  from take_over.comments
  join take_over.posts on posts.id = comments.commentable_id and comments.commentable_type = 'Post'
  join take_over.people on people.id = posts.author_id
  left join take_over.comment_signatures as signed on signed.comment_id = comments.id and signed.author_signature <> ''
  where (posts.public or posts.type = 'Reshare') and ${OPEN_OWNER_SQL}
    and ${isKept('comments', 'comments')} and ${isKept('posts', 'posts')}
    and (signed.comment_id is not null or exists (
      select from take_over.people as writer join users on users.id = writer.owner_id
      where writer.id = comments.author_id and users.closed_at is null and users.locked_at is null
    ))
  order by md5(comments.id::text) limit $1`

const SELECT_PEOPLE_SQL = `
  select people.id::text as id, ${expectedGuid('people')} as guid, lower(people.diaspora_handle) as handle,
    people.serialized_public_key as "publicKey"
  from take_over.people where ${OPEN_OWNER_SQL} and ${isKept('people', 'people')}
  order by md5(people.id::text) limit $1`

const SELECT_PHOTOS_SQL = `
  select photos.id::text as id, photos.name from photos
  join people on people.id = photos.author_id and people.pod_id is null
  where photos.remote_path is null and photos.name <> '' order by md5(photos.id::text) limit $1`
