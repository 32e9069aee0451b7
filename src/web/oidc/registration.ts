import { Ajv } from 'ajv'
import type { FastifyPluginAsync } from 'fastify'
import { CLIENT_API_DIALECTS } from '../../config/config.js'
import {
  CLIENT_AUTH_METHODS,
  type ClientMetadata,
  type RegisteredClient,
  registerClient,
} from '../../domain/accounts/clients.js'
import { Refusal } from '../../domain/refusals.js'
import type { ClientApiDialect } from '../../persistence/models/client.js'
import { limitAddresses } from '../limits/address-limit.js'
import { MalformedBody } from '../server/request-faults.js'
import { InvalidRequest } from '../server/schemas/validation.js'
import { OIDC_PATHS } from './paths.js'

const text = { type: 'string', minLength: 1, maxLength: 2048 }
const texts = { type: 'array', items: text, maxItems: 50 }

interface Registration {
  readonly redirect_uris: readonly string[]
  readonly client_name?: string
  readonly sector_identifier_uri?: string
  readonly response_types?: readonly string[]
  readonly client_api_dialect?: ClientApiDialect
  readonly [name: string]: unknown
}

/** The metadata that a client may register; other members are ignored. */
const properties = {
  redirect_uris: { ...texts, minItems: 1 },
  client_name: { ...text, maxLength: 255 },
  application_type: { enum: ['web', 'native'], default: 'web' },
  response_types: texts,
  grant_types: texts,
  contacts: texts,
  logo_uri: text,
  client_uri: text,
  policy_uri: text,
  tos_uri: text,
  subject_type: { enum: ['public', 'pairwise'], default: 'public' },
  sector_identifier_uri: text,
  token_endpoint_auth_method: { enum: CLIENT_AUTH_METHODS, default: 'client_secret_post' },
  jwks: { type: 'object' },
  jwks_uri: text,
  client_api_dialect: { enum: CLIENT_API_DIALECTS },
}
const OWN_COLUMNS = ['redirect_uris', 'client_name', 'client_api_dialect']

const isRegistration = new Ajv({ useDefaults: true }).compile<Registration>({
  type: 'object',
  properties,
  required: ['redirect_uris'],
})

/** Dynamic client registration (RFC 7591), open to every client. */
export const registrationRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const { errorHandler } = app

  app.setErrorHandler((error, request, reply) => {
    if (error instanceof Refusal) return reply.code(400).send(oauthError(error.reason, error.message))
    if (error instanceof MalformedBody || error instanceof InvalidRequest) {
      return reply.code(400).send(oauthError('invalid_client_metadata', error.message))
    }
    return errorHandler(error as Error & { code: string; name: string }, request, reply) // its type is narrower than its accepted values
  })

  app.post(
    OIDC_PATHS.registration,
    { config: { public: true }, schema: { hide: true }, ...limitAddresses(services, 'clients') },
    async (request, reply) => {
      const { client, secret } = await registerClient(request.services, readRegistration(request.body))
      // RFC 7591 requires 201, and strict clients accept nothing else: docs/decisions/0006-client-registration-answers-201.md.
      return reply.code(201).send(presentClient(client, secret))
    },
  )
}

function readRegistration(body: unknown) {
  const fields = Object.fromEntries(
    Object.entries(body ?? {}).filter(([name, value]) => Object.hasOwn(properties, name) && value !== null),
  )
  if (!isRegistration(fields)) throw new Refusal('invalid_client_metadata', sentence())
  const { response_types: responseTypes = [] } = fields
  if (responseTypes.length > 0 && !responseTypes.includes('code')) {
    throw new Refusal('invalid_client_metadata', 'The only response type here is code.')
  }
  const metadata = Object.fromEntries(Object.entries(fields).filter(([name]) => !OWN_COLUMNS.includes(name)))
  return {
    name: fields.client_name,
    redirectUris: fields.redirect_uris,
    sectorIdentifierUri: fields.sector_identifier_uri,
    apiDialect: fields.client_api_dialect ?? null,
    metadata: metadata as unknown as ClientMetadata, // checked, and with its defaults
  }
}

function sentence(): string {
  const [error] = isRegistration.errors ?? []
  const field = error?.instancePath.slice(1).replaceAll('/', '.') ?? ''
  return `${field === '' ? 'The registration' : field} ${error?.message ?? 'cannot be read'}.`
}

function presentClient(client: RegisteredClient, secret: string | undefined): object {
  const defaults = Object.fromEntries(Object.keys(properties).map((name) => [name, null]))
  return {
    ...defaults,
    ...client.metadata,
    client_id: client.clientId,
    ...(secret !== undefined && { client_secret: secret }),
    client_secret_expires_at: 0,
    client_id_issued_at: Math.floor(client.createdAt.getTime() / 1_000),
    client_name: client.name,
    client_api_dialect: client.apiDialect,
    redirect_uris: client.redirectUris,
    response_types: ['code'],
    grant_types: ['authorization_code', 'refresh_token'],
    ppid: client.metadata.subject_type === 'pairwise',
    created_at: client.createdAt.toISOString(),
    updated_at: client.updatedAt.toISOString(),
  }
}

function oauthError(error: string, description: string): object {
  return { error, error_description: description }
}
