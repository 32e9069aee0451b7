import { unlink } from 'node:fs/promises'
import { createConnection } from 'node:net'
import type { FastifyInstance, FastifyListenOptions } from 'fastify'
import type { Listen } from '../../config/addresses.js'
import type { Config } from '../../config/config.js'
import { StartError } from '../../errors/start-error.js'
import { codeOf } from '../../errors/thrown.js'

/** Ports that are tried after the default one, for several pods on one machine. */
const ADMIN_PORTS_TRIED = 20

/** Listens at an address. The error names the cause and, with `hint`, the setting that changes the address. */
export async function listen(app: FastifyInstance, where: Listen, hint: string): Promise<string> {
  try {
    return await listenAt(app, where)
  } catch (error) {
    throw explainListenError(error, where, hint)
  }
}

/**
 * Listens for metrics and health requests of the operator. Without a setting, another pod on this machine may use the default port;
 * then the next free port is used. A configured port that is in use prevents the start.
 */
export async function listenForOperator(
  app: FastifyInstance,
  setting: Config['adminListen'],
  defaultPort: number,
): Promise<string | null> {
  if (setting === 'off') return null
  if (setting !== 'default') return listen(app, setting, 'Set ADMIN_LISTEN to another address, or to nothing.')

  const first = { host: '127.0.0.1', port: defaultPort }
  for (let port = defaultPort; port < defaultPort + ADMIN_PORTS_TRIED; port += 1) {
    try {
      const address = await listenAt(app, { ...first, port })
      if (port !== defaultPort)
        app.log.info({ address, defaultPort }, 'default port in use: metrics and health listen on another port')
      return address
    } catch (error) {
      if (codeOf(error) !== 'EADDRINUSE') throw explainListenError(error, first, 'Set ADMIN_LISTEN.')
    }
  }
  throw new StartError(
    `The ports ${defaultPort} to ${defaultPort + ADMIN_PORTS_TRIED - 1} are all in use. Set ADMIN_LISTEN to a free one, or to nothing.`,
  )
}

async function listenAt(app: FastifyInstance, where: Listen): Promise<string> {
  if ('port' in where) return listenWithoutLog(app, { host: where.host, port: where.port })
  await removeAbandonedSocket(where.path)
  await listenWithoutLog(app, { path: where.path })
  return `unix:${where.path}`
}

/** Fastify logs a line for each address of the machine; the process logs its address once, when it has started. */
async function listenWithoutLog(app: FastifyInstance, where: FastifyListenOptions): Promise<string> {
  const { log } = app
  app.log = log.child({}, { level: 'warn' })
  try {
    return await app.listen(where)
  } finally {
    app.log = log
  }
}

/** Removes the socket file of a process that was killed: it would block the address although no process listens on it. */
async function removeAbandonedSocket(path: string): Promise<void> {
  const code = await new Promise<string>((resolve) => {
    const socket = createConnection(path)
    socket.on('connect', () => resolve('answered'))
    socket.on('error', (error) => resolve(codeOf(error)))
    socket.on('close', () => socket.destroy())
    socket.on('connect', () => socket.destroy())
  })
  if (code === 'ECONNREFUSED') await unlink(path)
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process uses this address',
  EACCES: 'this user has no permission to use this address',
  EPERM: 'this user has no permission to use this address',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'the name does not exist in DNS',
  EAI_AGAIN: 'the name cannot be resolved at the moment',
  ENOENT: 'the folder of the socket does not exist',
  EINVAL: 'the address is not valid',
}

function explainListenError(error: unknown, where: Listen, hint: string): unknown {
  const reason = REASONS[codeOf(error)]
  if (reason === undefined) return error
  const place = 'port' in where ? `port ${where.port} of ${where.host}` : where.path
  return new StartError(`The pod cannot listen on ${place}: ${reason}. ${hint}`, { cause: error })
}
