import { Gauge, type Registry } from 'prom-client'
import { findNewerRelease } from '../domain/operations/newer-release.js'
import { claimUpdateCheck, recordLatestRelease } from '../persistence/operations/latest-release.js'
import type { MonitoringServices } from '../services/services.js'

const TIMEOUT_MS = 10_000
/** A document of one short field. */
const MAX_BYTES = 64 * 1024

/** Reads the newest version from UPDATE_CHECK_URL, once a day among all workers. The request says nothing about the pod. */
export async function checkForUpdate({ config, db, log }: MonitoringServices): Promise<void> {
  const { updateCheckUrl, isolated } = config
  if (updateCheckUrl === undefined || isolated) return
  try {
    if (!(await claimUpdateCheck(db))) return
    await recordLatestRelease(db, await fetchVersion(updateCheckUrl))
  } catch (err) {
    log.warn({ err }, 'update check failed')
  }
}

/** Fetches the version without name and version in the user agent, unlike requests to other pods. */
async function fetchVersion(url: string): Promise<string> {
  const response = await fetch(url, {
    headers: { accept: 'application/json', 'user-agent': 'update-check' },
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  if (!response.ok) throw new Error(`UPDATE_CHECK_URL answered ${response.status}.`)
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > MAX_BYTES) throw new Error('The document of UPDATE_CHECK_URL is too large.')
  }
  const { version } = JSON.parse(text)
  if (typeof version === 'string' && /^\d{1,6}\.\d{1,6}\.\d{1,6}$/.test(version)) return version
  throw new Error('The document of UPDATE_CHECK_URL names no version like 1.2.3.')
}

/** 1 if a newer version is known. Without UPDATE_CHECK_URL there is no such metric. */
export function registerUpdateMetric(
  registry: Registry,
  { config, db, log }: MonitoringServices,
  running: string,
): void {
  if (config.updateCheckUrl === undefined) return
  new Gauge({
    name: 'pod_update_available',
    help: 'Whether a newer version of the program is known.',
    registers: [registry],
    async collect() {
      try {
        this.set((await findNewerRelease({ db }, running)) === undefined ? 0 : 1)
      } catch (err) {
        log.debug({ err }, 'newest version unavailable for metrics')
        this.remove()
      }
    },
  })
}
