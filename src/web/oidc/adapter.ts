import type { Adapter, AdapterPayload, KoaContextWithOIDC } from 'oidc-provider'
import { findGrant, revokeGrant } from '../../domain/accounts/authorizations.js'
import { findClient } from '../../domain/accounts/clients.js'
import { hashToken } from '../../domain/accounts/token-hash.js'
import {
  deleteToken,
  findToken,
  insertToken,
  markCodeConsumed,
  type TokenKind,
} from '../../persistence/accounts/issued-tokens.js'
import {
  deleteRecord,
  findRecord,
  type RecordKind,
  trimInteractions,
  upsertRecord,
} from '../../persistence/accounts/oidc-records.js'
import type { Services } from '../../services/services.js'
import { OIDC_LIMITS } from './limits.js'
import type { Library } from './provider-internals/load-library.js'
import { recordSessionUse } from './sessions/session-use.js'

/** Set by the pod for authorization requests without a `redirect_uri`; only their codes are exchanged without one. */
export const REDIRECT_URI_OMITTED = 'redirect_uri_omitted'

const TOKENS: Readonly<Record<string, TokenKind>> = {
  AccessToken: 'access_token',
  RefreshToken: 'refresh_token',
  AuthorizationCode: 'authorization_code',
}

/** The storage of the authorization server. Of tokens and session ids, only hashes are stored. */
export function openAdapters(services: Services, library: Library): (model: string) => Adapter {
  return (model) => {
    const kind = TOKENS[model]
    if (kind !== undefined) return tokenAdapter(services, library, kind)
    if (model === 'Session') return sessionAdapter(services, library)
    if (model === 'Interaction') return recordAdapter(services, model)
    if (model === 'Client') return { ...unusedModel, find: (id) => findProviderClient(services, id) }
    if (model === 'Grant') return grantAdapter(services)
    return unusedModel
  }
}

/** Adapter of models that this pod does not use: nothing is found, and storing throws. */
const unusedModel: Adapter = {
  upsert: refuse,
  find: async () => undefined,
  findByUid: async () => undefined,
  findByUserCode: async () => undefined,
  consume: refuse,
  destroy: refuse,
  // Tokens are deleted with their authorization; a revoked access token is deleted alone.
  revokeByGrantId: async () => undefined,
}

function tokenAdapter(services: Services, { Provider, errors }: Library, kind: TokenKind): Adapter {
  const { InvalidGrant, InvalidRequest } = errors
  const current = () => Provider.ctx as KoaContextWithOIDC | undefined
  const isBoundToAuthorization = kind !== 'authorization_code'
  return {
    ...unusedModel,
    async upsert(id, { jti: _jti, grantId = '', ...payload }, expiresIn = 0) {
      const isKept = await insertToken(services.db, kind, {
        hash: hashToken(id),
        grantId,
        payload:
          kind === 'authorization_code' && current()?.oidc.params?.[REDIRECT_URI_OMITTED] === 'true'
            ? { ...payload, [REDIRECT_URI_OMITTED]: true }
            : payload,
        lifetime: expiresIn,
        scopes: kind === 'access_token' && isNarrowed(current()) ? String(payload.scope ?? '').split(' ') : undefined,
      })
      if (!isKept) throw new InvalidGrant('the authorization has been withdrawn')
    },
    async find(id) {
      const token = await findToken(services.db, kind, hashToken(id))
      if (token === undefined) return undefined
      if (kind === 'refresh_token' && token.isExpired) return undefined
      if (token.consumedAt !== null) {
        // A second use means that the code was stolen, so the grant ends. Only its own client can cause this.
        const isOfClient = current()?.oidc.client?.clientId === token.clientId
        if (isOfClient && !hasExpired(token.payload)) await revokeGrant(services, token.grantId)
        return undefined
      }
      if (kind === 'authorization_code' && token.payload[REDIRECT_URI_OMITTED] !== true) {
        const { body } = current()?.oidc ?? {}
        if (body?.['redirect_uri'] === undefined) throw new InvalidRequest("missing required parameter 'redirect_uri'")
      }
      return {
        ...token.payload,
        // Each use extends the lifetime of a refresh token.
        ...(kind === 'refresh_token' && { exp: Math.ceil(Number(token.expiresAt) / 1_000) }),
        jti: id,
        grantId: token.grantId,
        clientId: token.clientId,
        accountId: token.address,
        ...(isBoundToAuthorization && { scope: token.scopes.join(' ') }),
      }
    },
    async consume(id) {
      if (await markCodeConsumed(services.db, hashToken(id))) return
      // Two requests used the code at the same time. One may be an attacker's, so the grant ends.
      const token = await findToken(services.db, kind, hashToken(id))
      if (token) await revokeGrant(services, token.grantId)
      throw new InvalidGrant('the code has been used')
    },
    destroy: (id) => deleteToken(services.db, kind, hashToken(id)),
  }
}

