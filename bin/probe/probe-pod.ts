import { randomBytes } from 'node:crypto'
import { type CheckResult, checkFailure, checkPassed, checkWarning } from '../../src/domain/operations/check-result.js'
import { checkPod, type PodCheck } from '../../src/federation/discovery/check-pod.js'
import type { LookupServices } from '../../src/services/services.js'
import { isSuccess, sendRequest } from './send-request.js'

export interface ProbedPod {
  readonly check: PodCheck
  readonly findings: readonly CheckResult[]
}

/** Checks the endpoints of a pod that need no known person. */
export async function probePod(services: LookupServices, origin: string): Promise<ProbedPod> {
  const check = await checkPod(services, origin)
  if (check.frontPage === undefined) {
    return {
      check,
      findings: [checkFailure('front page', `${check.error} Other pods stop sending to it (${check.status}).`)],
    }
  }
  const findings = [
    checkPassed('front page', `${check.frontPage.href} answers, as required.`),
    checkTls(check.frontPage),
    nodeInfo(check),
    await unknownEntity(services, origin),
    await unknownPerson(services, origin),
  ]
  return { check, findings }
}

function checkTls({ protocol, host }: URL): CheckResult {
  if (protocol === 'https:') return checkPassed('TLS', `${host} has a trusted certificate.`)
  return checkWarning(
    'TLS',
    `${host} uses plain http; only a pod with ALLOW_PRIVATE_ADDRESSES accepts that: other pods need https.`,
  )
}

function nodeInfo({ nodeInfo: info, error }: PodCheck): CheckResult {
  if (info === undefined) {
    return checkWarning(
      'nodeinfo',
      `NodeInfo names no software: ${error}. Other pods list this pod with an unknown version.`,
    )
  }
  const runs = `It runs ${info.software} ${info.version}`
  if (info.protocols.includes('diaspora')) return checkPassed('nodeinfo', `${runs}.`)
  return checkWarning(
    'nodeinfo',
    `${runs}, and does not name diaspora among its protocols: ${info.protocols.join(', ')}.`,
  )
}

async function unknownEntity(services: LookupServices, origin: string): Promise<CheckResult> {
  const exchange = await sendRequest(services, `${origin}/fetch/post/${randomBytes(16).toString('hex')}`)
  if ('fault' in exchange) return checkFailure('fetch', exchange.fault)
  const { status } = exchange.response
  if (status === 404) return checkPassed('fetch', 'An unknown post is answered with 404.')
  if (isSuccess(exchange.response)) return checkFailure('fetch', `An unknown post is answered with ${status}, not 404.`)
  return checkWarning('fetch', `An unknown post is answered with ${status}; other pods expect 404.`)
}

async function unknownPerson(services: LookupServices, origin: string): Promise<CheckResult> {
  const address = `nobody-${randomBytes(6).toString('hex')}@${new URL(origin).host}`
  const exchange = await sendRequest(services, `${origin}/.well-known/webfinger?resource=acct:${address}`)
  if ('fault' in exchange) return checkFailure('webfinger', exchange.fault)
  const { status } = exchange.response
  if (status === 404) return checkPassed('webfinger', 'An unknown person is answered with 404.')
  if (isSuccess(exchange.response))
    return checkFailure('webfinger', `An unknown person is answered with ${status}, not 404.`)
  return checkWarning('webfinger', `An unknown person is answered with ${status}; other pods expect 404.`)
}
