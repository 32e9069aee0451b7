import { deepEqual, ok } from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { readHcard, readWebFinger } from '../../src/protocol/discovery/discovery-documents.js'
import { entityFromJson, entityToJson } from '../../src/protocol/entities/entity-json.js'
import { isEntityJson } from '../../src/protocol/entities/entity-schema.js'
import { readEntity, writeEntity } from '../../src/protocol/entities/entity-xml.js'
import { decryptEnvelope, writeEncryptedEnvelope } from '../../src/protocol/envelopes/encrypted-envelope.js'
import { peekEnvelope, readMagicEnvelope, signMagicEnvelope } from '../../src/protocol/envelopes/magic-envelope.js'
import { verifyEnvelope } from '../../src/protocol/envelopes/verify-envelope.js'
import { ProtocolError } from '../../src/protocol/errors.js'
import { readLinks, readMentions, readTags } from '../../src/protocol/mentions.js'
import { readXml } from '../../src/protocol/xml/xml.js'
import type { XmlElement } from '../../src/protocol/xml/xml-element.js'
import { readBothWays } from './both-readers.js'
import { type Chance, chance, mutate, mutateElements } from './mutations.js'
import { readKeys } from './vector-keys.js'
import { readVectors } from './vectors.js'

const receivedAt = new Date('2024-05-06T07:08:09Z')
const maxSeedCharacters = 16_384

/** What became of one run: how many of its envelopes were opened, or refused with a fault. */
export interface RunResult {
  readonly opened: boolean
}

/**
 * Runs all readers of untrusted input on mutations of valid inputs. Seed and number alone determine a run. It throws if a
 * reader throws anything but a ProtocolError, or if an envelope opens without a valid signature.
 */
export function openFuzzer(seed: number): (run: number) => RunResult {
  const corpus = readCorpus()
  return (run) => {
    const random = chance(Math.imul(seed, 0x9e3779b1) ^ Math.imul(run + 1, 0x85ebca6b))
    if (run % 10 === 0) readOther(corpus, random)
    switch (random.below(10)) {
      case 0:
        return readEncryptedEnvelope(corpus, random)
      case 1:
      case 2:
      case 3:
      case 4:
        return readSealed(corpus, random)
      default:
        return readEnvelope(corpus, random)
    }
  }
}

interface Corpus {
  readonly keys: ReadonlyMap<string, KeyObject>
  readonly envelopes: readonly string[]
  readonly payloads: readonly string[]
  /** The payloads that are well-formed. */
  readonly entities: readonly XmlElement[]
  readonly signedPayloads: ReadonlySet<string>
  readonly encryptedEnvelopes: readonly string[]
  /** Short, for it signs and decrypts in every other run. */
  readonly keyPair: { readonly publicKey: KeyObject; readonly privateKey: KeyObject }
  readonly json: readonly string[]
  readonly webFinger: readonly string[]
  readonly hcards: readonly string[]
  readonly texts: readonly string[]
}

const sealer = 'fuzz@seal.example'