/** A refresh request may name fewer scopes than were granted (RFC 6749, 6). */
function isNarrowed(ctx: KoaContextWithOIDC | undefined): boolean {
  const { params } = ctx?.oidc ?? {}
  return params?.['grant_type'] === 'refresh_token' && params['scope'] !== undefined
}

/** An expired code is harmless: a browser may open its URL again from the history. */
function hasExpired({ exp }: Record<string, unknown>): boolean {
  return Number(exp) * 1_000 <= Date.now()
}

function recordAdapter(services: Services, kind: RecordKind): Adapter {
  let upserts = 0
  return {
    ...unusedModel,
    async upsert(id, payload, lifetime = 0) {
      await upsertRecord(services.db, kind, {
        hash: hashToken(id),
        uid: payload.uid,
        payload: withoutIds(payload),
        lifetime,
      })
      upserts += 1
      if (kind !== 'Interaction' || upserts % OIDC_LIMITS.interactionsBetweenTrims !== 0) return
      const deletedRows = await trimInteractions(services.db, OIDC_LIMITS.interactions)
      if (deletedRows > 0)
        services.log.info({ rows: deletedRows }, 'authorization requests deleted: expired, or too many')
    },
    async find(id) {
      const payload = await findRecord(services.db, kind, { idHash: hashToken(id) })
      return payload && { ...payload, jti: id }
    },
    findByUid: (uid) => findRecord(services.db, kind, { uid }),
    destroy: (id) => deleteRecord(services.db, kind, hashToken(id)),
  }
}

/** Sessions that the library changes itself, at an authorization request, are noted for the list of sessions. */
function sessionAdapter(services: Services, { Provider }: Library): Adapter {
  const records = recordAdapter(services, 'Session')
  return {
    ...records,
    async upsert(id, payload, lifetime) {
      await records.upsert(id, payload, lifetime)
      const { ctx } = Provider
      if (ctx !== undefined) await recordSessionUse(services, payload, { ip: ctx.ip, headers: ctx.headers })
    },
  }
}

/** Removes session ids, which are secrets in cookies; an interaction contains the id of the session in which it began. */
function withoutIds({ jti: _jti, ...payload }: AdapterPayload): object {
  const { session } = payload
  if (typeof session !== 'object' || session === null) return payload
  const { cookie: _cookie, ...rest } = session as Record<string, unknown> // an object with unknown members
  return { ...payload, session: rest }
}

/** The authorization server reads and revokes authorizations; only the consent page creates them. */
function grantAdapter(services: Services): Adapter {
  return {
    ...unusedModel,
    async find(id) {
      const grant = await findGrant(services, id)
      if (grant === undefined) return undefined
      const { address: accountId, clientId, scopes } = grant
      return { jti: id, kind: 'Grant', accountId, clientId, openid: { scope: scopes.join(' ') } }
    },
    destroy: (id) => revokeGrant(services, id),
  }
}

async function findProviderClient(services: Services, id: string): Promise<AdapterPayload | undefined> {
  const client = await findClient(services, id)
  if (client === undefined) return undefined
  const { metadata } = client
  return {
    client_id: id,
    ...(client.name !== null && { client_name: client.name }),
    ...(client.secretHash && { client_secret: client.secretHash.toString('hex') }),
    redirect_uris: [...client.redirectUris],
    application_type: metadata.application_type,
    token_endpoint_auth_method: metadata.token_endpoint_auth_method,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
  }
}

async function refuse(): Promise<never> {
  throw new Error('The authorization server tried to store a model that this pod does not use.')
}
