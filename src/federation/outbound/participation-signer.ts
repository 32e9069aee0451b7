import { findOrMakePodAccount } from '../../domain/accounts/pod-account.js'
import { findOpenAccountOrOldest } from '../../persistence/accounts/open-account.js'
import type { Services } from '../../services/services.js'

/** The account that signs participations. */
export interface ParticipationSigner {
  /** Null: the account of the pod, which is not a person. */
  readonly personId: number | null
  readonly guid: string
  readonly address: string
}

/** Returns the account that PODMIN_ACCOUNT names, if it is open, else the account of the pod. Undefined: the pod has no open account. */
export async function findParticipationSigner(services: Services): Promise<ParticipationSigner | undefined> {
  const podminName = services.config.podminAccount ?? ''
  const account = await findOpenAccountOrOldest(services.db, podminName)
  if (account === undefined) return undefined
  if (account.username !== podminName) return { personId: null, ...(await findOrMakePodAccount(services)) }
  const { personId, guid, address } = account
  return { personId, guid, address }
}
