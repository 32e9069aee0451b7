import { unlink } from 'node:fs/promises'
import { createConnection } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Config, Listen } from '../../config/config.js'
import { StartError } from '../../errors/start-error.js'
import { codeOf } from '../../errors/thrown.js'
import { ADMIN_PORTS_TRIED } from '../../limits.js'

/** Listens, or says in a sentence what stands in the way and which setting (`hint`) changes it. */
export async function listen(app: FastifyInstance, where: Listen, hint: string): Promise<string> {
  try {
    return await listenAt(app, where)
  } catch (error) {
    throw explained(error, where, hint)
  }
}

/**
 * Metrics and health for the operator. Nobody asked for the usual port, so another pod on this machine may have it: then the
 * next free one is as good. A port that was asked for and is taken is a reason not to start.
 */
export async function listenForOperator(
  app: FastifyInstance,
  setting: Config['adminListen'],
  usualPort: number,
): Promise<string | null> {
  if (setting === 'off') return null
  if (setting !== 'default') return listen(app, setting, 'Set ADMIN_LISTEN to another address, or to nothing.')

  const first = { host: '127.0.0.1', port: usualPort }
  for (let port = usualPort; port < usualPort + ADMIN_PORTS_TRIED; port += 1) {
    try {
      const address = await listenAt(app, { ...first, port })
      if (port !== usualPort) app.log.info({ address }, `port ${usualPort} is taken, so metrics and health are here`)
      return address
    } catch (error) {
      if (codeOf(error) !== 'EADDRINUSE') throw explained(error, first, 'Set ADMIN_LISTEN.')
    }
  }
  throw new StartError(
    `The ports ${usualPort} to ${usualPort + ADMIN_PORTS_TRIED - 1} are all taken. Set ADMIN_LISTEN to a free one, or to nothing.`,
  )
}

async function listenAt(app: FastifyInstance, where: Listen): Promise<string> {
  if ('port' in where) return app.listen({ host: where.host, port: where.port, listenTextResolver })
  await removeAbandonedSocket(where.path)
  await app.listen({ path: where.path, listenTextResolver })
  return `unix:${where.path}`
}

/** A process that was killed leaves its socket behind; nobody answers there, and nobody else could listen. */
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
  EADDRINUSE: 'something else listens there already',
  EACCES: 'this user may not listen there',
  EPERM: 'this user may not listen there',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'nobody knows that name',
  EAI_AGAIN: 'the name cannot be looked up now',
  ENOENT: 'the folder of the socket does not exist',
  EINVAL: 'the address cannot be used',
}

function explained(error: unknown, where: Listen, hint: string): unknown {
  const reason = REASONS[codeOf(error)]
  if (reason === undefined) return error
  const place = 'port' in where ? `port ${where.port} of ${where.host}` : where.path
  return new StartError(`The pod cannot listen on ${place}: ${reason}. ${hint}`, { cause: error })
}

/** One line for each address. */
function listenTextResolver(address: string): string {
  return `listening at ${address}`
}
