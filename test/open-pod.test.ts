import { afterAll, beforeAll, expect, it } from 'vitest'
import { readConfig } from '../src/config/config.js'
import { createUser } from '../src/domain/accounts/accounts.js'
import { StartError } from '../src/errors/start-error.js'
import { openPod } from '../src/pod/open-pod.js'
import { createTestDatabase, databaseAt, type TestDatabase } from './support/databases/test-database.js'
import { openTcpProxy } from './support/http/tcp-proxy.js'
import { fixedKeyCrypto } from './support/pods/fixed-key-crypto.js'

const SECRET_KEY = 'the key that belongs to the accounts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const open = (settings: NodeJS.ProcessEnv) => {
  const config = readConfig({ DATABASE_URL: database.url, SECRET_KEY, LOG_LEVEL: 'silent', ...settings })
  return openPod(config, 'web', { crypto: fixedKeyCrypto() })
}

async function sentenceOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof StartError)) throw new Error(`not refused, or not in a sentence: ${error}`)
  return error.message
}

it('opening a pod waits for an unavailable database, but not for one that rejects the login', async () => {
  const wrongUrl = new URL(database.url)
  wrongUrl.password = 'wrong-password'

  expect(await sentenceOf(open({ DATABASE_URL: wrongUrl.href }))).toMatch(
    /password authentication failed.*DATABASE_URL/,
  )
  expect(await sentenceOf(open({ DATABASE_URL: databaseAt(database.url, 'missing') }))).toMatch(
    /database "missing" does not exist.*DATABASE_URL/,
  )
})

it('opening a pod fails for accounts created with another secret key', async () => {
  const pod = await open({})
  await createUser(pod, { username: 'alice', password: 'correct horse' })
  await pod.close()

  expect(await sentenceOf(open({ SECRET_KEY: SECRET_KEY.toUpperCase() }))).toMatch(/another secret key .* SECRET_KEY/)
  await (await open({})).close()
})

it.each(['select 1', 'knex_migrations', 'user_secrets'])(
  'waits for a database that goes away on a request for %s',
  async (question) => {
    const proxy = await openTcpProxy(Number(new URL(database.url).port))
    const through = Object.assign(new URL(database.url), { port: `${proxy.port}` })
    const cut = proxy.cutAfterRequest(question)

    const pod = await open({ DATABASE_URL: through.href })

    await cut
    await pod.close()
    await proxy.close()
  },
)
