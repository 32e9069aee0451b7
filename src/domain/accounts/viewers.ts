import { LRUCache } from 'lru-cache'
import { groupCommit } from '../../jobs/group-commit.js'
import { AccessToken, type TokenHolder } from '../../persistence/models/access-token.js'
import type { ClientApiDialect } from '../../persistence/models/client.js'
import type { Visibility } from '../../persistence/posts/visibility.js'
import type { Pod } from '../../pod/pod.js'
import { ALWAYS_GRANTED, isScope, type Scope } from './scopes.js'
import { hashToken } from './token-hash.js'

/** The user in whose name something is asked, and what the token lets them do. */
export interface Viewer {
  readonly userId: number
  readonly personId: number
  /** Who came with a token has both. */
  readonly authorizationId?: number
  readonly tokenId?: number
  readonly scopes: ReadonlySet<Scope>
  /** Not set: that of the setting. */
  readonly dialect?: ClientApiDialect
  /** A replica that has not come as far in the log of the database would show them a past. */
  readonly writtenUpTo?: number
}

/** Finds out who asks. */
export interface ViewerLookup {
  /** Undefined: the token is unknown, expired or revoked, or its account is closed or locked. */
  find(token: string): Promise<Viewer | undefined>
}

/** Tokens that come at the same moment are looked up together; nothing is remembered of them. */
export function openViewerLookup({ db }: Pick<Pod, 'db'>): ViewerLookup {
  const ask = groupCommit(
    { atOnce: Number.POSITIVE_INFINITY, items: TOKENS_AT_ONCE, bytes: Number.POSITIVE_INFINITY, sizeOf: () => 0 },
    async (tokens: readonly string[]) => {
      const each = [...new Set(tokens)]
      const holders = await AccessToken.findHoldersByHashes(db, each.map(hashToken))
      return new Map(each.map((token, place) => [token, holders.get(place)]))
    },
  )
  return {
    async find(token) {
      const holder = (await ask([token])).get(token)
      return holder && viewerOfToken(holder)
    },
  }
}

const TOKENS_AT_ONCE = 100

/** Undefined as above. */
export async function findViewer(pod: Pick<Pod, 'db'>, token: string): Promise<Viewer | undefined> {
  return openViewerLookup(pod).find(token)
}

/** The same viewers as they are now, by the ids of their tokens; whose token counts no longer is not among them. */
export async function findViewersByTokenIds(
  pod: Pick<Pod, 'db'>,
  tokenIds: readonly number[],
): Promise<ReadonlyMap<number, Viewer>> {
  const holders = await AccessToken.findHoldersByIds(pod.db, tokenIds)
  return new Map(
    holders.flatMap((holder) => {
      const viewer = viewerOfToken(holder)
      return viewer === undefined ? [] : [[holder.tokenId, viewer]]
    }),
  )
}

function viewerOfToken(holder: TokenHolder): Viewer | undefined {
  if (holder.expired || holder.locked || holder.closed) return undefined
  const { userId, personId, authorizationId, tokenId, writtenUpTo } = holder
  return {
    userId,
    personId,
    authorizationId,
    tokenId,
    ...(writtenUpTo !== null && { writtenUpTo }),
    ...(holder.dialect !== null && { dialect: holder.dialect }),
    scopes: holder.narrowed ? new Set(holder.scopes.split(' ').filter(isScope)) : parseScopes(holder.scopes),
  }
}

/** By the text they are read from: there are far fewer kinds of clients than requests. */
const parsedScopes = new LRUCache<string, ReadonlySet<Scope>>({ max: 1_000 })

function parseScopes(text: string): ReadonlySet<Scope> {
  const known = parsedScopes.get(text)
  if (known !== undefined) return known
  const scopes = new Set([...text.split(' ').filter(isScope), ALWAYS_GRANTED])
  parsedScopes.set(text, scopes)
  return scopes
}

/** A token that may show nothing private does not show the viewer's own either. */
export function visibilityForViewer({ scopes }: Viewer): Visibility {
  return scopes.has('private:read') ? 'readable' : 'public'
}
