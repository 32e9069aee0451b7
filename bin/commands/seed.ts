import type { Command } from 'commander'
import { isThisMachine } from '../../src/config/addresses.js'
import { findUser } from '../../src/domain/accounts/accounts.js'
import { discoverPerson } from '../../src/federation/discovery/discover-person.js'
import type { Services } from '../../src/services/services.js'
import { CommandError } from '../command-error.js'
import { explainFailure } from '../explain-failure.js'
import { type OutputOptions, print, table } from '../output.js'
import { readAddress } from '../read-named.js'
import { createSampleData, shareWithAndMention } from '../seed/sample-data.js'
import { createSampleUser, type SampleUser } from '../seed/sample-users.js'
import { withPod } from '../with-pod.js'

interface SeedOptions extends OutputOptions {
  readonly password: string
  readonly meet?: string
}

const NAMES = ['alice', 'bob'] as const

export function seedCommand(program: Command): void {
  program
    .command('seed')
    .description(
      'Creates sample data: the users alice and bob with posts, comments and a conversation. Only on an empty pod on localhost.',
    )
    .option('--password <text>', 'the password of both', 'correct horse battery')
    .option(
      '--meet <address>',
      'a person of another pod, with whom both users share and whom they mention',
      readAddress,
    )
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod seed\n  pod seed --meet alice@localhost:3000')
    .action(seed)
}

async function seed({ password, meet, ...options }: SeedOptions): Promise<void> {
  const { url, users } = await withPod(
    async (services) => {
      await checkIsOnThisMachine(services)
      const friend =
        meet === undefined
          ? undefined
          : await explainFailure(`${meet} was not found`, () => discoverPerson(services, meet))
      const [alice, bob] = [
        await createSampleUser(services, 'alice', password),
        await createSampleUser(services, 'bob', password),
      ]
      await createSampleData(services, alice, bob)
      if (friend !== undefined) for (const who of [alice, bob]) await shareWithAndMention(services, who, friend)
      return { url: services.config.url, users: [alice, bob] }
    },
    { makesPod: true },
  )
  print(options, users.map(present), [
    ...users.map(({ address }) => `${address} was created; the password is ${password}.`),
    ...(meet === undefined ? [] : [`Both share with ${meet} and have sent a post.`]),
    '',
    'Access tokens with all scopes, valid for a year:',
    ...table(users.map(({ username, accessToken }) => [`  ${username}`, accessToken])),
    '',
    "Show alice's notifications:",
    `  curl -H "Authorization: Bearer ${users[0]?.accessToken}" ${url}/api/v1/notifications`,
  ])
}

/** The users of the sample data have a well-known password. */
async function checkIsOnThisMachine(services: Services): Promise<void> {
  if (!isThisMachine(services.config.url)) {
    throw new CommandError(
      `seed is only for pods on localhost: the password of alice is well known, and ${services.config.host} is public.`,
    )
  }
  for (const name of NAMES) {
    if (await findUser(services, name))
      throw new CommandError(`seed needs an empty pod; the account ${name} already exists.`)
  }
}

function present({ username, address, guid, accessToken }: SampleUser) {
  return { username, address, guid, access_token: accessToken }
}
