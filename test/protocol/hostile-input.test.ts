import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readEntity } from '../../src/protocol/entities/entity-xml.js'
import { decryptEnvelope } from '../../src/protocol/envelopes/encrypted-envelope.js'
import { verifyEnvelope } from '../../src/protocol/envelopes/verify-envelope.js'
import { ProtocolError } from '../../src/protocol/errors.js'
import { readXml } from '../../src/protocol/xml/xml.js'
import { openFuzzer } from './fuzz-run.js'
import { readKeys } from './vector-keys.js'
import { readVectors } from './vectors.js'
import { openXmlReadersFuzzer } from './xml-readers-fuzz.js'

const receivedAt = new Date('2024-05-06T07:08:09Z')
const keys = readKeys(readVectors(new URL('../vectors/federation.json', import.meta.url)).people)
const recipient = keys.of('bruno@meadow.example').privateKey

/** Bytes as they come, and bytes that begin like something we know. */
const bytes = fc
  .tuple(fc.constantFrom('', '<comment><text>', '<', '{"aes_key":"', '\ufeff<?xml version="1.0"?>'), fc.uint8Array())
  .map(([start, rest]) => Buffer.concat([Buffer.from(start), rest]))

it('random bytes are refused as XML with a ProtocolError and nothing else', () => {
  fc.assert(
    fc.property(bytes, (payload) => {
      expect(() => readEntity(readXml(payload, 'InvalidPayload'), receivedAt)).toThrow(ProtocolError)
    }),
    { numRuns: 2_000 },
  )
})

it('random text opens and decrypts no envelope', () => {
  fc.assert(
    fc.property(fc.oneof(bytes.map(String), fc.string({ unit: 'binary' }), fc.json()), (text) => {
      expect(verifyEnvelope(text, keys.public, receivedAt)).toMatchObject({
        state: 'rejected',
        fault: 'InvalidEnvelope',
      })
      expect(decryptEnvelope(text, recipient)).toBeUndefined()
    }),
    { numRuns: 1_000 },
  )
})

it('mutated envelopes open if their payload is signed, and are refused with a fault otherwise', () => {
  const seed = Math.trunc(Math.random() * 2 ** 31)
  const runOnce = openFuzzer(seed)
  let opened = 0
  for (let run = 0; run < 3_000; run += 1) {
    try {
      if (runOnce(run).opened) opened += 1
    } catch (cause) {
      throw new Error(`npm run fuzz -- --seed ${seed} --only ${run}`, { cause })
    }
  }
  // Mutations that break everything would prove nothing.
  expect(opened).toBeGreaterThan(100)
  expect(opened).toBeLessThan(2_900)
})

it('both readers of XML agree on generated and mutated documents', () => {
  const seed = Math.trunc(Math.random() * 2 ** 31)
  const runOnce = openXmlReadersFuzzer(seed)
  let readByBoth = 0
  for (let run = 0; run < 5_000; run += 1) {
    try {
      if (runOnce(run).opened) readByBoth += 1
    } catch (cause) {
      throw new Error(`npm run fuzz -- --input xml --seed ${seed} --only ${run}`, { cause })
    }
  }
  // Documents of one kind only would prove nothing.
  expect(readByBoth).toBeGreaterThan(500)
  expect(readByBoth).toBeLessThan(4_500)
})
