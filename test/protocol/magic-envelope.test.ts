import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodeBase64url } from '../../src/protocol/base64.js'
import {
  peekEnvelope,
  readMagicEnvelope,
  signMagicEnvelope,
  verifyMagicEnvelope,
} from '../../src/protocol/envelopes/magic-envelope.js'
import { ProtocolError } from '../../src/protocol/errors.js'
import { signRsaSha256 } from '../../src/protocol/signatures/rsa.js'
import { cleanText, writeXml } from '../../src/protocol/xml/xml.js'

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
const sender = 'ann@p.example'
const payload = '<account_deletion>\n  <author>ann@p.example</author>\n</account_deletion>'
const data = 'PGFjY291bnRfZGVsZXRpb24-CiAgPGF1dGhvcj5hbm5AcC5leGFtcGxlPC9hdXRob3I-CjwvYWNjb3VudF9kZWxldGlvbj4='
const signedText = `${data}.YXBwbGljYXRpb24veG1s.YmFzZTY0dXJs.UlNBLVNIQTI1Ng==`
const signature = encodeBase64url(signRsaSha256(Buffer.from(signedText), privateKey))
const sealed = signMagicEnvelope(payload, sender, privateKey)

/** The sealed envelope with one thing changed. */
function changeEnvelope(from: string | RegExp, to: string): string {
  const envelope = sealed.replace(from, to)
  if (envelope === sealed) throw new Error(`nothing to change: ${String(from)}`)
  return envelope
}

function open(envelope: string): string {
  const read = readMagicEnvelope(envelope)
  verifyMagicEnvelope(read, publicKey)
  expect(read.sender).toBe(sender)
  return read.payload.toString()
}

function faultOf(envelope: string): string {
  try {
    open(envelope)
  } catch (error) {
    if (error instanceof ProtocolError) return error.fault
    throw error
  }
  return 'none'
}

function outcomeOf(envelope: string): unknown {
  try {
    return readMagicEnvelope(envelope)
  } catch (error) {
    return error instanceof ProtocolError ? error.fault : error
  }
}

