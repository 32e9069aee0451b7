import { domainToASCII } from 'node:url'
import { getPublicSuffix } from 'tldts'
import type { Config } from '../../../config/config.js'
import { Refusal } from '../../refusals.js'

/** The pods that a rule is about. */
export interface RuleDomain {
  /** Lower case, in ASCII, without `www.` and a trailing dot. */
  readonly domain: string
  readonly subdomains: boolean
  /** Null: every port. 443 stands for both default ports. */
  readonly port: number | null
}

export interface RuleDomainInput {
  /** `*.spam.example` includes subdomains; `spam.example:3000` is for the port. */
  readonly domain: string
  readonly subdomains?: boolean | undefined
  readonly port?: number | null | undefined
}

/** The name of a rule: its domain, with the port if it has one. */
export function nameOfRule({ domain, port }: Pick<RuleDomain, 'domain' | 'port'>): string {
  return port === null ? domain : `${domain}:${port}`
}

const IP_ADDRESS = /^(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[[0-9a-f:.]{2,45}\])$/

/** Reads the domain of a rule. Refuses names that are not hosts, domains that are too wide, and this pod. */
export function readRuleDomain(
  { url }: Pick<Config, 'url'>,
  { domain: given, subdomains = true, port: givenPort = null }: RuleDomainInput,
): RuleDomain {
  const [, text = '', digits] = /^(.*?)(?::([1-9][0-9]{0,4}))?$/s.exec(given.trim().toLowerCase()) ?? []
  const isWildcard = text.startsWith('*.')
  const name = (isWildcard ? text.slice(2) : text).replace(/\.$/, '')
  const isAddress = IP_ADDRESS.test(name)
  const domain = (isAddress ? name : domainToASCII(name)).replace(/^www\.(?=.*\.)/, '')
  if (!isAddress && !/^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,62})(?:\.[a-z0-9_]([a-z0-9_-]{0,62}))*$/.test(domain)) {
    throw new Refusal('domain_invalid', 'This is not the name of a host.')
  }
  const namedPort = givenPort ?? (digits === undefined ? null : Number(digits))
  if (namedPort !== null && namedPort > 65_535) throw new Refusal('domain_invalid', 'There is no such port.')
  const port = namedPort === 80 ? 443 : namedPort
  const rule = { domain, subdomains: !isAddress && (isWildcard || subdomains), port }
  if (isThisPodOrParent(url, rule)) throw new Refusal('own_pod', `${domain} is this pod, or a domain above it.`)
  if (!isAddress && isTooBroad(domain)) {
    throw new Refusal('too_broad', `${domain} is a public suffix. A rule is for one domain below it.`)
  }
  return rule
}

function isThisPodOrParent(url: string, { domain, port }: RuleDomain): boolean {
  const ownUrl = new URL(url)
  const ownPort = ownUrl.port === '' || ownUrl.port === '80' ? 443 : Number(ownUrl.port)
  const host = ownUrl.hostname.replace(/^www\./, '')
  return (host === domain || host.endsWith(`.${domain}`)) && (port === null || port === ownPort)
}

function isTooBroad(domain: string): boolean {
  if (domain === 'localhost') return false
  return !domain.includes('.') || getPublicSuffix(domain, { allowPrivateDomains: true }) === domain
}
