import { Argument, type Command, Option } from 'commander'
import { CLIENT_API_DIALECTS } from '../../src/config/config.js'
import {
  type ListedClient,
  listClients,
  type RegisteredClient,
  setClientDialect,
} from '../../src/domain/accounts/clients.js'
import { ALL_SCOPES, readScopes } from '../../src/domain/accounts/scopes.js'
import { mintToken, revokeToken } from '../../src/domain/accounts/tokens.js'
import type { ClientApiDialect } from '../../src/persistence/models/client.js'
import { CommandError } from '../command-error.js'
import { readCount, readLifetime } from '../options.js'
import { type OutputOptions, print, printable, table } from '../output.js'
import { withPod } from '../with-pod.js'

const DEFAULT_LIFE_SECONDS = 365 * 86_400
const MAX_LIFETIME_SECONDS = 10 * 365 * 86_400
const CLIENTS_SHOWN = 100
const DEFAULT_DIALECT = 'default'

interface TokenOptions extends OutputOptions {
  readonly expiresIn: number
  readonly dialect?: ClientApiDialect
}

export function clientCommands(program: Command): void {
  const token = program
    .command('token <username>')
    .description('Creates an access token for a user without a browser. Each token is a separate authorization.')
    .enablePositionalOptions()
    .option('--scopes <scopes>', `scopes of the token, separated by spaces: ${ALL_SCOPES.join(' ')}`)
    .addOption(
      new Option('--expires-in <time>', 'like 90s, 15m, 12h or 30d')
        .argParser(readLifetime)
        .default(DEFAULT_LIFE_SECONDS, '365d'),
    )
    .addOption(
      new Option('--dialect <dialect>', 'dialect of the answers; without it that of CLIENT_API_DIALECT').choices(
        CLIENT_API_DIALECTS,
      ),
    )
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod token alice --scopes "profile public:read" --expires-in 30d')

  token.action(async (username: string, options: TokenOptions & { scopes?: string }) => {
    if (options.scopes === undefined) token.error("error: required option '--scopes <scopes>' not specified")
    await createToken(username, options.scopes ?? '', options)
  })

  token
    .command('revoke <token>')
    .description('Revokes a token at once.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod token revoke 0f3b…')
    .action(revoke)

  const clients = program.command('clients').description('Registered client apps and the dialect of their responses.')

  clients
    .command('list')
    .description('Lists registered clients, newest first.')
    .addOption(
      new Option('--limit <number>', 'at most this many')
        .argParser(readCount)
        .default(CLIENTS_SHOWN, String(CLIENTS_SHOWN)),
    )
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod clients list --limit 20')
    .action(list)

  clients
    .command('dialect')
    .argument('<client_id>')
    .addArgument(new Argument('<dialect>').choices([...CLIENT_API_DIALECTS, DEFAULT_DIALECT]))
    .description(
      'Sets the API dialect of one client, from its next request on. default: the value of CLIENT_API_DIALECT.',
    )
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod clients dialect 3f0c9a5be1d24b7790aa1c2d3e4f5061 diaspora')
    .action(changeDialect)
}

async function list({ limit, ...options }: OutputOptions & { limit: number }): Promise<void> {
  const { clients, dialect } = await withPod(async (services) => ({
    clients: await listClients(services, limit),
    dialect: services.config.clientApiDialect,
  }))
  const rows = clients.map(({ clientId, name, apiDialect, users, createdAt }) => [
    clientId,
    apiDialect ?? `${DEFAULT_DIALECT} (${dialect})`,
    String(users),
    createdAt.toISOString(),
    name ?? '-',
  ])
  print(options, clients.map(presentListed), [
    ...table([['client', 'dialect', 'users', 'registered', 'name'], ...rows]).map(printable),
    clients.length === 1 ? '1 client' : `${clients.length} clients`,
  ])
}

async function changeDialect(
  clientId: string,
  wanted: ClientApiDialect | typeof DEFAULT_DIALECT,
  options: OutputOptions,
): Promise<void> {
  const { client, dialect } = await withPod(async (services) => ({
    client: await setClientDialect(services, clientId, wanted === DEFAULT_DIALECT ? null : wanted),
    dialect: services.config.clientApiDialect,
  }))
  const name = printable(client.name ?? client.clientId)
  print(options, present(client), [
    client.apiDialect === null
      ? `${name} now gets the default dialect of the pod: ${dialect}.`
      : `${name} now gets the dialect ${client.apiDialect}.`,
  ])
}

function present({ clientId, name, apiDialect, createdAt }: RegisteredClient) {
  return { client_id: clientId, client_name: name, client_api_dialect: apiDialect, created_at: createdAt.toISOString() }
}

function presentListed({ users, ...client }: ListedClient) {
  return { ...present(client), users }
}

async function createToken(username: string, text: string, options: TokenOptions): Promise<void> {
  const { scopes, unknown } = readScopes(text)
  if (unknown.length > 0) {
    throw new CommandError(`There is no scope ${unknown.join(', ')}; there are ${ALL_SCOPES.join(', ')}.`)
  }
  const { expiresIn: lifetime, dialect = null } = options
  if (lifetime < 1 || lifetime > MAX_LIFETIME_SECONDS) {
    throw new CommandError('A token must last from one second to ten years.')
  }
  const token = await withPod((services) => mintToken(services, username, { scopes, lifetime, apiDialect: dialect }))
  const expires = token.expiresAt.toISOString()
  const fields = {
    access_token: token.accessToken,
    scopes: token.scopes,
    expires_at: expires,
    client_api_dialect: dialect,
  }
  print(options, fields, [
    token.accessToken,
    `Token for ${username}, expires ${expires}, scopes: ${token.scopes.join(' ')}. Save it now; it will not be shown again.`,
  ])
}

async function revoke(accessToken: string, options: OutputOptions): Promise<void> {
  await withPod((services) => revokeToken(services, accessToken))
  print(options, { revoked: true }, ['The token is revoked.'])
}
