import type { KeyObject } from 'node:crypto'
import { signedText } from '../../protocol/signatures/relayable-signature.js'
import { readPublicKey, verifyRsaSha256 } from '../../protocol/signatures/rsa.js'
import type { Source } from '../source/source.js'
import { readYaml, type YamlValue } from '../staging/read-yaml.js'
import type { InvalidRowFinding, UncheckedTable } from './findings.js'

const BATCH_SIZE = 500
const EXAMPLES = 20
/** Milliseconds for all tables. */
const MAX_MS = 60_000
const KEYS_CACHED = 1_000

interface SignedRow {
  readonly id: number
  readonly signature: string
  readonly data: string | null
  readonly names: string
  readonly authorId: number
  readonly handle: string
  readonly publicKey: string
  readonly guid: string | null
  readonly parentGuid: string | null
  readonly createdAt: string | null
  readonly text?: string | null
  readonly parentType?: string
  readonly positive?: number | boolean | null
  readonly answerGuid?: string | null
}

interface Author {
  readonly handle: string
  readonly publicKey: string
}

/** Verifies the signatures of the source, also by the handles that authors have had before moving. Empty ones are not included. */
export async function findInvalidSignatures(
  source: Source,
): Promise<{ readonly findings: readonly InvalidRowFinding[]; readonly notChecked: readonly UncheckedTable[] }> {
  const until = performance.now() + MAX_MS
  const olds = await listOldAuthors(source)
  const verify = openVerifier()
  const findings: InvalidRowFinding[] = []
  const notChecked: UncheckedTable[] = []
  for (const [table, select] of Object.entries(SELECT_SIGNED_SQL)) {
    const invalid: string[] = []
    let after: number | undefined = -1
    while (after !== undefined && performance.now() < until) {
      const rows: readonly SignedRow[] = await source.query<SignedRow>(select, [after, BATCH_SIZE])
      for (const row of rows) if (!isValid(row, olds.get(row.authorId) ?? [], verify)) invalid.push(String(row.id))
      after = rows.length < BATCH_SIZE ? undefined : rows.at(-1)?.id
    }
    if (after !== undefined) notChecked.push({ code: 'D16', table })
    if (invalid.length > 0) {
      findings.push({ code: 'D16', table, count: invalid.length, examples: invalid.slice(0, EXAMPLES) })
    }
  }
  return { findings, notChecked }
}

type Verify = (text: string, publicKey: string, signature: string) => boolean

function openVerifier(): Verify {
  const keys = new Map<string, KeyObject | undefined>()
  return (text, publicKey, signature) => {
    if (keys.size > KEYS_CACHED) keys.clear()
    if (!keys.has(publicKey)) keys.set(publicKey, readPublicKey(publicKey))
    const key = keys.get(publicKey)
    return key !== undefined && verifyRsaSha256(Buffer.from(text), key, Buffer.from(signature, 'base64'))
  }
}

function isValid(row: SignedRow, olds: readonly Author[], verify: Verify): boolean {
  const additional = row.data === null || row.data.trim() === '' ? {} : readYaml(row.data)
  if (additional === undefined || additional === null || typeof additional !== 'object') return false
  const values = additional as Readonly<Record<string, YamlValue>>
  const names = row.names.split(/\s+/).filter((name) => name !== '' && !name.includes('signature'))
  return [row, ...olds].some(({ handle, publicKey }) => {
    const elements = names.map((name) => [name, signedValue(name, { ...row, handle }, values)] as const)
    return (
      verify(signedText(elements), publicKey, row.signature) ||
      verify(signedText(elements), row.publicKey, row.signature)
    )
  })
}

