import { isUrl } from '../../protocol/is-url.js'
import type { Source } from '../source/source.js'

/** Applications that this pod does not serve as the old one did. */
export interface LimitedClients {
  readonly reason: 'private_key_jwt' | 'implicit flow' | 'redirect URI'
  readonly count: number
  /** Ids. */
  readonly examples: readonly string[]
}

interface ClientRow {
  readonly id: number
  readonly method: string | null
  readonly responseTypes: string | null
  readonly redirectUris: string | null
}

const BATCH_SIZE = 1_000
const EXAMPLES = 20
const REFUSED_SCHEMES = ['javascript:', 'data:', 'file:']

export async function findLimitedClients(source: Source): Promise<readonly LimitedClients[]> {
  const found = new Map<LimitedClients['reason'], { count: number; examples: string[] }>()
  for (let after = 0; ; ) {
    const rows = await source.query<ClientRow>(SELECT_CLIENTS_SQL, [after, BATCH_SIZE])
    const last = rows.at(-1)
    if (last === undefined) return [...found].map(([reason, { count, examples }]) => ({ reason, count, examples }))
    after = last.id
    for (const row of rows) {
      for (const reason of limitsOf(row)) {
        const { count, examples } = found.get(reason) ?? { count: 0, examples: [] }
        found.set(reason, { count: count + 1, examples: [...examples, String(row.id)].slice(0, EXAMPLES) })
      }
    }
  }
}

function limitsOf({ method, responseTypes, redirectUris }: ClientRow): readonly LimitedClients['reason'][] {
  const uris = listOf(redirectUris)
  return [
    ...(method === 'private_key_jwt' ? (['private_key_jwt'] as const) : []),
    ...(listOf(responseTypes).some((type) => /token/.test(type)) ? (['implicit flow'] as const) : []),
    ...(uris.length === 0 || uris.some(isRefused) ? (['redirect URI'] as const) : []),
  ]
}

function isRefused(uri: string): boolean {
  return !isUrl(uri) || uri.includes('#') || REFUSED_SCHEMES.includes(new URL(uri).protocol)
}

/** A list of texts as JSON; empty if it is none. */
function listOf(json: string | null): readonly string[] {
  try {
    const list: unknown = JSON.parse(json ?? '')
    return Array.isArray(list) ? list.filter((item): item is string => typeof item === 'string') : []
  } catch {
    return []
  }
}

const SELECT_CLIENTS_SQL = `
  select id::float as id, token_endpoint_auth_method as method, response_types as "responseTypes", redirect_uris as "redirectUris"
  from o_auth_applications where id > $1 order by id limit $2`
