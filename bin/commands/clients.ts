import { type Command, Option } from 'commander'
import { mintToken, revokeToken } from '../../src/domain/accounts/accounts.js'
import { readScopes, SCOPES } from '../../src/domain/accounts/scopes.js'
import { CommandError } from '../command-error.js'
import { readLifetime } from '../options.js'
import { type OutputOptions, print } from '../output.js'
import { withPod } from '../with-pod.js'

const DEFAULT_LIFE_SECONDS = 365 * 86_400
const LONGEST_LIFE_SECONDS = 10 * 365 * 86_400

export function clientCommands(program: Command): void {
  const token = program
    .command('token <username>')
    .description('Makes an access token for a person, without a browser. Each token is an authorization of its own.')
    .enablePositionalOptions()
    .option('--scopes <scopes>', `what it may do, separated by blanks: ${SCOPES.join(' ')}`)
    .addOption(
      new Option('--expires-in <time>', 'like 90s, 15m, 12h or 30d')
        .argParser(readLifetime)
        .default(DEFAULT_LIFE_SECONDS, '365d'),
    )
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod token alice --scopes "profile public:read" --expires-in 30d')

  token.action(async (username: string, options: OutputOptions & { scopes?: string; expiresIn: number }) => {
    if (options.scopes === undefined) token.error("error: required option '--scopes <scopes>' not specified")
    await mint(username, options.scopes ?? '', options)
  })

  token
    .command('revoke <token>')
    .description('Ends a token at once.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod token revoke 0f3b…')
    .action(revoke)
}

async function mint(username: string, text: string, options: OutputOptions & { expiresIn: number }): Promise<void> {
  const { scopes, unknown } = readScopes(text)
  if (unknown.length > 0) {
    throw new CommandError(`There is no scope ${unknown.join(', ')}; there are ${SCOPES.join(', ')}.`)
  }
  const lifetime = options.expiresIn
  if (lifetime < 1 || lifetime > LONGEST_LIFE_SECONDS) {
    throw new CommandError('A token lasts from one second to ten years.')
  }
  const token = await withPod((pod) => mintToken(pod, username, { scopes, lifetime }))
  const expires = token.expiresAt.toISOString()
  print(options, { access_token: token.accessToken, scopes: token.scopes, expires_at: expires }, [
    token.accessToken,
    `For ${username} until ${expires}: ${token.scopes.join(' ')}. It is not shown again.`,
  ])
}

async function revoke(accessToken: string, options: OutputOptions): Promise<void> {
  await withPod((pod) => revokeToken(pod, accessToken))
  print(options, { revoked: true }, ['The token is revoked.'])
}
