import { readFileSync } from 'node:fs'
import { readDocument } from '../../../src/protocol/discovery/documents.js'
import { decryptEnvelope, writeEncryptedEnvelope } from '../../../src/protocol/envelopes/encrypted-envelope.js'
import { signMagicEnvelope } from '../../../src/protocol/envelopes/magic-envelope.js'
import { verifyEnvelope } from '../../../src/protocol/envelopes/verify-envelope.js'
import { signMigration } from '../../../src/protocol/signatures/migration-signature.js'
import { signRelayable } from '../../../src/protocol/signatures/relayable-signature.js'
import type { KeyPair, PodCrypto } from '../../../src/services/pod-crypto.js'

/**
 * Crypto functions with key pairs from files, in turn, because key generation takes longer than most tests. The keys are small, so that
 * signing needs no thread.
 */
export function fixedKeyCrypto(): PodCrypto {
  let count = 0
  return {
    async generateKeyPair() {
      const pair = pairs[count % pairs.length]
      count += 1
      if (pair === undefined) throw new Error('test/fixtures/keys has no keys.')
      return pair
    },
    verifyEnvelopes: async (messages, keys) =>
      messages.map(({ envelope, receivedAt }) => verifyEnvelope(envelope, keys, receivedAt)),
    decryptEnvelopes: async (messages) =>
      messages.map(({ encrypted, recipientKey }) => decryptEnvelope(encrypted, recipientKey)),
    signRelayable: async (relayable, key) => signRelayable(relayable, key),
    signMigration: async (move, key) => signMigration(move, key),
    signEnvelope: async (payload, sender, key) => signMagicEnvelope(payload, sender, key),
    signEnvelopes: async (messages) =>
      messages.map(({ payload, sender, key }) => signMagicEnvelope(payload, sender, key)),
    encryptEnvelopes: async (envelopes) =>
      envelopes.map(({ envelope, recipientKeys }) => recipientKeys.map((key) => writeEncryptedEnvelope(envelope, key))),
    readDocument: async (document) => readDocument(document),
  }
}

const pairs: readonly KeyPair[] = ['1', '2', '3', '4'].map((name) => ({
  publicKey: readKey(`${name}.public.pem`),
  privateKey: readKey(`${name}.private.pem`),
}))

/** A file of `test/fixtures/keys`. */
export function readKey(file: string): string {
  return readFileSync(new URL(`../../fixtures/keys/${file}`, import.meta.url), 'utf8')
}
