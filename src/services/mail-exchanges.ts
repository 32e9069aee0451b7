import { Resolver } from 'node:dns/promises'

const TIMEOUT_MS = 2_000

/** Looks up the mail servers of a domain. A domain without an answer has none: a rule then applies by the domain alone. */
export function openMailExchanges(): (domain: string) => Promise<readonly string[]> {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: 1 })
  return async (domain) => {
    const records = await resolver.resolveMx(domain).catch(() => [])
    return records.map(({ exchange }) => exchange.toLowerCase().replace(/\.$/, ''))
  }
}