describe('sealing', () => {
  it('writes the one form that all pods read, signed over the four parts with padding', () => {
    expect(sealed).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<me:env xmlns:me="http://salmon-protocol.org/ns/magic-env">
  <me:data type="application/xml">${data}</me:data>
  <me:encoding>base64url</me:encoding>
  <me:alg>RSA-SHA256</me:alg>
  <me:sig key_id="YW5uQHAuZXhhbXBsZQ==">${signature}</me:sig>
</me:env>
`)
  })

  it('is read back for any payload', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const xml = writeXml({ name: 'comment', content: cleanText(text) })
        expect(open(signMagicEnvelope(xml, sender, privateKey))).toBe(xml)
      }),
    )
  })
})

describe('an envelope of other software', () => {
  it.each([
    ['without padding', changeEnvelope(/=+</g, '<')],
    ['with line breaks in its base64', changeEnvelope(data, `\n  ${data.slice(0, 60)}\r\n  ${data.slice(60)}\n`)],
    ['in the standard alphabet', changeEnvelope(data, data.replaceAll('-', '+'))],
    ['with another prefix', changeEnvelope(/\bme\b/g, 'salmon')],
    ['with a default namespace', changeEnvelope(/\bme:|:me\b/g, '')],
    ['without a declaration', changeEnvelope(/^.*\n/, '')],
    ['on one line', changeEnvelope(/\n */g, '')],
    ['with its children in another order', changeEnvelope(/( *<me:data.*\n)([\s\S]*)(<\/me:env>)/, '$2$1$3')],
    [
      'with unknown children and comments',
      changeEnvelope('<me:encoding>', '<!-- a --><me:x><me:data/></me:x><y/><me:encoding>'),
    ],
    ['with a second signature', changeEnvelope('</me:env>', '<me:sig key_id="eA==">eA==</me:sig></me:env>')],
    ['with CDATA', changeEnvelope(data, `<![CDATA[${data}]]>`)],
  ])('may come %s', (_what, envelope) => expect(open(envelope)).toBe(payload))

  it.each([
    ['nothing', '', 'InvalidEnvelope'],
    ['no XML', 'hello', 'InvalidEnvelope'],
    ['JSON', '{}', 'InvalidEnvelope'],
    ['a bare entity', payload, 'InvalidEnvelope'],
    ['text behind its end', `${sealed}\u00a0`, 'InvalidEnvelope'],
    ['a document type', changeEnvelope('<me:env', '<!DOCTYPE env><me:env'), 'InvalidEnvelope'],
    ['another root', changeEnvelope(/me:env\b/g, 'me:envelope'), 'InvalidEnvelope'],
    ['another namespace', changeEnvelope('/ns/magic-env"', '/ns/magic-env/"'), 'InvalidEnvelope'],
    [
      'a root of another namespace',
      changeEnvelope(/me:env(?=.*>)/g, 'x:env').replace('xmlns:me', 'xmlns:x="urn:x" xmlns:me'),
      'InvalidEnvelope',
    ],
    ['children of no namespace', changeEnvelope(/(<\/?)me:data/g, '$1data'), 'InvalidEnvelope'],
    ['no data', changeEnvelope(/<me:data.*\n/, ''), 'InvalidEnvelope'],
    ['empty data', changeEnvelope(data, ''), 'InvalidEnvelope'],
    ['no signature', changeEnvelope(/<me:sig.*\n/, ''), 'InvalidEnvelope'],
    ['an empty signature', changeEnvelope(signature, ''), 'InvalidEnvelope'],
    ['no type', changeEnvelope(' type="application/xml"', ''), 'InvalidDataType'],
    ['another type', changeEnvelope('application/xml', 'text/xml'), 'InvalidDataType'],
    ['no encoding', changeEnvelope(/<me:encoding.*\n/, ''), 'InvalidEncoding'],
    ['another encoding', changeEnvelope('>base64url<', '>base64<'), 'InvalidEncoding'],
    ['no algorithm', changeEnvelope(/<me:alg.*\n/, ''), 'InvalidAlgorithm'],
    ['the algorithm none', changeEnvelope('RSA-SHA256', 'none'), 'InvalidAlgorithm'],
    ['the algorithm in lower case', changeEnvelope('RSA-SHA256', 'rsa-sha256'), 'InvalidAlgorithm'],
    ['the algorithm with blanks', changeEnvelope('RSA-SHA256', ' RSA-SHA256 '), 'InvalidAlgorithm'],
    ['a weaker algorithm', changeEnvelope('RSA-SHA256', 'RSA-SHA1'), 'InvalidAlgorithm'],
    ['no key_id', changeEnvelope(/ key_id="[^"]*"/, ''), 'InvalidEnvelope'],
    ['a key_id that is not base64url', changeEnvelope(/key_id="[^"]*"/, 'key_id="ann@p.example"'), 'InvalidEnvelope'],
    ['a key_id that is not an address', changeEnvelope(/key_id="[^"]*"/, 'key_id="YW5u"'), 'InvalidEnvelope'],
    [
      'a foreign character in the data',
      changeEnvelope(data, `${data.slice(0, 8)}?${data.slice(8)}`),
      'InvalidEnvelope',
    ],
    ['a foreign character in the signature', changeEnvelope(signature, `§${signature}`), 'InvalidEnvelope'],
    ['data cut inside a group', changeEnvelope(data, data.slice(0, 5)), 'InvalidEnvelope'],
    ['changed data', changeEnvelope(data, data.replace('P', 'Q')), 'InvalidSignature'],
    ['data cut between groups', changeEnvelope(data, data.slice(0, 8)), 'InvalidSignature'],
    [
      'a changed signature',
      changeEnvelope(
        signature,
        signature.replace(/^./, (first) => (first === 'A' ? 'B' : 'A')),
      ),
      'InvalidSignature',
    ],
    ['a signature over the data alone', changeEnvelope(signature, signatureOver(data)), 'InvalidSignature'],
    [
      'a signature over parts not encoded',
      changeEnvelope(signature, signatureOver(`${data}.application/xml.base64url.RSA-SHA256`)),
      'InvalidSignature',
    ],
    [
      'a signature over parts not padded',
      changeEnvelope(signature, signatureOver(signedText.replaceAll('=', ''))),
      'InvalidSignature',
    ],
  ])('is refused with %s', (_what, envelope, fault) => expect(faultOf(envelope)).toBe(fault))

  it('is read equally in the usual form, which has a separate reader, and with a comment in it', () => {
    const base64 = fc.string({ unit: fc.constantFrom(...'AQgw-_+/=9 '), minLength: 1, maxLength: 12 })
    const part = fc.oneof(
      base64,
      fc.string({ minLength: 16, maxLength: 30 }).map((text) => encodeBase64url(Buffer.from(text))),
    )
    fc.assert(
      fc.property(part, fc.oneof(part, fc.constant('YW5uQHAuZXhhbXBsZQ==')), part, (data, keyId, signature) => {
        const usual = changeEnvelope(/>[^<]*<\/me:data>/, `>${data}</me:data>`)
          .replace(/key_id="[^"]*"/, `key_id="${keyId}"`)
          .replace(/>[^<]*<\/me:sig>/, `>${signature}</me:sig>`)
        expect(outcomeOf(usual)).toEqual(outcomeOf(usual.replace('<me:alg>', '<!-- --><me:alg>')))
      }),
    )
  })

  it('is read when it is long', () => {
    const long = writeXml({ name: 'comment', content: 'x'.repeat(1_000_000) })

    expect(open(signMagicEnvelope(long, sender, privateKey))).toBe(long)
  })

  it('keeps the sender unchanged, so that capitals match no author', () => {
    const inCapitals = signMagicEnvelope(payload, 'Ann@P.example', privateKey)

    expect(readMagicEnvelope(inCapitals).sender).toBe('Ann@P.example')
  })
})

describe('peeking', () => {
  it('finds who claims to have signed and written an envelope', () => {
    const comment = '<comment><guid>x</guid><author>quin@q.example</author><text>t</text></comment>'

    expect(peekEnvelope(signMagicEnvelope(comment, 'Ann@p.example', privateKey))).toEqual({
      sender: 'ann@p.example',
      author: 'quin@q.example',
    })
  })

  it('finds them in envelopes of other software, too', () => {
    const wild = changeEnvelope(/\bme:|:me\b/g, '').replace(data, `\n${data.replaceAll('-', '+')}`)

    expect(peekEnvelope(wild)).toEqual({ sender, author: sender })
  })

  it.each([
    '',
    'hello',
    '<me:sig key_id="?">',
    `<data type="x">${'A'.repeat(100_000)}<`,
    'key_id='.repeat(100_000),
    `<x:data ${':data '.repeat(200_000)}`,
    // Only what a `<` begins is looked at, however much there is that looks like it.
    `:data x>${encodeBase64url(Buffer.from(`<author>${sender}</author>`))}<`,
  ])('finds no sender in garbage: %.20s', (text) =>
    expect(peekEnvelope(text)).toEqual({ sender: undefined, author: undefined }),
  )
})

function signatureOver(text: string): string {
  return encodeBase64url(signRsaSha256(Buffer.from(text), privateKey))
}
