import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { Client, type ClientApiDialect, type ClientRow } from '../../persistence/models/client.js'
import { isUrl } from '../../protocol/is-url.js'
import type { Services } from '../../services/services.js'
import { Refusal } from '../refusals.js'
import { CLIENT_LIMITS } from './limits.js'

export const CLIENT_AUTH_METHODS = ['client_secret_basic', 'client_secret_post', 'none'] as const

type ClientAuthMethod = (typeof CLIENT_AUTH_METHODS)[number]

/** Metadata with the field names of the registration request, so that the response can repeat it unchanged. */
export interface ClientMetadata {
  readonly application_type: 'web' | 'native'
  readonly token_endpoint_auth_method: ClientAuthMethod
  readonly subject_type: 'public' | 'pairwise'
  readonly [name: string]: unknown
}

export interface ClientRegistration {
  readonly name: string | undefined
  readonly redirectUris: readonly string[]
  readonly sectorIdentifierUri: string | undefined
  readonly metadata: ClientMetadata
  readonly apiDialect: ClientApiDialect | null
}

export interface RegisteredClient {
  readonly clientId: string
  readonly name: string | null
  readonly redirectUris: readonly string[]
  readonly secretHash: Buffer | null
  /** Null: the dialect of the setting applies. */
  readonly apiDialect: ClientApiDialect | null
  readonly metadata: ClientMetadata
  readonly createdAt: Date
  readonly updatedAt: Date
}

export interface ListedClient extends RegisteredClient {
  /** Number of users who have authorized the client. */
  readonly users: number
}

/** Schemes that a browser would execute or open itself instead of passing the code to an application. */
const REFUSED_SCHEMES = new Set([
  'javascript:',
  'vbscript:',
  'data:',
  'blob:',
  'file:',
  'about:',
  'filesystem:',
  'ws:',
  'wss:',
])
const CLIENT_ID = /^[0-9a-f]{32}$/
/** Printable ASCII without spaces. URL parsers drop spaces and line breaks, so the compared text would differ from the parsed URL. */
const PRINTABLE_ASCII = /^[!-~]+$/

/** Creates a client at each registration, because two devices of one model send equal metadata. The secret is returned once. */
export async function registerClient(
  services: Pick<Services, 'db' | 'remotePods'>,
  { name, redirectUris, sectorIdentifierUri, metadata, apiDialect }: ClientRegistration,
): Promise<{ readonly client: RegisteredClient; readonly secret: string | undefined }> {
  for (const uri of redirectUris) requireRedirectUri(uri)
  await requireSingleSector(services, redirectUris, sectorIdentifierUri, metadata)
  const secret = metadata.token_endpoint_auth_method === 'none' ? undefined : randomBytes(32).toString('hex')
  const client = await Client.query(services.db)
    .insert({
      clientId: randomBytes(16).toString('hex'),
      secretHash: secret === undefined ? null : hashSecret(secret),
      name: name ?? null,
      redirectUris: [...redirectUris],
      metadata: { ...metadata },
      apiDialect,
    })
    .returning('*')
  return { client: registeredClient(client), secret }
}

export async function findClient(
  services: Pick<Services, 'db'>,
  clientId: string,
): Promise<RegisteredClient | undefined> {
  if (!CLIENT_ID.test(clientId)) return undefined
  const client = await Client.query(services.db).findOne({ clientId })
  return client && registeredClient(client)
}

/** Newest first. */
export async function listClients(services: Pick<Services, 'db'>, limit: number): Promise<readonly ListedClient[]> {
  const clients = await Client.listNewest(services.db, limit)
  return clients.map(({ users, ...client }) => ({ ...registeredClient(client), users }))
}

