import { type FastifyInstance, fastify } from 'fastify'
import type { Knex } from 'knex'
import { pino } from 'pino'
import { readConfig } from '../../src/config/config.js'
import { SCOPES } from '../../src/domain/accounts/scopes.js'
import { mintToken } from '../../src/domain/accounts/tokens.js'
import { openDatabase, queryPrepared } from '../../src/persistence/database/database.js'
import { WEB_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { openServices } from '../../src/services/open-services.js'
import { buildApp } from '../../src/web/server/app.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { listen } from '../load/listen.js'
import { type BenchStores, openBenchStores } from '../machine/bench-stores.js'
import { readersOf } from './api-listings.js'
import { type GeneratedPod, generatePod } from './generated-pod.js'

const TOKEN_LIFETIME_SECONDS = 86_400

/** A server in this process with its own port. */
export interface RunningServer extends AsyncDisposable {
  readonly port: number
}

/** A generated pod whose web application runs in this process. */
export interface OpenedPod extends RunningServer {
  readonly app: FastifyInstance
  readonly plan: GeneratedPod
  readonly stores: BenchStores
  /** Access tokens by number of the user. */
  readonly tokens: ReadonlyMap<number, string>
  countPosts(): Promise<number>
}

export async function openGeneratedPod(plan: GeneratedPod): Promise<OpenedPod> {
  const stores = await openBenchStores('postgresql', { fast: true })
  if (stores === undefined) throw new Error('The embedded database did not start.')
  await generatePod(stores.databaseUrl, plan)
  const config = readConfig({
    POD_URL: 'https://pod.example',
    DATABASE_URL: stores.databaseUrl,
    SECRET_KEY: 'a key that is only good for benches',
    WRITE_LIMIT: '0',
  })
  const crypto = openCryptoPool(1)
  const services = await openServices(config, 'web', { crypto, log: pino({ level: 'silent' }) })
  const app = await buildApp(services)
  const tokens = new Map<number, string>()
  for (const user of readersOf(plan)) {
    const { accessToken } = await mintToken(services, `person${user}`, {
      scopes: SCOPES,
      lifetime: TOKEN_LIFETIME_SECONDS,
    })
    tokens.set(user, accessToken)
  }
  return {
    app,
    plan,
    stores,
    tokens,
    port: await listen(app),
    async countPosts() {
      const [row] = await services.db('posts').count()
      return Number(row?.['count'])
    },
    async [Symbol.asyncDispose]() {
      await app.close()
      await services.close()
      await crypto.close()
      await stores.close()
    },
  }
}

/** A plain Fastify server with one statement per request: GET reads no table, POST writes a row. No request with a database can be cheaper. */
export async function openBareRoute({ databaseUrl }: BenchStores): Promise<RunningServer> {
  const db: Knex = openDatabase({ ...WEB_DATABASE_LIMITS, url: databaseUrl, applicationName: 'bench' })
  await db.schema.createTable('bare', (table) => {
    table.bigIncrements('id')
    table.text('text')
  })
  const app = fastify()
  app.get('/', async () => queryPrepared(db, 'bare', 'select 1 as one', []))
  app.post('/', async ({ body }) => queryPrepared(db, 'bare row', 'insert into bare (text) values ($1)', [body]))
  return {
    port: await listen(app),
    async [Symbol.asyncDispose]() {
      await app.close()
      await db.destroy()
    },
  }
}
