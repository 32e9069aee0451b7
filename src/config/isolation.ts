import { resolve, sep } from 'node:path'
import type { QueueName } from '../jobs/queues/queue-names.js'
import type { AdminListen } from './addresses.js'
import type { Environment } from './variables.js'

/** The queues of an isolated copy: their jobs cause no request to another pod. */
export const ISOLATED_QUEUES: ReadonlySet<QueueName> = new Set(['inbound', 'inbound-private', 'notify', 'photos'])

/**
 * An isolated copy has the passwords and private texts of the pod, and old ones too: only this machine may reach it.
 * It changes no file of its original.
 */
export function checkIsolation(variables: Environment, adminListen: AdminListen, faults: string[]): void {
  if (variables.ISOLATED !== 'true') return
  if (!variables.HOST.includes('/') && !isLoopback(variables.HOST)) {
    faults.push('ISOLATED=true serves only this machine: set HOST to 127.0.0.1, ::1 or the path of a socket.')
  }
  if (typeof adminListen === 'object' && 'host' in adminListen && !isLoopback(adminListen.host)) {
    faults.push('ISOLATED=true serves only this machine: set ADMIN_LISTEN to a port of 127.0.0.1, or leave it out.')
  }
  // It may be the folder of the original, which the copy must not change.
  if (variables.UPLOADS_DIR !== undefined && !isBelow(variables.DATA_DIR, variables.UPLOADS_DIR)) {
    faults.push(
      'ISOLATED=true stores pictures apart from those of the original: set UPLOADS_DIR to a folder in DATA_DIR, or leave it out.',
    )
  }
}

function isBelow(folder: string, path: string): boolean {
  return resolve(path).startsWith(`${resolve(folder)}${sep}`)
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}
