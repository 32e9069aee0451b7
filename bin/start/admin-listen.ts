import type { Config } from '../../src/config/config.js'

/**
 * ADMIN_LISTEN of the worker under `pod start`: web uses the setting, the worker the next port. `undefined`: the worker uses the setting
 * itself.
 */
export function adminListenOfWorker(ofWeb: Config['adminListen']): string | undefined {
  if (typeof ofWeb === 'string') return undefined
  if ('path' in ofWeb) return `${ofWeb.path}.worker`
  const { host, port } = ofWeb
  return `${host.includes(':') ? `[${host}]` : host}:${port === 0 ? 0 : port + 1}`
}
