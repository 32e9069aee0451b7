import { join, relative, resolve } from 'node:path'
import { styleText } from 'node:util'
import { isThisMachine } from '../../src/config/addresses.js'
import type { Config } from '../../src/config/config.js'
import { describeRedisTarget } from '../../src/jobs/queues/redis-address.js'
import { hostAndPort } from '../explain-database-error.js'
import type { RunningProcess } from './supervised-process.js'

export interface RunningPod {
  readonly config: Config
  readonly databaseUrl: string
  /** `undefined`: an external database. */
  readonly databasePid: number | undefined
  readonly web: RunningProcess
  readonly worker: RunningProcess
  /** Warnings for the operator, in sentences. */
  readonly warnings: readonly string[]
}

/** The screen of `pod start` when all processes are ready. */
export function renderScreen(pod: RunningPod, hasColours: boolean): readonly string[] {
  const { config, web, worker, warnings } = pod
  const bold = (text: string) => (hasColours ? styleText('bold', text) : text)
  const yellow = (text: string) => (hasColours ? styleText('yellow', text) : text)
  const line = (name: string, text: string) => `  ${name.padEnd(11)} ${text}`
  // A socket path has no URL.
  const address = web.address?.startsWith('http') ? web.address : config.url
  const admin = [web.admin && `${web.admin} (web)`, worker.admin && `${worker.admin} (worker)`].filter(Boolean)
  return [
    '',
    bold(`The pod ${config.podName} is running at ${address}`),
    '',
    line('Database', databaseLine(pod)),
    line('Queue', queueLine(config)),
    line('API', `${address}/api/docs describes it, with a form to try it`),
    line('Accounts', `${commandLine(config)} user create alice   (in another terminal)`),
    ...(isThisMachine(config.url)
      ? [line('Sample data', `${commandLine(config)} seed   (two users with posts and a conversation)`)]
      : []),
    line('Federation', federationLine(config)),
    line(
      'Metrics',
      admin.length === 0 ? 'off (ADMIN_LISTEN is empty)' : `${admin.join(', ')}: /metrics and /health/ready`,
    ),
    line('Stop', 'Ctrl-C'),
    '',
    ...warnings.map((warning) => yellow(`  Warning: ${warning}`)),
    ...(warnings.length > 0 ? [''] : []),
  ]
}

function databaseLine({ config, databaseUrl }: RunningPod): string {
  return config.databaseUrl === undefined
    ? `the embedded PostgreSQL in ${config.dataDir} (DATABASE_URL is not set)`
    : `${hostAndPort(databaseUrl)} (DATABASE_URL)`
}

function queueLine(config: Config): string {
  return config.redisUrl === undefined
    ? 'in the same PostgreSQL (REDIS_URL is not set; a large pod should have a Redis)'
    : `in ${describeRedisTarget(config.redisUrl)} (REDIS_URL)`
}

function federationLine(config: Config): string {
  const reachable = config.url.startsWith('https:') && !isThisMachine(config.url)
  return reachable
    ? `other pods know this one as ${config.url} (POD_URL)`
    : `other pods cannot reach ${config.url}: set POD_URL to a public https address first; it cannot be changed later`
}

/** The settings a command needs to find this pod: data folder or database. They contain the address. */
function commandLine({ dataDir, databaseUrl, redisUrl, secretKey }: Config): string {
  const settings = [
    ...(dataDir === resolve('var') ? [] : [`DATA_DIR=${shortPath(dataDir) || '.'}`]),
    // Settings with a password are named without value.
    ...(databaseUrl === undefined ? [] : ['DATABASE_URL=…']),
    ...(redisUrl === undefined ? [] : ['REDIS_URL=…']),
    ...(secretKey === undefined ? [] : ['SECRET_KEY=…']),
  ]
  const program = shortPath(process.argv[1] ?? 'dist/bin/pod.js')
  return [...settings, program === join('dist', 'bin', 'pod.js') ? 'npx pod' : `node ${program}`].join(' ')
}

/** The path from the current folder, or the whole path of a file outside of it: the screen of a service is read in other folders. */
function shortPath(path: string): string {
  const fromHere = relative(process.cwd(), path)
  return fromHere.startsWith('..') ? resolve(path) : fromHere
}
