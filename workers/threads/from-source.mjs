// A thread of tests and of tsx runs TypeScript, and has to load tsx for itself: options of the process are not inherited.
import { register } from 'tsx/esm/api'

register()
const tasks = await import('./crypto-thread.ts')

export const {
  generateKeyPair,
  verifyEnvelopes,
  decryptEnvelopes,
  signRelayable,
  signMigration,
  signEnvelope,
  signEnvelopes,
  encryptEnvelopes,
  readDocument,
} = tasks
