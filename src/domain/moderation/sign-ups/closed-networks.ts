import { parseNetworkList } from '../../../networks/trusted-proxies.js'
import { listClosedNetworks } from '../../../persistence/moderation/network-rules.js'
import type { Pod } from '../../../pod/pod.js'
import { type Reloading, startReloading } from '../../operations/start-reloading.js'

type NetworkPod = Pick<Pod, 'db' | 'jobs'>
type HasAccess = (address: string) => boolean

/** One entry for each open pod of this process, whose requests look it up. */
const loaded = new WeakMap<Pod['jobs'], HasAccess>()

/** Of the processes that have started it. */
const reloadings = new WeakMap<Pod['jobs'], Reloading>()

/** Whether requests of the address are answered. Before the first reading every address has access. */
export async function hasNetworkAccess({ jobs }: Pick<Pod, 'jobs'>, address: string): Promise<boolean> {
  await reloadings.get(jobs)?.ensureFresh()
  return loaded.get(jobs)?.(address) ?? true
}

export async function reloadClosedNetworks({ db, jobs }: NetworkPod): Promise<void> {
  const networks = await listClosedNetworks(db)
  const isClosed = networks.length === 0 ? () => false : parseNetworkList(networks.join(','))
  loaded.set(jobs, (address) => !isClosed(address))
}

/** Keeps the rules of a web process up to date. After a failure those of before stay in force. */
export function startClosedNetworkLoader(pod: NetworkPod & Pick<Pod, 'log'>): { close(): void } {
  const reloading = startReloading(pod, 'rules for networks', () => reloadClosedNetworks(pod))
  reloadings.set(pod.jobs, reloading)
  return reloading
}
