import {
  type CheckResult,
  checkFailure,
  checkPassed,
  checkWarning,
  withCheckFailure,
} from '../../src/domain/operations/check-result.js'
import { messageOf } from '../../src/errors/thrown.js'
import { jrdTypes, webFingerUrl } from '../../src/federation/discovery/discover-person.js'
import { parseHomeUrl } from '../../src/federation/discovery/pod-location.js'
import { profileImageUrl } from '../../src/federation/discovery/profile-image.js'
import { splitAddress } from '../../src/protocol/address.js'
import { readHcard, readWebFinger } from '../../src/protocol/discovery/discovery-documents.js'
import { readHcardFields } from '../../src/protocol/discovery/hcard-fields.js'
import { readPublicKey } from '../../src/protocol/signatures/rsa.js'
import { firstCharacters, isAcceptedName, isGuid, isUrlWithPath } from '../../src/protocol/values.js'
import type { LookupServices } from '../../src/services/services.js'
import { isSuccess, sendRequest } from './send-request.js'

export interface ProbedPerson {
  readonly findings: readonly CheckResult[]
  /** Known data of the person. */
  readonly podUrl?: string
  readonly guid?: string
  readonly publicKey?: string
}

const STRONG_BITS = 2_048
const NETWORK_REL = 'http://joindiaspora.com/seed_location'

/** Performs the discovery of a person step by step and reports each step. */
export async function probePerson(services: LookupServices, address: string): Promise<ProbedPerson> {
  const home = parseHomeUrl(address)
  if (home === undefined) return { findings: [checkFailure('address', `${address} has no valid host name.`)] }
  const exchange = await sendRequest(services, webFingerUrl(home, address), jrdTypes)
  if ('fault' in exchange) return { findings: [checkFailure('webfinger', exchange.fault)] }
  const { response } = exchange
  if (!isSuccess(response)) {
    return {
      findings: [
        checkFailure('webfinger', `${response.url.href} was answered with status ${response.status}, not 200.`),
      ],
    }
  }
  const json = response.body.toString()
  const findings = [mediaType('webfinger', response.contentType, 'application/jrd+json'), ...links(json, address)]
  if (findings.some(({ state }) => state === 'fail')) return { findings }

  const { hcardUrl, podUrl } = readWebFinger(json, address)
  const card = await probeHcard(services, hcardUrl, { address, podUrl })
  return { ...card, podUrl, findings: [...findings, ...checkPodHost(podUrl, home), ...card.findings] }
}

function mediaType(check: string, type: string | undefined, expected: string): CheckResult {
  if (type?.startsWith(expected)) return checkPassed(check, `It answers, as ${type}.`)
  return checkWarning(
    check,
    `It answers as ${type ?? 'something without a media type'}; most readers do not mind, but it should be ${expected}.`,
  )
}

function links(json: string, address: string): readonly CheckResult[] {
  const document: unknown = parse(json)
  if (typeof document !== 'object' || document === null)
    return [checkFailure('webfinger', 'The answer is not a JSON object.')]
  const subject = memberOf(document, 'subject')
  const isAbout = typeof subject === 'string' && subject.replace(/^acct:/i, '').toLowerCase() === address
  return [
    isAbout
      ? checkPassed('subject', `The subject is ${address}.`)
      : checkFailure('subject', describeSubjectMismatch(subject, address)),
    linksOf({ ...document, subject: address }, address),
  ]
}

function linksOf(document: object, address: string): CheckResult {
  try {
    readWebFinger(JSON.stringify(document), address)
  } catch (error) {
    return checkFailure('links', `${messageOf(error)}.`)
  }
  const links = memberOf(document, 'links')
  const rels: unknown[] = Array.isArray(links) ? links.map((link) => memberOf(link, 'rel')) : []
  if (rels.includes(NETWORK_REL)) return checkPassed('links', 'The document names the hCard and the pod.')
  return checkWarning(
    'links',
    `It names the pod by the host of the address only; diaspora* itself looks for ${NETWORK_REL}.`,
  )
}

function describeSubjectMismatch(subject: unknown, address: string): string {
  if (typeof subject !== 'string') return `The document has no subject: it should be acct:${address}.`
  return `The subject is ${JSON.stringify(subject.slice(0, 255))}, not acct:${address}: other pods ignore the document.`
}

function checkPodHost(podUrl: string, home: URL): readonly CheckResult[] {
  const url = new URL(podUrl)
  if (url.host === home.host) return [checkPassed('pod', `The pod of this person is ${podUrl}`)]
  return [checkWarning('pod', `The pod of this person is ${podUrl}; the host differs from that of the address.`)]
}

