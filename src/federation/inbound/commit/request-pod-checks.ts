import type { Knex } from 'knex'
import { RemotePod } from '../../../persistence/models/remote-pod.js'
import type { VerifiedMessage } from '../batch.js'

/** Requests a check of pods that count as offline and send messages: they are checked soon instead of once a day. */
export async function requestChecksOfOfflinePods(
  transaction: Knex.Transaction,
  messages: readonly VerifiedMessage[],
): Promise<void> {
  if (!messages.some(({ signer }) => signer.isPodOffline)) return
  const senders = new Set(messages.map(({ signer }) => signer.address))
  await RemotePod.requestChecks(transaction, [...senders])
}
