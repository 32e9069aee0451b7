import { vi } from 'vitest'
import { SCOPES } from '../../../src/domain/accounts/scopes.js'
import type { Viewer } from '../../../src/domain/accounts/viewers.js'
import { isIdle } from '../../../src/jobs/operations/work-status.js'
import { User } from '../../../src/persistence/models/user.js'
import type { OpenServices } from '../../../src/services/open-services.js'
import { makeFolder, type Outcome, pod, type Settings, startPod } from '../../bin/program.js'
import { createTestDatabase } from '../databases/test-database.js'
import { freePort } from '../http/free-port.js'
import { openPodBySettings } from '../pods/pod-by-settings.js'

/** A user of a complete pod. */
export interface CompletePodUser extends Viewer {
  readonly pod: CompletePod
  readonly address: string
  readonly guid: string
}

/** A complete pod on loopback: web process and worker process are separate, as in production. */
export interface CompletePod {
  /** `localhost:3001` */
  readonly host: string
  /** Its database and queue, opened in the process of the test. */
  readonly open: OpenServices
  /** All log lines of its processes so far. */
  logged(): readonly Record<string, unknown>[]
  /** Creates an account with real keys. */
  addUser(username: string): Promise<CompletePodUser>
  /** Runs a command of this pod. */
  command(...words: string[]): Promise<Outcome>
  /** The JSON output of a successful command. */
  json(...words: string[]): Promise<unknown>
  stop(): Promise<void>
}

/** Starts this many pods. If one does not start, stops the others and throws. */
export async function startCompletePods<Count extends 2 | 3>(count: Count): Promise<PodsOf<Count>> {
  const started = await Promise.allSettled(Array.from({ length: count }, () => startCompletePod()))
  const pods = started.flatMap((pod) => (pod.status === 'fulfilled' ? [pod.value] : []))
  if (pods.length === count) return pods as unknown as PodsOf<Count> // the length was just checked
  await Promise.all(pods.map((pod) => pod.stop()))
  const reasons = started.flatMap((pod) => (pod.status === 'rejected' ? [pod.reason] : []))
  throw new AggregateError(reasons, `The pods did not start: ${reasons.join('; ')}`)
}

export type CompletePods = PodsOf<3>

type PodsOf<Count extends 2 | 3> = Count extends 2
  ? readonly [CompletePod, CompletePod]
  : readonly [CompletePod, CompletePod, CompletePod]

/** Resolves when no pod has work or deliveries left. */
export async function untilQuiet(...pods: readonly CompletePod[]): Promise<void> {
  let before: readonly string[] = []
  await vi.waitFor(
    async () => {
      // One pod may cause work on another pod that was checked already: two equal checks are required.
      const now: string[] = []
      for (const pod of pods) now.push(await activityOf(pod))
      const isQuiet = now.every((activity, index) => activity !== BUSY && activity === before[index])
      before = now
      if (!isQuiet) throw new Error(`Work is left: ${JSON.stringify(await describeRemainingWork(pods))}`)
    },
    { timeout: 45_000, interval: 50 },
  )
}

const BUSY = 'busy'

/** The sequences of all tables, which grow with each sent or stored message, or `BUSY`. */
async function activityOf({ open }: CompletePod): Promise<string> {
  if (!(await isIdle(open))) return BUSY
  const { rows } = await open.db.raw(`
    select string_agg(sequencename || ' ' || coalesce(last_value, 0), ', ' order by sequencename) as trace
    from pg_sequences where schemaname = 'public'`)
  return rows[0].trace
}

async function describeRemainingWork(pods: readonly CompletePod[]) {
  return Promise.all(
    pods.map(async ({ host, open: { db } }) => ({
      host,
      outbox: await db('outbox').select('queue', 'name', 'data'),
      deliveries: await db('deliveries').select('podId', 'state', 'attempts', 'lastStatus', 'lastFault'),
      waiting: await db('waiting').pluck('waitsFor'),
    })),
  )
}

/** Starts one pod. Behind a proxy, a pod listens on another port than the one of its address. */
export async function startCompletePod(
  ports?: { readonly publicPort: number; readonly port: number },
  more: Settings = {},
): Promise<CompletePod> {
  const [folder, database, port] = await Promise.all([makeFolder(), createTestDatabase(), ports?.port ?? freePort()])
  const host = `localhost:${ports?.publicPort ?? port}`
  const settings: Settings = {
    PORT: String(port),
    POD_URL: `http://${host}`,
    DATA_DIR: folder.path,
    DATABASE_URL: database.url,
    ADMIN_LISTEN: '',
    ALLOW_PRIVATE_ADDRESSES: 'true',
    CRYPTO_THREADS: '1',
    LOG_LEVEL: 'info',
    ...more,
  }
  const started = await startPod(settings)
  const open = await openPodBySettings(settings)

  async function json(...words: string[]): Promise<unknown> {
    const { code, stdout, stderr } = await pod([...words, '--json'], settings)
    if (code !== 0) throw new Error(`${words.join(' ')} exited with code ${code}: ${stderr}${stdout}`)
    return JSON.parse(stdout)
  }

  const completePod: CompletePod = {
    host,
    open,
    logged: () =>
      started.output.stdout
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line)),
    async addUser(username) {
      await json('user', 'create', username, '--password', `the password of ${username}`)
      const user = await User.byUsername(open.db, username).throwIfNotFound()
      if (user.person === undefined) throw new Error('The user has no person.')
      const { address, guid } = user.person
      return { userId: user.id, personId: user.personId, scopes: new Set(SCOPES), address, guid, pod: completePod }
    },
    command: (...words) => pod(words, settings),
    json,
    async stop() {
      await open.close()
      started.child.kill('SIGTERM')
      await started.ended
      await database.drop()
      await folder.remove()
    },
  }
  return completePod
}
