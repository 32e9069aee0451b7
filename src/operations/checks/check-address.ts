import { randomBytes } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import type { Knex } from 'knex'
import { type CheckResult, checkFailure, checkPassed, checkWarning } from '../../domain/operations/check-result.js'
import { messageOf } from '../../errors/thrown.js'
import { findCheckedAddress } from '../../persistence/operations/checks.js'
import { DAY_MS } from '../../protocol/durations.js'
import type { Services } from '../../services/services.js'
import { PROXY_PROBE_PATH } from '../../web/server/proxy-probe.js'
import { type OwnRequestOptions, requestOwnPod, type SelfCheckResponse } from './own-request.js'

/** The findings about the address, and the end of the certificate if there is one. */
export interface AddressFindings {
  readonly findings: readonly CheckResult[]
  readonly certificateEndsAt: Date | undefined
}

const ENDS_SOON_DAYS = 14
/** A proxy that passes events on sends the first one at once; the page keeps the connection for longer. */
const EVENT_WITHIN_MS = 3_000

/** Requests the pod at its own address, as other pods do: name, certificate, WebFinger, redirects, events, and the headers of its proxy. */
export async function checkOwnAddress(
  { db, config }: Pick<Services, 'config' | 'db'>,
  now: Date,
  options: OwnRequestOptions = {},
): Promise<AddressFindings> {
  const names = await checkName(new URL(config.url), options)
  const webFinger = await webFingerUrl(db, config.url)
  let response: SelfCheckResponse
  try {
    response = await requestOwnPod(webFinger.url, 'end', options)
  } catch (error) {
    const problem = `${config.url} does not answer (${messageOf(error)}): check the proxy, DNS and the firewall.`
    return { findings: [...names, checkFailure('address', problem)], certificateEndsAt: undefined }
  }
  const findings = [
    ...names,
    checkCertificate(response, now),
    checkWebFinger(response, webFinger.isKnown),
    ...(await checkProxy(new URL(PROXY_PROBE_PATH, config.url), options)),
  ]
  return { findings, certificateEndsAt: response.certificate?.endsAt }
}

async function checkName({ hostname }: URL, { via }: OwnRequestOptions): Promise<readonly CheckResult[]> {
  if (via !== undefined) return []
  try {
    const addresses = await lookup(hostname.replace(/^\[(.*)\]$/, '$1'), { all: true })
    return [checkPassed('dns', `${hostname} is ${addresses.map(({ address }) => address).join(', ')}.`)]
  } catch (error) {
    return [checkFailure('dns', `${hostname} has no address (${messageOf(error)}): add a record for it.`)]
  }
}

/** WebFinger of an open account; without accounts, of an invented name, which must be unknown. */
async function webFingerUrl(db: Knex, base: string): Promise<{ readonly url: URL; readonly isKnown: boolean }> {
  const storedCheck = await findCheckedAddress(db)
  const address = storedCheck ?? `nobody-${randomBytes(6).toString('hex')}@${new URL(base).host}`
  return { url: new URL(`/.well-known/webfinger?resource=acct:${address}`, base), isKnown: storedCheck !== undefined }
}

function checkCertificate({ certificate }: SelfCheckResponse, now: Date): CheckResult {
  if (certificate === undefined) {
    return checkWarning('certificate', 'POD_URL has no TLS: other pods need a public https address.')
  }
  const { endsAt, error } = certificate
  const days = Math.floor((endsAt.getTime() - now.getTime()) / DAY_MS)
  if (days < 0) return checkFailure('certificate', `The certificate expired ${-days} days ago: renew it.`)
  if (error !== undefined) {
    return checkFailure(
      'certificate',
      `Other pods do not trust it (${error}): check its name, and that the chain is complete.`,
    )
  }
  return days < ENDS_SOON_DAYS
    ? checkWarning('certificate', `It ends in ${days} days: check why it was not renewed.`)
    : checkPassed('certificate', `The certificate is valid for ${days} days.`)
}

function checkWebFinger({ status, location, body }: SelfCheckResponse, isKnown: boolean): CheckResult {
  if (status >= 300 && status < 400) {
    return checkFailure(
      'webfinger',
      `The proxy redirects to ${location ?? 'nowhere'}: set POD_URL to the address that answers.`,
    )
  }
  if (status !== (isKnown ? 200 : 404) || (isKnown && !body.includes('"links"'))) {
    return checkFailure(
      'webfinger',
      `It is answered with status ${status}: the proxy must pass on /.well-known/webfinger.`,
    )
  }
  return checkPassed('webfinger', `It is answered with status ${status}, without a redirect.`)
}

/** The data that the web process returns about the request that reached it. */
interface SeenRequest {
  readonly forwarded: 'none' | 'trusted' | 'untrusted'
  readonly protocol: string
}

async function checkProxy(url: URL, options: OwnRequestOptions): Promise<readonly CheckResult[]> {
  try {
    const response = await requestOwnPod(url, 'data', { withinMs: EVENT_WITHIN_MS, ...options })
    const [, data = ''] = /^data: (.+)$/m.exec(response.body) ?? []
    if (response.status !== 200 || data === '') {
      return [
        checkFailure(
          'events',
          `${url.pathname} is answered with status ${response.status}: the proxy must pass it on.`,
        ),
      ]
    }
    const seenRequest: SeenRequest = JSON.parse(data)
    return [checkPassed('events', 'The proxy passes on server-sent events.'), checkTrust(seenRequest, url.protocol)]
  } catch (error) {
    const problem = `No event arrives at once (${messageOf(error)}): the proxy must not buffer text/event-stream.`
    return [checkFailure('events', problem)]
  }
}

function checkTrust({ forwarded, protocol }: SeenRequest, expected: string): CheckResult {
  if (forwarded === 'untrusted') {
    return checkWarning('proxy', 'TRUST_PROXY does not name the proxy: all clients share one address and its limits.')
  }
  if (`${protocol}:` !== expected) {
    return checkWarning(
      'proxy',
      `Requests over ${expected.slice(0, -1)} arrive as ${protocol}: the proxy must send X-Forwarded-Proto.`,
    )
  }
  return checkPassed(
    'proxy',
    forwarded === 'none' ? 'Requests arrive without a proxy.' : 'TRUST_PROXY names the proxy.',
  )
}
