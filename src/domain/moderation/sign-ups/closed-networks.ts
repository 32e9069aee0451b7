import { stateByOwner } from '../../../concurrency/state-by-owner.js'
import { parseNetworkList } from '../../../networks/trusted-proxies.js'
import { listClosedNetworks } from '../../../persistence/moderation/network-rules.js'
import type { Services } from '../../../services/services.js'
import { type Reloading, startReloading } from '../../operations/start-reloading.js'

type HasAccess = (address: string) => boolean

interface NetworkState {
  /** Set by the first reading. */
  hasAccess?: HasAccess
  networks?: string
  /** Set in a process that has started it. */
  reloading?: Reloading
}

/** The rules, one state for each set of open services. */
const stateOf = stateByOwner<Services['jobs'], NetworkState>()

function networksOf({ jobs }: Pick<Services, 'jobs'>): NetworkState {
  return stateOf(jobs, () => ({}))
}

/** Whether requests of the address are answered. Before the first reading every address has access. */
export async function hasNetworkAccess(services: Pick<Services, 'jobs'>, address: string): Promise<boolean> {
  const state = networksOf(services)
  await state.reloading?.ensureFresh()
  return state.hasAccess?.(address) ?? true
}

/** Returns whether the networks have changed since the last reading. */
export async function reloadClosedNetworks(services: Pick<Services, 'db' | 'jobs'>): Promise<boolean> {
  const networks = (await listClosedNetworks(services.db)).toSorted().join(',')
  const state = networksOf(services)
  const hasChanged = state.networks !== undefined && state.networks !== networks
  const isClosed = networks === '' ? () => false : parseNetworkList(networks)
  Object.assign(state, { networks, hasAccess: (address: string) => !isClosed(address) })
  return hasChanged
}

/** Keeps the rules of a web process up to date. After a failure those of before stay in force. */
export function startClosedNetworkLoader(services: Pick<Services, 'db' | 'jobs'> & Pick<Services, 'log'>): {
  close(): void
} {
  const reloading = startReloading(services, 'rules for networks', () => reloadClosedNetworks(services))
  networksOf(services).reloading = reloading
  return reloading
}
