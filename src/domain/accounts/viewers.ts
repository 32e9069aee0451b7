import { LRUCache } from 'lru-cache'
import { groupCommit } from '../../concurrency/group-commit.js'
import { AccessToken, type TokenHolder } from '../../persistence/models/access-token.js'
import type { ClientApiDialect } from '../../persistence/models/client.js'
import type { Role } from '../../persistence/models/user.js'
import type { Visibility } from '../../persistence/posts/visibility.js'
import type { Services } from '../../services/services.js'
import { ALWAYS_GRANTED, isScope, type Scope } from './scopes.js'
import { hashToken } from './token-hash.js'

/** The user of a request, with the scopes of the token. */
export interface Viewer {
  readonly userId: number
  readonly personId: number
  /** Both ids are set when the request carries a token. */
  readonly authorizationId?: number
  readonly tokenId?: number
  readonly scopes: ReadonlySet<Scope>
  /** Undefined: a user without a role. */
  readonly role?: Role
  /** Undefined: the dialect of the setting applies. */
  readonly dialect?: ClientApiDialect
  /** Log position of the user's last write. A replica before this position would show outdated data. */
  readonly writtenUpTo?: number
}

/** Finds the viewer of an access token. */
export interface ViewerLookup {
  /** Undefined if the token is unknown, expired or revoked, or its account is closed or locked. */
  find(token: string): Promise<Viewer | undefined>
}

/** Groups simultaneous lookups into one statement. Nothing is cached, so that a revocation takes effect at once. */
export function openViewerLookup({ db }: Pick<Services, 'db'>): ViewerLookup {
  const ask = groupCommit(
    { maxConcurrent: Number.POSITIVE_INFINITY, maxItems: TOKEN_BATCH_SIZE },
    async (tokens: readonly string[]) => {
      const uniqueTokens = [...new Set(tokens)]
      const holders = await AccessToken.findHoldersByHashes(db, uniqueTokens.map(hashToken))
      return new Map(uniqueTokens.map((token, index) => [token, holders.get(index)]))
    },
  )
  return {
    async find(token) {
      const holder = (await ask([token])).get(token)
      return holder && viewerOfToken(holder)
    },
  }
}

const TOKEN_BATCH_SIZE = 100

/** Finds the viewer of a single token, as `ViewerLookup.find` does. */
export async function findViewer(services: Pick<Services, 'db'>, token: string): Promise<Viewer | undefined> {
  return openViewerLookup(services).find(token)
}

/** Current viewers by the ids of their tokens. Tokens that are no longer valid are left out. */
export async function findViewersByTokenIds(
  services: Pick<Services, 'db'>,
  tokenIds: readonly number[],
): Promise<ReadonlyMap<number, Viewer>> {
  const holders = await AccessToken.findHoldersByIds(services.db, tokenIds)
  return new Map(
    holders.flatMap((holder) => {
      const viewer = viewerOfToken(holder)
      return viewer === undefined ? [] : [[holder.tokenId, viewer]]
    }),
  )
}

function viewerOfToken(holder: TokenHolder): Viewer | undefined {
  if (holder.isExpired || holder.isLocked || holder.isClosed) return undefined
  const { userId, personId, authorizationId, tokenId, writtenUpTo } = holder
  return {
    userId,
    personId,
    authorizationId,
    tokenId,
    ...(writtenUpTo !== null && { writtenUpTo }),
    ...(holder.role !== null && { role: holder.role }),
    ...(holder.dialect !== null && { dialect: holder.dialect }),
    scopes: holder.isNarrowed ? new Set(holder.scopes.split(' ').filter(isScope)) : parseScopes(holder.scopes),
  }
}

/** Parsed scopes by their text, because few distinct texts occur in many requests. */
const parsedScopes = new LRUCache<string, ReadonlySet<Scope>>({ max: 1_000 })

function parseScopes(text: string): ReadonlySet<Scope> {
  const cachedScopes = parsedScopes.get(text)
  if (cachedScopes !== undefined) return cachedScopes
  const namedScopes = text.split(' ').filter(isScope)
  const impliedScopes = namedScopes.includes('administration') ? (['moderation'] as const) : []
  const scopes = new Set([...namedScopes, ...impliedScopes, ALWAYS_GRANTED])
  parsedScopes.set(text, scopes)
  return scopes
}

/** Without the scope `private:read`, a token shows public posts only. This applies to the viewer's own posts too. */
export function visibilityForViewer({ scopes }: Viewer): Visibility {
  return scopes.has('private:read') ? 'readable' : 'public'
}
