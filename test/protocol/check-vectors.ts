import { deepEqual, equal, ok } from 'node:assert/strict'
import { isAddress } from '../../src/protocol/address.js'
import { entityFromJson } from '../../src/protocol/entities/entity-json.js'
import { isEntityJson } from '../../src/protocol/entities/entity-schema.js'
import { writeEntity } from '../../src/protocol/entities/entity-xml.js'
import { type Entity, isRelayable } from '../../src/protocol/entities/registry.js'
import { listElements } from '../../src/protocol/entities/relayable-elements.js'
import {
  readMagicEnvelope,
  signMagicEnvelope,
  verifyMagicEnvelope,
} from '../../src/protocol/envelopes/magic-envelope.js'
import { readLinks } from '../../src/protocol/mentions.js'
import { readMigration, signMigration } from '../../src/protocol/signatures/migration-signature.js'
import { signedText, signRelayable } from '../../src/protocol/signatures/relayable-signature.js'
import { isBirthday, isGuid, readFlag, readInteger, readTimestamp, writeTimestamp } from '../../src/protocol/values.js'
import { readXml } from '../../src/protocol/xml/xml.js'
import { checkDiscovery } from './check-discovery.js'
import { checkReceived } from './check-received.js'
import { openVector, receivedAt } from './open-vector.js'
import { readKeys, type VectorKeys } from './vector-keys.js'
import type { RelayVector, SendVector, Vectors } from './vectors.js'

/** One vector: `run` throws if the protocol core does not do what it says. */
export interface VectorCheck {
  readonly name: string
  run(): void
}

/** Every vector of a file as a check of its own. */
export function checksOf(vectors: Vectors): VectorCheck[] {
  const keys = readKeys(vectors.people)
  const describeVectors = <Vector extends { readonly name: string }>(
    section: string,
    list: readonly Vector[],
    run: (vector: Vector) => void,
  ) => list.map((vector) => ({ name: `${section}: ${vector.name}`, run: () => run(vector) }))

  return [
    ...describeVectors('receive', vectors.receive, (vector) => checkReceived(vector, keys, vectors)),
    ...describeVectors('send', vectors.send, (vector) => checkSent(vector, keys)),
    ...describeVectors('relay', vectors.relay, (vector) => checkRelayed(vector, keys)),
    ...describeVectors('discovery', vectors.discovery, checkDiscovery),
    ...describeVectors('schema', vectors.schema, ({ instance, valid }) => equal(isEntityJson(instance), valid)),
    ...typeChecks(vectors.types),
    ...vectors.links.map(({ text, links }) => ({
      name: `links: ${text}`,
      run: () =>
        deepEqual(
          readLinks(text).map(({ author, type, guid }) => [author, type, guid]),
          links,
        ),
    })),
  ]
}

/** Our payload and the one of the network have the same elements, and signatures come out the same to the letter. */
function checkSent(vector: SendVector, keys: VectorKeys): void {
  const sender = keys.of(vector.sender)
  const entity = signEntity(entityFromJson(vector.entity, receivedAt), vector, keys)
  deepEqual(fieldsOf(writeEntity(entity)), vector.fields)
  deepEqual(fieldsOf(vector.payload_xml), vector.fields)

  const envelope = signMagicEnvelope(vector.payload_xml, vector.sender, sender.privateKey)
  equal(withoutSpace(envelope), withoutSpace(vector.envelope_xml))
  for (const value of [vector.envelope_data, vector.envelope_key_id, vector.envelope_sig]) ok(envelope.includes(value))

  const own = readMagicEnvelope(signMagicEnvelope(writeEntity(entity), vector.sender, sender.privateKey))
  verifyMagicEnvelope(own, sender.publicKey)
  equal(own.sender, vector.sender)
}

function signEntity(entity: Entity, vector: SendVector, keys: VectorKeys): Entity {
  if (entity.type === 'account_migration') {
    const { from, to, witness } = readMigration(entity)
    equal(`AccountMigration:${from}:${to}`, vector.signed_text)
    return { ...entity, signature: signMigration({ from, to }, keys.of(witness).privateKey) }
  }
  if (!isRelayable(entity)) return entity

  equal(signedText(listElements(entity)), vector.signed_text)
  if (vector.author_signature === undefined) return entity
  const signature = signRelayable(entity, keys.of(entity.author).privateKey)
  equal(signature, vector.author_signature)
  return { ...entity, author_signature: signature }
}

function checkRelayed(vector: RelayVector, keys: VectorKeys): void {
  const opened = openVector(vector.input, keys)
  const payload = writeEntity(opened.entity)

  equal(opened.signature, 'valid')
  equal(opened.entity.author, vector.author)
  equal(readXml(payload, 'InvalidPayload').name, vector.relayed_root)
  deepEqual(fieldsOf(payload), vector.relayed_fields)

  const relayed = signMagicEnvelope(payload, vector.root_author, keys.of(vector.root_author).privateKey)
  const arrived = openVector(relayed, keys)
  equal(arrived.sender, vector.root_author)
  equal(arrived.signature, 'valid')
}

const readers: Readonly<Record<string, (text: string) => unknown>> = {
  diaspora_id: isAddress,
  guid: isGuid,
  boolean: (text) => readFlag(text) ?? null,
  integer: (text) => readInteger(text) ?? null,
  timestamp(text) {
    const date = readTimestamp(text)
    return date === undefined ? null : writeTimestamp(date)
  },
  birthday: isBirthday,
}

function typeChecks(types: Vectors['types']): VectorCheck[] {
  return Object.entries(types).flatMap(([type, pairs]) => {
    if (typeof pairs === 'string') return [] // the comment of the file
    return pairs.map(([text, result]) => ({
      name: `types: ${type} ${JSON.stringify(text)}`,
      run() {
        const read = readers[type]
        ok(read, `there is no type ${type}`)
        deepEqual(read(text), result)
      },
    }))
  })
}

/** Names and texts of a payload in order, null for nested entities. */
function fieldsOf(payload: string): (string | null)[][] {
  const { children } = readXml(payload, 'InvalidPayload')
  return children.map(({ name, text, children: nested }) => [name, nested.length > 0 ? null : text])
}

function withoutSpace(text: string): string {
  return text.replace(/\s+/g, '')
}
