import type { Config } from '../../src/config/config.js'

/**
 * One setting, two processes: web has what ADMIN_LISTEN says, the worker the port behind it, as where nothing is set.
 * `undefined`: the worker finds its way by the setting itself.
 */
export function adminListenOfWorker(ofWeb: Config['adminListen']): string | undefined {
  if (typeof ofWeb === 'string') return undefined
  if ('path' in ofWeb) return `${ofWeb.path}.worker`
  const { host, port } = ofWeb
  return `${host.includes(':') ? `[${host}]` : host}:${port === 0 ? 0 : port + 1}`
}
