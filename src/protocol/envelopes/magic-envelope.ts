import type { KeyObject } from 'node:crypto'
import { addressOf, isAddress } from '../address.js'
import { decodeBase64url, encodeBase64url } from '../base64.js'
import { ProtocolError, type ProtocolFault } from '../errors.js'
import { sign, verify } from '../signatures/rsa.js'
import { readXml } from '../xml/xml.js'

/** An envelope whose signature has not been looked at yet. */
export interface MagicEnvelope {
  /** The address as the envelope has it; in capitals it equals no author. */
  readonly sender: string
  /** The XML of one entity. */
  readonly payload: Buffer
  readonly signature: Buffer
}

const namespace = 'http://salmon-protocol.org/ns/magic-env'
const dataType = 'application/xml'
const encoding = 'base64url'
const algorithm = 'RSA-SHA256'
const signedSuffix = ['', dataType, encoding, algorithm].map((part) => encodeBase64url(Buffer.from(part))).join('..')

/** Reads an envelope without trusting it. The faults come in the order of FEDERATION.md, "Magic envelope". */
export function readMagicEnvelope(source: string | Uint8Array): MagicEnvelope {
  const { data, keyId, signature } = readUsualForm(source) ?? readAnyForm(source)
  const sender = decode(keyId, 'the key_id').toString()
  expect(isAddress(sender.toLowerCase()), 'InvalidEnvelope', 'the key_id is no address')
  return { sender, payload: decode(data, 'the data'), signature: decode(signature, 'the signature') }
}

/** Throws `InvalidSignature` unless the owner of the key has signed this payload. */
export function verifyMagicEnvelope(envelope: MagicEnvelope, key: KeyObject): void {
  const fits = verify(signedBytes(encodeBase64url(envelope.payload)), key, envelope.signature)
  expect(fits, 'InvalidSignature', `the signature is not that of ${envelope.sender}`)
}

/** The payload in an envelope with the sender's signature, in the one form that all pods read. */
export function sealMagicEnvelope(payload: string, sender: string, key: KeyObject): string {
  const data = encodeBase64url(Buffer.from(payload))
  const signature = encodeBase64url(sign(signedBytes(data), key))
  return `<?xml version="1.0" encoding="UTF-8"?>
<me:env xmlns:me="${namespace}">
  <me:data type="${dataType}">${data}</me:data>
  <me:encoding>${encoding}</me:encoding>
  <me:alg>${algorithm}</me:alg>
  <me:sig key_id="${encodeBase64url(Buffer.from(sender))}">${signature}</me:sig>
</me:env>
`
}

/**
 * Who an envelope claims to be from and written by, found without reading it: enough to choose the keys that opening will need, and
 * nothing to be trusted.
 */
export function peekEnvelope(source: string): {
  readonly sender: string | undefined
  readonly author: string | undefined
} {
  const keyId = keyIdIn(source)
  // An author comes first in nearly all payloads, so there is seldom a reason to decode more than their beginning.
  const author = authorIn(source, dataBeginning) ?? authorIn(source, longData)
  return {
    sender: addressOf(Buffer.from(keyId ?? '', 'base64url').toString()),
    author: addressOf(author ?? ''),
  }
}

const keyIdAttribute = /\skey_id\s*=\s*["']([^"'<]{1,2048})["']/y
const dataBeginning = dataPattern(256)
const longData = dataPattern(8_192)

/** Looking for the name first is much faster than trying a pattern at each place of a long text. */
function keyIdIn(source: string): string | undefined {
  for (let at = source.indexOf('key_id', 1); at !== -1; at = source.indexOf('key_id', at + 1)) {
    keyIdAttribute.lastIndex = at - 1
    const [, keyId] = keyIdAttribute.exec(source) ?? []
    if (keyId !== undefined) return keyId
  }
  return undefined
}

/** It begins at a `<` and runs over none, or a long text of many beginnings would be read again from each of them. */
function dataPattern(longest: number): RegExp {
  return new RegExp(`<(?:[^<>\\s:/]{1,64}:)?data\\s[^<>]{0,1024}>([^<]{1,${longest}})`)
}

function authorIn(source: string, pattern: RegExp): string | undefined {
  const [, data] = pattern.exec(source) ?? []
  return data && /<author>([^<&]{1,255})<\/author>/.exec(Buffer.from(data, 'base64url').toString())?.[1]
}

/** The three texts of an envelope, as they stand. */
interface Parts {
  readonly data: string
  readonly keyId: string
  readonly signature: string
}

function readAnyForm(source: string | Uint8Array): Parts {
  const root = readXml(source, 'InvalidEnvelope')
  expect(root.name === 'env' && root.namespace === namespace, 'InvalidEnvelope', 'the root is no env of this protocol')
  const child = (name: string) => root.children.find((found) => found.name === name && found.namespace === namespace)

  const data = child('data')
  const sig = child('sig')
  if (data === undefined || data.text === '') throw new ProtocolError('InvalidEnvelope', 'there is no data')
  if (sig === undefined || sig.text === '') throw new ProtocolError('InvalidEnvelope', 'there is no signature')
  expect(data.attributes.get('type') === dataType, 'InvalidDataType', `the data is not of type ${dataType}`)
  expect(child('encoding')?.text === encoding, 'InvalidEncoding', `the encoding is not ${encoding}`)
  // The only one there is: an envelope does not choose how it is verified.
  expect(child('alg')?.text === algorithm, 'InvalidAlgorithm', `the algorithm is not ${algorithm}`)
  return { data: data.text, keyId: sig.attributes.get('key_id') ?? '', signature: sig.text }
}

const base64url = '([A-Za-z0-9_=-]+)'
const usualForm = new RegExp(
  [
    '^(?:<\\?xml version="1\\.0" encoding="UTF-8"\\?>)?',
    `<me:env xmlns:me="${namespace.replaceAll('..', '\\.')}">`,
    `<me:data type="${dataType}">${base64url}</me:data>`,
    `<me:encoding>${encoding}</me:encoding>`,
    `<me:alg>${algorithm}</me:alg>`,
    `<me:sig key_id="${base64url}">${base64url}</me:sig>`,
    '</me:env>',
    '$',
  ].join('[ \\t\\r\\n]*'),
)
const longestUsual = 64 * 1024

/**
 * What nearly all pods send has one form, in which nothing but base64 varies. Reading that with a pattern takes a tenth of the time; it
 * finds what `readAnyForm` would find, or nothing.
 */
function readUsualForm(source: string | Uint8Array): Parts | undefined {
  if (typeof source !== 'string' || source.length > longestUsual) return undefined
  const [, data, keyId, signature] = usualForm.exec(source) ?? []
  if (data === undefined || keyId === undefined || signature === undefined) return undefined
  return { data, keyId, signature }
}

function decode(text: string, what: string): Buffer {
  const bytes = decodeBase64url(text)
  if (bytes === undefined) throw new ProtocolError('InvalidEnvelope', `${what} is not base64url`)
  return bytes
}

/** Over the four parts with padding, however they were written. */
function signedBytes(data: string): Buffer {
  return Buffer.from(data + signedSuffix, 'latin1')
}

function expect(condition: boolean, fault: ProtocolFault, message: string): void {
  if (!condition) throw new ProtocolError(fault, message)
}
