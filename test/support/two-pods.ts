import { createServer } from 'node:net'
import { readConfig } from '../../src/config.js'
import type { Viewer } from '../../src/domain/access.js'
import { SCOPES } from '../../src/domain/scopes.js'
import { type OpenPod, openPod } from '../../src/open-pod.js'
import { User } from '../../src/persistence/models/user.js'
import { makeFolder, type Outcome, pod, type Settings, startPod } from '../bin/program.js'
import { cannedCrypto } from './canned-crypto.js'
import { createTestDatabase } from './database.js'

/** A whole pod of ours on loopback: web and worker as processes of their own, as an operator would start them. */
export interface WholePod {
  /** `localhost:3001` */
  readonly host: string
  /** Its database and queue, opened beside its processes. */
  readonly open: OpenPod
  /** Everything it has said so far, line by line as JSON. */
  said(): readonly Record<string, unknown>[]
  /** Makes an account with real keys. */
  person(username: string): Promise<Viewer & { readonly address: string; readonly guid: string }>
  /** Runs a command of this pod. */
  command(...words: string[]): Promise<Outcome>
  /** What a command that works says, as JSON. */
  json(...words: string[]): Promise<unknown>
  stop(): Promise<void>
}

export async function startWholePod(): Promise<WholePod> {
  const [folder, database, port] = await Promise.all([makeFolder(), createTestDatabase(), freePort()])
  const host = `localhost:${port}`
  const settings: Settings = {
    PORT: String(port),
    POD_URL: `http://${host}`,
    DATA_DIR: folder.path,
    DATABASE_URL: database.url,
    ADMIN_LISTEN: '',
    ALLOW_PRIVATE_ADDRESSES: 'true',
    CRYPTO_THREADS: '1',
    LOG_LEVEL: 'info',
  }
  const started = await startPod(settings)
  const open = await openPod(readConfig({ ...settings, LOG_LEVEL: 'silent' }), 'command', { crypto: cannedCrypto() })

  async function json(...words: string[]): Promise<unknown> {
    const { code, stdout, stderr } = await pod([...words, '--json'], settings)
    if (code !== 0) throw new Error(`${words.join(' ')} ended with ${code}: ${stderr}${stdout}`)
    return JSON.parse(stdout)
  }

  return {
    host,
    open,
    said: () =>
      started.output.stdout
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line)),
    async person(username) {
      await json('user', 'create', username, '--password', `the password of ${username}`)
      const user = await User.byUsername(open.db, username).throwIfNotFound()
      if (user.person === undefined) throw new Error('A user is a person.')
      const { address, guid } = user.person
      return { userId: user.id, personId: user.personId, scopes: new Set(SCOPES), address, guid }
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
}

/** The address of a pod has its port in it, so that must be known before anything listens there. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() =>
        typeof address === 'object' && address !== null ? resolve(address.port) : reject(new Error('no port')),
      )
    })
  })
}