/** Takes effect with the next request of the client. Null: the dialect of the setting applies. */
export async function setClientDialect(
  services: Pick<Services, 'db' | 'now'>,
  clientId: string,
  apiDialect: ClientApiDialect | null,
): Promise<RegisteredClient> {
  const [client] = await Client.query(services.db)
    .patch({ apiDialect, updatedAt: services.now() })
    .where({ clientId })
    .returning('*')
  if (client === undefined) throw new Refusal('client_unknown', `There is no client with the id ${clientId}.`)
  return registeredClient(client)
}

/** Compares in constant time. */
export function isClientSecret(secretHash: string, secret: string): boolean {
  return timingSafeEqual(Buffer.from(secretHash, 'hex'), hashSecret(secret))
}

/** The sector of pairwise subjects: the host, or scheme and host for the private scheme of an application. */
export function determineSector({
  metadata,
  redirectUris,
}: Pick<RegisteredClient, 'metadata' | 'redirectUris'>): string {
  const document = metadata['sector_identifier_uri']
  const { protocol, host } = new URL(typeof document === 'string' ? document : (redirectUris[0] ?? ''))
  return protocol === 'https:' || protocol === 'http:' ? host : `${protocol}//${host}`
}

function requireRedirectUri(uri: string): void {
  if (!PRINTABLE_ASCII.test(uri) || !isUrl(uri)) {
    throw invalidRedirectUri('Every redirect URI must be a complete address.')
  }
  const { protocol, username, password } = new URL(uri)
  if (uri.includes('#')) throw invalidRedirectUri('A redirect URI must not have a fragment.')
  if (REFUSED_SCHEMES.has(protocol)) throw invalidRedirectUri(`A redirect URI cannot begin with ${protocol}`)
  if (username !== '' || password !== '') throw invalidRedirectUri('A redirect URI must not name a user.')
}

async function requireSingleSector(
  services: Pick<Services, 'remotePods'>,
  redirectUris: readonly string[],
  sectorIdentifierUri: string | undefined,
  { subject_type }: ClientMetadata,
): Promise<void> {
  if (sectorIdentifierUri !== undefined) {
    const listedUris = await readSectorDocument(services, sectorIdentifierUri)
    if (redirectUris.every((uri) => listedUris.includes(uri))) return
    throw invalidClientMetadata('The document at sector_identifier_uri does not name every redirect URI.')
  }
  const sectors = new Set(
    redirectUris.map((uri) => determineSector({ metadata: PAIRWISE_METADATA, redirectUris: [uri] })),
  )
  if (subject_type === 'pairwise' && sectors.size > 1) {
    throw invalidClientMetadata('Redirect URIs of several hosts need a sector_identifier_uri.')
  }
}

const PAIRWISE_METADATA: ClientMetadata = {
  application_type: 'web',
  token_endpoint_auth_method: 'none',
  subject_type: 'pairwise',
}

/** Fetches the sector document with the guarded HTTP client of federation, which refuses private addresses. */
async function readSectorDocument(
  { remotePods }: Pick<Services, 'remotePods'>,
  uri: string,
): Promise<readonly unknown[]> {
  if (!isUrl(uri) || new URL(uri).protocol !== 'https:') {
    throw invalidClientMetadata('sector_identifier_uri must be an https address.')
  }
  try {
    const { status, body } = await remotePods.get(uri, { maxBytes: CLIENT_LIMITS.sectorDocumentBytes, redirects: 0 })
    const list: unknown = status === 200 ? JSON.parse(body.toString('utf8')) : undefined
    if (Array.isArray(list)) return list
  } catch {
    // The cause is not reported: it would let a client probe hosts through this pod.
  }
  throw invalidClientMetadata('The document at sector_identifier_uri cannot be read.')
}

function registeredClient({ metadata, ...client }: ClientRow): RegisteredClient {
  return { ...client, metadata: metadata as unknown as ClientMetadata } // only registerClient writes it
}

function hashSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

function invalidRedirectUri(message: string): Refusal {
  return new Refusal('invalid_redirect_uri', message)
}

function invalidClientMetadata(message: string): Refusal {
  return new Refusal('invalid_client_metadata', message)
}
