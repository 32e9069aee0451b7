import { createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import { discoverPerson } from '../../src/federation/discovery/discover-person.js'
import { Person } from '../../src/persistence/models/person.js'
import { User } from '../../src/persistence/models/user.js'
import { writeEntity } from '../../src/protocol/entities/entity-xml.js'
import { postBy } from '../support/federation/entities.js'
import { encryptEnvelopeFor, envelopeOf } from '../support/federation/envelopes.js'
import { type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import type { TestPerson } from '../support/people/local-users.js'
import { type AttackedPod, dropped, startAttackedPod, TAKEN } from './attacked-pod.js'
import { forgedEnvelope } from './forged-envelope.js'

let fakePods: FakePods
let pod: AttackedPod
let ann: TestPerson
let quin: FakePerson
let keyOfAnn: string
let inboundPath: string
beforeAll(async () => {
  fakePods = await startFakePods()
  pod = await startAttackedPod({ fakePods })
  ;({ ann } = await pod.people('ann'))
  quin = fakePods.person('quin@q.example')
  await pod.addRemotePerson(quin)
  keyOfAnn = (await Person.query(pod.db).findOne({ guid: ann.account.guid }).throwIfNotFound()).publicKey
  inboundPath = `/receive/users/${ann.account.guid}`
})
afterAll(async () => {
  await pod.close()
  await fakePods.close()
})

/** The same encrypted envelope with one byte of one member changed. */
function withOtherByte(encryptedEnvelope: string, member: 'aes_key' | 'encrypted_magic_envelope', at: number): string {
  const parts: Record<string, string> = JSON.parse(encryptedEnvelope)
  const bytes = Buffer.from(parts[member] ?? '', 'base64')
  const place = at % bytes.length
  bytes.writeUInt8(bytes.readUInt8(place) ^ 1, place)
  return JSON.stringify({ ...parts, [member]: bytes.toString('base64') })
}

describe('S20: an envelope that cannot be decrypted', () => {
  it('is dropped with the same reason, for every defect', async () => {
    const encryptedEnvelope = encryptEnvelopeFor(keyOfAnn, envelopeOf(quin, postBy(quin, { public: false })))
    const size = Buffer.from(JSON.parse(encryptedEnvelope).aes_key, 'base64').length
    const asked = fakePods.requests.length
    const broken = [
      ...Array.from({ length: 150 }, (_, index) => withOtherByte(encryptedEnvelope, 'aes_key', index * 7)),
      ...Array.from({ length: 150 }, (_, index) =>
        withOtherByte(encryptedEnvelope, 'encrypted_magic_envelope', index * 5),
      ),
      ...Array.from({ length: 50 }, () => {
        const key = Buffer.concat([Buffer.alloc(1), randomBytes(size - 1)]).toString('base64')
        return JSON.stringify({ aes_key: key, encrypted_magic_envelope: randomBytes(64).toString('base64') })
      }),
    ]
    const line = pod.recordedLog.lines.length

    const statuses = await Promise.all(broken.map((body) => pod.post(inboundPath, body)))
    await pod.waitUntilIdle()

    expect(new Set(statuses)).toEqual(new Set([202]))
    const said = pod.recordedLog.entries().slice(line)
    const ends = said
      .filter(({ msg }) => msg === 'inbound message rejected')
      .map(({ level, fault, reason }) => ({ level, fault, reason }))
    expect(ends).toHaveLength(broken.length)
    expect(new Set(ends.map((end) => JSON.stringify(end))).size).toBe(1)
    expect(ends[0]).toMatchObject({ fault: 'DecryptionFailed' })
    expect(fakePods.requests.slice(asked)).toEqual([])
  })
})

describe('S21: no request to a pod is caused by', () => {
  const naming = (host: string) =>
    `<x key_id="${Buffer.from(`eve@${host}`).toString('base64url')}"><author>eve@${host}</author></x>`

  it.each([
    [
      'an envelope that cannot be decrypted',
      () => ({
        path: inboundPath,
        body: withOtherByte(encryptEnvelopeFor(keyOfAnn, naming('v1.example')), 'aes_key', 9),
      }),
      'DecryptionFailed',
    ],
    [
      'an encrypted envelope with other contents',
      () => ({ path: inboundPath, body: encryptEnvelopeFor(keyOfAnn, naming('v1.example')) }),
      'InvalidEnvelope',
    ],
    ['an envelope that is none', () => naming('v1.example'), 'InvalidEnvelope'],
    [
      'an envelope whose signer has no address',
      () => forgedEnvelope(quin, writeEntity(postBy(quin)), { keyId: 'v1.example' }),
      'InvalidEnvelope',
    ],
  ] as const)('%s', async (_what, message, fault) => {
    const asked = fakePods.requests.length

    expect(await pod.send(message())).toEqual(dropped(fault))
    expect(fakePods.requests.slice(asked)).toEqual([])
  })

  it('but an unknown person with a signed envelope causes one lookup', async () => {
    const eve = fakePods.person('eve@v2.example')

    const { changes } = await pod.send({
      path: inboundPath,
      body: encryptEnvelopeFor(keyOfAnn, envelopeOf(eve, postBy(eve, { public: false }))),
    })

    expect(changes).toMatchObject({ posts: 1, people: 1 })
    expect(fakePods.requests.filter((request) => request.startsWith('v2.example/.well-known/webfinger'))).toHaveLength(
      1,
    )
  })
})

describe('S22: a key of', () => {
  const spki = (key: { export(options: { type: 'spki'; format: 'pem' }): string | Buffer }) =>
    key.export({ type: 'spki', format: 'pem' }).toString()
  const rsaOf = (bits: number, exponent = 'AQAB') => {
    const modulus = randomBytes(bits / 8)
    modulus.writeUInt8(modulus.readUInt8(0) | 0x80, 0)
    modulus.writeUInt8(modulus.readUInt8(modulus.length - 1) | 1, modulus.length - 1)
    return spki(createPublicKey({ format: 'jwk', key: { kty: 'RSA', n: modulus.toString('base64url'), e: exponent } }))
  }

  it.each<[string, () => string]>([
    ['512 bits', () => rsaOf(512)],
    ['1016 bits', () => rsaOf(1016)],
    ['8200 bits', () => rsaOf(8200)],
    ['16384 bits', () => rsaOf(16_384)],
    ['a huge exponent', () => rsaOf(2048, randomBytes(255).toString('base64url'))],
    ['an elliptic curve', () => spki(generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey)],
    ['ed25519', () => spki(generateKeyPairSync('ed25519').publicKey)],
    [
      'a private key',
      () =>
        generateKeyPairSync('rsa', { modulusLength: 1024 })
          .privateKey.export({ type: 'pkcs8', format: 'pem' })
          .toString(),
    ],
    ['garbage', () => '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----'],
    ['nothing', () => ''],
  ])('%s creates no person', async (_what, makeKey) => {
    const unknownPerson = fakePods.person(`s${newGuid().slice(0, 8)}@k.example`, { publicKey: makeKey() })

    await expect(discoverPerson(pod, unknownPerson.address)).rejects.toMatchObject({
      fault: 'DiscoveryFailed',
      message: expect.stringContaining('key'),
    })
    expect(await Person.byAddress(pod.db, unknownPerson.address)).toBeUndefined()
  })

  it.each([1024, 8192])('%i bits is fine', async (bits) => {
    const unknownPerson = fakePods.person(`s${newGuid().slice(0, 8)}@k.example`, { publicKey: rsaOf(bits) })

    expect(await discoverPerson(pod, unknownPerson.address)).toMatchObject({ address: unknownPerson.address })
  })
})

it('S23: a second hCard changes neither key nor guid nor pod, and signatures of its key are invalid', async () => {
  const first = fakePods.person('pia@pin.example')
  const known = await discoverPerson(pod, first.address)
  const second = fakePods.person('pia@pin.example')
  fakePods.script(`pin.example/.well-known/webfinger`, (_request, response) =>
    response.end(
      JSON.stringify({
        ...fakePods.webFinger(second),
        links: fakePods
          .webFinger(second)
          .links.map((link) =>
            link.rel.endsWith('seed_location') ? { ...link, href: 'https://elsewhere.example/' } : link,
          ),
      }),
    ),
  )

  const refreshed = await discoverPerson(pod, first.address, { refresh: true })

  expect(refreshed).toMatchObject({ guid: known.guid, publicKey: known.publicKey, podId: known.podId })
  expect(await pod.send(envelopeOf(second, postBy(second)))).toEqual(dropped('InvalidSignature'))
  expect(await pod.send(envelopeOf(first, postBy(first)))).toMatchObject({ ...TAKEN, changes: { posts: 1 } })
})

describe('S24: the private keys of this pod', () => {
  it('are readable in no row of the database', async () => {
    const { rows } = await pod.db.raw<{ rows: readonly { readonly name: string }[] }>(
      `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
       where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`,
    )
    const withKeys: string[] = []
    for (const { name } of rows) {
      const found = await pod.db.raw(`select 1 from ${name} as row where row::text ~ 'PRIVATE KEY' limit 1`)
      if (found.rows.length > 0) withKeys.push(name)
    }

    expect(rows.length).toBeGreaterThan(30)
    expect(withKeys).toEqual([])
  })

  it('are not loaded by queries for a user', async () => {
    const user = await User.query(pod.db).findOne({ username: 'ann' }).withGraphFetched('person.[pod, profile]')

    expect(JSON.stringify(user)).toContain(ann.account.guid)
    expect(JSON.stringify(user)).not.toMatch(/private|sealed|password/i)
  })

  it('and passwords are in no response', async () => {
    for (const path of [
      '/api/v1/user',
      `/api/v1/users/${ann.account.guid}`,
      `/people/${ann.account.guid}`,
      `/hcard/users/${ann.account.guid}`,
    ]) {
      const { statusCode, body } = await ann.get(path)
      expect([path, statusCode]).toEqual([path, 200])
      expect(body).not.toMatch(/PRIVATE KEY|sealed|password|argon2/i)
    }
  })
})

it('S25: the web process receives private messages without using any key', async () => {
  const used: string[] = []
  const noKeys = (name: string) => () => {
    used.push(name)
    return Promise.reject(new Error('The web process has no business with keys of messages.'))
  }
  await using attackedPod = await startAttackedPod({
    fakePods,
    queues: [],
    change: (opened) => ({
      ...opened,
      crypto: {
        ...opened.crypto,
        verifyEnvelopes: noKeys('verifyEnvelopes'),
        decryptEnvelopes: noKeys('decryptEnvelopes'),
        signRelayable: noKeys('signRelayable'),
        signEnvelope: noKeys('signEnvelope'),
        signEnvelopes: noKeys('signEnvelopes'),
        encryptEnvelopes: noKeys('encryptEnvelopes'),
      },
    }),
  })
  const { bob } = await attackedPod.people('bob')
  const { publicKey } = await Person.query(attackedPod.db).findOne({ guid: bob.account.guid }).throwIfNotFound()
  const message = encryptEnvelopeFor(publicKey, envelopeOf(quin, postBy(quin, { public: false })))

  const statuses = await Promise.all(
    Array.from({ length: 100 }, () => attackedPod.post(`/receive/users/${bob.account.guid}`, message)),
  )

  expect(new Set(statuses)).toEqual(new Set([202]))
  expect(used).toEqual([])
})