function readCorpus(): Corpus {
  const vectors = readVectors(new URL('../vectors/federation.json', import.meta.url))
  const keyPair = generateKeyPairSync('rsa', { modulusLength: 1_024 })
  const inputs = vectors.receive.filter(({ kind }) => kind !== 'receive_private').map(({ input }) => input)
  const envelopes = [...inputs, ...vectors.send.map(({ envelope_xml }) => envelope_xml)]
  const payloads = envelopes.flatMap(payloadOf)
  const received = vectors.receive
    .filter(({ kind, expect, input }) => kind !== 'receive_private' && expect.ok && input.length < maxSeedCharacters)
    .map(({ input }) => readXml(readMagicEnvelope(input).payload, 'InvalidPayload'))
  const encryptedPayloads = envelopes.slice(0, 40).filter((envelope) => envelope.length < maxSeedCharacters)
  return {
    keys: new Map([...readKeys(vectors.people).public, [sealer, keyPair.publicKey]]),
    envelopes: envelopes.filter(({ length }) => length < maxSeedCharacters),
    payloads: payloads.filter(({ length }) => length < maxSeedCharacters),
    entities: vectors.send.map(({ payload_xml }) => readXml(payload_xml, 'InvalidPayload')).concat(received),
    signedPayloads: new Set(payloads),
    encryptedEnvelopes: encryptedPayloads.map((envelope) => writeEncryptedEnvelope(envelope, keyPair.publicKey)),
    keyPair,
    json: [...vectors.schema.map(({ instance }) => instance), ...vectors.send.map(({ entity }) => entity)].map(
      (value) => JSON.stringify(value),
    ),
    webFinger: vectors.discovery.map(({ webfinger_json }) => webfinger_json),
    hcards: vectors.discovery.map(({ hcard_html }) => hcard_html),
    texts: [...vectors.links.map(({ text }) => text), 'hi @{alma@meadow.example} @{Al; alma@meadow.example} #tag #<3'],
  }
}

function payloadOf(envelope: string): string[] {
  try {
    return [readMagicEnvelope(envelope).payload.toString()]
  } catch {
    return []
  }
}

/** Mutates the text of a signed envelope: an envelope that still opens has a signed payload. */
function readEnvelope(corpus: Corpus, random: Chance): RunResult {
  const envelope = mutate(random.oneOf(corpus.envelopes), random.oneOf(corpus.payloads), random)
  const opened = open(corpus, envelope)
  if (opened)
    ok(corpus.signedPayloads.has(readMagicEnvelope(envelope).payload.toString()), 'this payload was not signed')
  return { opened }
}

/** The payload is changed and then signed: what a pod sends that is broken or evil itself. */
function readSealed(corpus: Corpus, random: Chance): RunResult {
  const payload =
    random.below(2) === 0
      ? mutate(random.oneOf(corpus.payloads), random.oneOf(corpus.payloads), random)
      : mutateElements(random.oneOf(corpus.entities), random.oneOf(corpus.entities), random)
  const both = readBothWays(payload)
  deepEqual(both?.plain, both?.parsed)
  return { opened: open(corpus, signMagicEnvelope(payload, sealer, corpus.keyPair.privateKey)) }
}

function readEncryptedEnvelope(corpus: Corpus, random: Chance): RunResult {
  const encryptedEnvelope = mutate(
    random.oneOf(corpus.encryptedEnvelopes),
    random.oneOf(corpus.encryptedEnvelopes),
    random,
  )
  const envelope = decryptEnvelope(encryptedEnvelope, corpus.keyPair.privateKey)
  return { opened: envelope !== undefined && open(corpus, envelope) }
}

/** Opens an envelope; an entity that comes out is written and read again, in both forms. */
function open(corpus: Corpus, envelope: string): boolean {
  peekEnvelope(envelope)
  const opened = verifyEnvelope(envelope, corpus.keys, receivedAt)
  if (opened.state !== 'verified') return false

  const { entity } = opened
  deepEqual(readEntity(readXml(writeEntity(entity), 'InvalidPayload'), receivedAt), entity)
  entityFromJson(JSON.parse(JSON.stringify(entityToJson(entity))), receivedAt)
  return true
}

function readOther(corpus: Corpus, random: Chance): void {
  const json = parsed(mutate(random.oneOf(corpus.json), random.oneOf(corpus.json), random))
  isEntityJson(json)
  refusing(() => entityFromJson(json, receivedAt))
  refusing(() =>
    readWebFinger(mutate(random.oneOf(corpus.webFinger), random.oneOf(corpus.json), random), 'alma@meadow.example'),
  )
  refusing(() => readHcard(mutate(random.oneOf(corpus.hcards), random.oneOf(corpus.payloads), random)))

  const text = mutate(random.oneOf(corpus.texts), random.oneOf(corpus.texts), random)
  readMentions(text)
  readLinks(text)
  readTags(text)
}

function refusing(read: () => unknown): void {
  try {
    read()
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
