import type { Command } from 'commander'
import { isThisMachine } from '../../src/config/config.js'
import { findUser } from '../../src/domain/accounts/accounts.js'
import { discoverPerson } from '../../src/federation/discovery/discover-person.js'
import type { Pod } from '../../src/pod/pod.js'
import { CommandError } from '../command-error.js'
import { type OutputOptions, print, table } from '../output.js'
import { readAddress } from '../read-named.js'
import { moveIn, type Newcomer } from '../seed/newcomers.js'
import { greet, liveTogether } from '../seed/small-life.js'
import { told } from '../told.js'
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
      'Makes alice and bob, and a small life on them, to play with: for a pod on this machine, and only once.',
    )
    .option('--password <text>', 'of both of them', 'correct horse battery')
    .option('--meet <address>', 'somebody on another pod, with whom both share and whom they greet', readAddress)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod seed\n  pod seed --meet alice@localhost:3000')
    .action(seed)
}

async function seed({ password, meet, ...options }: SeedOptions): Promise<void> {
  const { url, residents } = await withPod(
    async (pod) => {
      await checkIsPlayground(pod)
      const friend =
        meet === undefined ? undefined : await told(`${meet} was not found`, () => discoverPerson(pod, meet))
      const [alice, bob] = [await moveIn(pod, 'alice', password), await moveIn(pod, 'bob', password)]
      await liveTogether(pod, alice, bob)
      if (friend !== undefined) for (const who of [alice, bob]) await greet(pod, who, friend)
      return { url: pod.config.url, residents: [alice, bob] }
    },
    { makesPod: true },
  )
  print(options, residents.map(present), [
    ...residents.map(({ address }) => `${address} lives here now; the password is ${password}.`),
    ...(meet === undefined ? [] : [`Both share with ${meet} and have said hello.`]),
    '',
    'Their tokens may do everything, for a year:',
    ...table(residents.map(({ username, accessToken }) => [`  ${username}`, accessToken])),
    '',
    'What alice finds when she comes home:',
    `  curl -H "Authorization: Bearer ${residents[0]?.accessToken}" ${url}/api/v1/notifications`,
  ])
}

/** Its people have a password that everybody knows. */
async function checkIsPlayground(pod: Pod): Promise<void> {
  if (!isThisMachine(pod.config.url)) {
    throw new CommandError(`Everybody could sign in as alice: ${pod.config.host} is no pod to play with.`)
  }
  for (const name of NAMES) {
    if (await findUser(pod, name)) throw new CommandError(`There is a life on this pod already: ${name} lives here.`)
  }
}

function present({ username, address, guid, accessToken }: Newcomer) {
  return { username, address, guid, access_token: accessToken }
}