async function probeHcard(
  services: LookupServices,
  url: string,
  person: { readonly address: string; readonly podUrl: string },
): Promise<ProbedPerson> {
  const exchange = await sendRequest(services, url, 'text/html')
  if ('fault' in exchange) return { findings: [checkFailure('hcard', exchange.fault)] }
  const { response } = exchange
  if (!isSuccess(response))
    return { findings: [checkFailure('hcard', `${url} was answered with status ${response.status}, not 200.`)] }
  const html = response.body.toString()
  const findings = await withCheckFailure('hcard', async () => {
    const fields = readHcardFields(html)
    const images = await imagesIn(services, fields, person.podUrl)
    return [...textsIn(fields, person.address), keyIn(fields.get('key') ?? ''), ...images, checkDiscovery(html)]
  })
  const healthy = findings.every(({ state }) => state !== 'fail')
  const card = healthy ? readHcard(html) : undefined
  return {
    ...(card && { guid: card.guid, publicKey: card.publicKey }),
    findings: [mediaType('hcard', response.contentType, 'text/html'), ...findings],
  }
}

type Fields = ReturnType<typeof readHcardFields>

function textsIn(fields: Fields, address: string): readonly CheckResult[] {
  const text = (field: Parameters<Fields['get']>[0]) => fields.get(field)?.trim()
  const guid = text('uid') ?? ''
  const nickname = text('nickname')
  const searchable = text('searchable')
  return [
    isGuid(guid)
      ? checkPassed('uid', `The guid is ${guid}.`)
      : checkFailure('uid', `There is no element of class uid with a guid: ${quoteUntrusted(guid)}.`),
    fields.has('fn')
      ? name('fn', text('fn') ?? '', 70)
      : checkFailure('fn', 'The element of class fn is missing; it is required, but may be empty.'),
    name('given_name', text('given_name') ?? '', 32),
    name('family_name', text('family_name') ?? '', 32),
    nickname === splitAddress(address)?.name
      ? checkPassed('nickname', `The nickname is ${nickname}.`)
      : checkWarning('nickname', `It is ${quoteUntrusted(nickname ?? '')}, and should be the name in the address.`),
    searchable === 'true' || searchable === 'false'
      ? checkPassed('searchable', `The value is ${searchable}.`)
      : checkWarning('searchable', `It is ${quoteUntrusted(searchable ?? '')}; everything but true counts as false.`),
  ]
}

function name(check: string, text: string, maxCharacters: number): CheckResult {
  if (isAcceptedName(text, maxCharacters))
    return checkPassed(check, text === '' ? 'It is empty.' : `It is ${quoteUntrusted(text)}.`)
  return checkFailure(
    check,
    `${quoteUntrusted(text)} has a semicolon or more than ${maxCharacters} characters: other pods refuse the person.`,
  )
}

function keyIn(pem: string): CheckResult {
  const key = readPublicKey(pem.trim())
  if (key === undefined) {
    return checkFailure(
      'key',
      'There is no pre element of class key with an RSA public key of 1024 to 8192 bits as PEM.',
    )
  }
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
  if (bits >= STRONG_BITS) return checkPassed('key', `RSA key of ${bits} bits.`)
  return checkWarning('key', `It is an RSA key of ${bits} bits, which is too short to be safe: use at least 2048.`)
}

const frames = ['entity_photo', 'entity_photo_medium', 'entity_photo_small'] as const

async function imagesIn(services: LookupServices, fields: Fields, podUrl: string): Promise<readonly CheckResult[]> {
  return Promise.all(frames.map((frame) => imageIn(services, frame, fields.get(frame) ?? '', podUrl)))
}

async function imageIn(services: LookupServices, frame: string, text: string, podUrl: string): Promise<CheckResult> {
  if (!isUrlWithPath(text)) {
    return checkFailure(
      frame,
      `There is no picture of class photo with a URL inside of it: other pods refuse the person.`,
    )
  }
  if (/user\/default/.test(text)) return checkPassed(frame, 'The person has no picture of their own.')
  const url = profileImageUrl(text, podUrl)
  if (url === null)
    return checkWarning(
      frame,
      `${quoteUntrusted(text)} is not a web address, and the person is shown without a picture.`,
    )
  const exchange = await sendRequest(services, url, 'image/*')
  if ('fault' in exchange) return checkWarning(frame, `${url} cannot be shown: ${exchange.fault}`)
  const { status, contentType } = exchange.response
  if (isSuccess(exchange.response) && contentType?.startsWith('image/'))
    return checkPassed(frame, `${url} is ${contentType}.`)
  return checkWarning(
    frame,
    `${url} was answered with status ${status} as ${contentType ?? 'nothing with a media type'}, which is not a picture.`,
  )
}

function checkDiscovery(html: string): CheckResult {
  try {
    readHcard(html)
    return checkPassed('discovery', 'Other pods can discover this person.')
  } catch (error) {
    return checkFailure('discovery', `Other pods cannot discover this person: ${messageOf(error)}.`)
  }
}

/** Untrusted text for the terminal. */
function quoteUntrusted(text: string): string {
  return text === '' ? 'empty' : JSON.stringify(firstCharacters(text, 80))
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

function memberOf(value: unknown, member: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, member)) return undefined
  return (value as Record<string, unknown>)[member] // an object that has this member
}
