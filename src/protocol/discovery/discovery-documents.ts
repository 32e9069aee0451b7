import { splitAddress } from '../address.js'
import { ProtocolError } from '../errors.js'
import { escapeHtml } from '../escape-html.js'
import { isUrl } from '../is-url.js'
import { readMember } from '../json-member.js'
import { readPublicKey } from '../signatures/rsa.js'
import { isAcceptedName, isGuid, isUrlWithHost, isUrlWithHostAndPath, isUrlWithPath } from '../values.js'
import { cleanText } from '../xml/xml.js'
import { type HcardFields, readHcardFields } from './hcard-fields.js'

/** The links of a person's WebFinger document. */
export interface PersonLinks {
  readonly hcardUrl: string
  /** The root of the pod, with a slash at the end. */
  readonly podUrl: string
  /** The signed message of the move of a person who has moved. */
  readonly successorUrl?: string
}

/** The contents of a person's hCard. */
export interface Hcard {
  readonly guid: string
  /** PEM */
  readonly publicKey: string
  readonly nickname: string
  readonly fullName: string
  readonly firstName: string
  readonly lastName: string
  /** Whether the person appears in searches. */
  readonly searchable: boolean
  /** 300 pixels wide and high. */
  readonly imageUrl: string
  /** 100 pixels. */
  readonly imageUrlMedium: string
  /** 50 pixels. */
  readonly imageUrlSmall: string
}

const hcardRel = 'http://microformats.org/profile/hcard'
/** All pods use this value, in spite of its host name. */
const podRel = 'http://joindiaspora.com/seed_location'
/** The page on which users of a pod follow others. */
const subscribeRel = 'http://ostatus.org/schema/1.0/subscribe'

/** On documents of people who have moved. */
const successorRel = 'successor-version'

/** Throws `DiscoveryFailed` unless the document describes this address and links to its pod and hCard. */
export function readWebFinger(json: string, address: string): PersonLinks {
  const document = parseJson(json)
  const subject = readMember(document, 'subject')
  const isAbout = typeof subject === 'string' && subject.replace(/^acct:/i, '').toLowerCase() === address
  if (!isAbout) throw new ProtocolError('DiscoveryFailed', `the WebFinger document is not about ${address}`)
  const hrefOf = (rel: string) => readLink(document, rel, 'href')

  const hcardUrl = hrefOf(hcardRel) ?? ''
  if (webUrl(hcardUrl) === undefined || !isUrlWithHostAndPath(hcardUrl)) {
    throw new ProtocolError('DiscoveryFailed', 'the WebFinger document has no usable link to an hCard')
  }
  const podUrl = webUrl(hrefOf(podRel) ?? hrefOf(podRelOf(splitAddress(address)?.host ?? '')) ?? '')
  if (podUrl === undefined) {
    throw new ProtocolError('DiscoveryFailed', 'the WebFinger document has no usable link to a pod')
  }
  const successorUrl = webUrl(hrefOf(successorRel) ?? '')
  return { hcardUrl, podUrl: `${podUrl.origin}/`, ...(successorUrl && { successorUrl: successorUrl.href }) }
}

/** Returns where users of a pod follow others, from the WebFinger document of one of them; `{uri}` stands for the address. */
export function readSubscribeTemplate(json: string): string {
  const template = readLink(parseJson(json), subscribeRel, 'template')
  // Braces are not valid in a URL.
  if (template?.includes('{uri}') !== true || webUrl(template.replaceAll('{uri}', '0')) === undefined) {
    throw new ProtocolError('DiscoveryFailed', 'the WebFinger document names no usable page for following')
  }
  return template
}

function readLink(document: unknown, rel: string, member: 'href' | 'template'): string | undefined {
  const links = readMember(document, 'links')
  const link: unknown = Array.isArray(links)
    ? links.find((candidate) => readMember(candidate, 'rel') === rel)
    : undefined
  const value = readMember(link, member)
  return typeof value === 'string' ? value : undefined
}

/** `isUrlWithHost` comes first: `URL` finds a host in texts that have none. */
function webUrl(text: string): URL | undefined {
  if (!isUrlWithHost(text) || !isUrl(text)) return undefined
  const url = new URL(text)
  return url.protocol === 'https:' || url.protocol === 'http:' ? url : undefined
}