/** XML cannot carry these characters, so they were replaced before the text was kept. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are meant
const REPLACED_CHARACTERS = /[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g

function signedValue(name: string, row: SignedRow, additional: Readonly<Record<string, YamlValue>>): string {
  switch (name) {
    case 'author':
    case 'diaspora_handle':
      return row.handle
    case 'guid':
      return row.guid ?? ''
    case 'parent_guid':
    case 'target_guid':
      return row.parentGuid ?? ''
    case 'created_at':
      return row.createdAt === null ? '' : `${row.createdAt.slice(0, 19).replace(' ', 'T')}Z`
    default:
      return (ownValueOf(name, row) ?? textOf(additional[name])).replace(REPLACED_CHARACTERS, '\ufffd')
  }
}

/** Undefined: relayables of this kind have no such column. */
function ownValueOf(name: string, row: SignedRow): string | undefined {
  if (name === 'text' && row.text !== undefined) return row.text ?? ''
  if ((name === 'parent_type' || name === 'target_type') && row.parentType !== undefined) return row.parentType
  if (name === 'positive' && row.positive !== undefined) return String(row.positive === null || Boolean(row.positive))
  if (name === 'poll_answer_guid' && row.answerGuid !== undefined) return row.answerGuid ?? ''
  return undefined
}

function textOf(value: YamlValue | undefined): string {
  return typeof value === 'string' ? value : ''
}

/** The earlier handles and keys of people who have moved, by the id of the newest one. */
async function listOldAuthors(source: Source): Promise<ReadonlyMap<number, readonly Author[]>> {
  const hasMoves = (await source.listTables()).some(({ name }) => name === 'account_migrations')
  if (!hasMoves) return new Map()
  const moves = await source.query<Author & { readonly oldId: number; readonly newId: number }>(SELECT_MOVES_SQL)
  const movesTo = new Map<number, typeof moves>()
  for (const move of moves) movesTo.set(move.newId, [...(movesTo.get(move.newId) ?? []), move])
  const oldsOf = (id: number, depth: number): readonly Author[] =>
    depth === 0 ? [] : (movesTo.get(id) ?? []).flatMap((move) => [move, ...oldsOf(move.oldId, depth - 1)])
  return new Map([...movesTo.keys()].map((id) => [id, oldsOf(id, MOVES_IN_A_ROW)]))
}

const MOVES_IN_A_ROW = 10

const SELECT_MOVES_SQL = `
  select moves.old_person_id::float as "oldId", moves.new_person_id::float as "newId", people.diaspora_handle as handle,
    people.serialized_public_key as "publicKey"
  from account_migrations as moves join people on people.id = moves.old_person_id order by moves.id limit 100000`

const selectSigned = (table: string, key: string, columns: string, joins: string) => `
  select source.id::float as id, kept.author_signature as signature, kept.additional_data as data, orders."order" as names,
    people.id::float as "authorId", people.diaspora_handle as handle, people.serialized_public_key as "publicKey", source.guid as guid,
    source.created_at::text as "createdAt", ${columns}
  from ${key}_signatures as kept
  join signature_orders as orders on orders.id = kept.signature_order_id
  join ${table} as source on source.id = kept.${key}_id
  join people on people.id = source.author_id
  ${joins}
  where kept.${key}_id > $1 and kept.author_signature <> '' order by kept.${key}_id limit $2`

const SELECT_SIGNED_SQL: Readonly<Record<string, string>> = {
  comment_signatures: selectSigned(
    'comments',
    'comment',
    'source.text as text, posts.guid as "parentGuid"',
    `join posts on posts.id = source.commentable_id and source.commentable_type = 'Post'`,
  ),
  like_signatures: selectSigned(
    'likes',
    'like',
    'source.positive as positive, source.target_type as "parentType", coalesce(posts.guid, comments.guid) as "parentGuid"',
    `left join posts on posts.id = source.target_id and source.target_type = 'Post'
     left join comments on comments.id = source.target_id and source.target_type = 'Comment'`,
  ),
  poll_participation_signatures: selectSigned(
    'poll_participations',
    'poll_participation',
    'answers.guid as "answerGuid", polls.guid as "parentGuid"',
    `join polls on polls.id = source.poll_id
     join poll_answers as answers on answers.id = source.poll_answer_id`,
  ),
}