/** The WebFinger document (JRD) of a local person. `podUrl` ends with a slash. */
export function writeWebFinger(person: {
  readonly address: string
  readonly guid: string
  readonly podUrl: string
  /** The issuer of ID tokens; default: `podUrl`. */
  readonly issuer?: string | undefined
  /** Where the message of the person's move is. */
  readonly successorUrl?: string | undefined
}) {
  const { address, guid, podUrl, issuer = podUrl, successorUrl } = person
  const { name = '', host = '' } = splitAddress(address) ?? {}
  return {
    subject: `acct:${address}`,
    aliases: [`${podUrl}people/${guid}`],
    links: [
      { rel: hcardRel, type: 'text/html', href: `${podUrl}hcard/users/${guid}` },
      { rel: podRel, type: 'text/html', href: podUrl },
      { rel: podRelOf(host), type: 'text/html', href: podUrl },
      { rel: 'http://webfinger.net/rel/profile-page', type: 'text/html', href: `${podUrl}u/${name}` },
      { rel: 'salmon', href: `${podUrl}receive/users/${guid}` },
      { rel: subscribeRel, template: `${podUrl}people?q={uri}` },
      { rel: 'http://openid.net/specs/connect/1.0/issuer', href: issuer },
      ...(successorUrl === undefined
        ? []
        : [{ rel: successorRel, type: 'application/magic-envelope+xml', href: successorUrl }]),
    ],
  }
}

/** Throws `DiscoveryFailed` unless the page identifies the person with values that can be stored. */
export function readHcard(html: string): Hcard {
  const hcardFields = readHcardFields(html)
  const text = (field: Parameters<HcardFields['get']>[0]) => cleanText(hcardFields.get(field) ?? '').trim()
  const hcard: Hcard = {
    guid: text('uid'),
    publicKey: text('key'),
    nickname: text('nickname'),
    fullName: text('fn'),
    firstName: text('given_name'),
    lastName: text('family_name'),
    searchable: text('searchable') === 'true',
    imageUrl: hcardFields.get('entity_photo') ?? '',
    imageUrlMedium: hcardFields.get('entity_photo_medium') ?? '',
    imageUrlSmall: hcardFields.get('entity_photo_small') ?? '',
  }
  const problem = hcardFields.has('fn') ? problemOf(hcard) : 'has no full name'
  if (problem !== undefined) throw new ProtocolError('DiscoveryFailed', `the hCard ${problem}`)
  return hcard
}

function problemOf(hcard: Hcard): string | undefined {
  if (!isGuid(hcard.guid)) return 'has no usable guid'
  if (readPublicKey(hcard.publicKey) === undefined) return 'has no usable key'
  const hasMatchingName =
    isAcceptedName(hcard.fullName, 70) && isAcceptedName(hcard.firstName, 32) && isAcceptedName(hcard.lastName, 32)
  if (!hasMatchingName) return 'has a name that is too long or contains a semicolon'
  const images = [hcard.imageUrl, hcard.imageUrlMedium, hcard.imageUrlSmall]
  return images.every(isUrlWithPath) ? undefined : 'lacks an image'
}

/** The hCard page of a local person; other pods read it by its class names. */
export function writeHcard(person: Hcard): string {
  const images = [
    ['photo', 300, person.imageUrl],
    ['photo_medium', 100, person.imageUrlMedium],
    ['photo_small', 50, person.imageUrlSmall],
  ] as const
  const fullName = escapeHtml(person.fullName)
  return `<!DOCTYPE html>
<html>
  <head>
    <meta charset="UTF-8">
    <title>${fullName}</title>
  </head>
  <body>
    <div id="content">
      <h1>${fullName}</h1>
      <div id="content_inner" class="entity_profile vcard author">
        <h2>User profile</h2>
${textRow('uid', 'uid', person.guid)}
${textRow('nickname', 'nickname', person.nickname)}
${textRow('full_name', 'fn', person.fullName)}
${textRow('searchable', 'searchable', String(person.searchable))}
${row('key', `<pre class="key">${escapeHtml(person.publicKey)}</pre>`)}
${textRow('first_name', 'given_name', person.firstName)}
${textRow('family_name', 'family_name', person.lastName)}
${images.map(([property, size, url]) => imageRow(property, size, url)).join('\n')}
      </div>
    </div>
  </body>
</html>
`
}

function textRow(property: string, className: string, text: string): string {
  return row(property, `<span class="${className}">${escapeHtml(text)}</span>`)
}

function imageRow(property: string, size: number, url: string): string {
  return row(property, `<img class="photo avatar" width="${size}" height="${size}" src="${escapeHtml(url)}">`)
}

function row(property: string, value: string): string {
  const label = property.charAt(0).toUpperCase() + property.slice(1)
  return `        <dl class="entity_${property}"><dt>${label}</dt><dd>${value}</dd></dl>`
}

function podRelOf(host: string): string {
  return `http://${host}/seed_location`
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (cause) {
    throw new ProtocolError('DiscoveryFailed', 'the WebFinger document is not JSON', { cause })
  }
}
