import { randomBytes } from 'node:crypto'
import { type Finding, fail, ok, warn } from '../../src/domain/operations/finding.js'
import { checkPod, type PodCheck } from '../../src/federation/discovery/pod-info.js'
import { isGood, type ProbePod, sendRequest } from './send-request.js'

export interface ProbedPod {
  readonly check: PodCheck
  readonly findings: readonly Finding[]
}

/** Checks the endpoints of a pod that need no known person. */
export async function probePod(pod: ProbePod, origin: string): Promise<ProbedPod> {
  const check = await checkPod(pod, origin)
  if (check.frontPage === undefined) {
    return { check, findings: [fail('front page', `${check.error} Other pods stop sending to it (${check.status}).`)] }
  }
  const findings = [
    ok('front page', `${check.frontPage.href} answers, as it must for a pod to be alive.`),
    secure(check.frontPage),
    nodeInfo(check),
    await unknownEntity(pod, origin),
    await unknownPerson(pod, origin),
  ]
  return { check, findings }
}

function secure({ protocol, host }: URL): Finding {
  if (protocol === 'https:') return ok('TLS', `${host} has a certificate that we trust.`)
  return warn(
    'TLS',
    `${host} uses plain http; only a pod with ALLOW_PRIVATE_ADDRESSES accepts that: other pods need https.`,
  )
}

function nodeInfo({ nodeInfo: info, error }: PodCheck): Finding {
  if (info === undefined) {
    return warn('nodeinfo', `NodeInfo names no software: ${error}. Other pods list this pod with an unknown version.`)
  }
  const runs = `It runs ${info.software} ${info.version}`
  if (info.protocols.includes('diaspora')) return ok('nodeinfo', `${runs}.`)
  return warn('nodeinfo', `${runs}, and does not name diaspora among its protocols: ${info.protocols.join(', ')}.`)
}

async function unknownEntity(pod: ProbePod, origin: string): Promise<Finding> {
  const result = await sendRequest(pod, `${origin}/fetch/post/${randomBytes(16).toString('hex')}`)
  if ('fault' in result) return fail('fetch', result.fault)
  const { status } = result.answer
  if (status === 404) return ok('fetch', 'An unknown post is answered with 404.')
  if (isGood(result.answer)) return fail('fetch', `An unknown post is answered with ${status}, not 404.`)
  return warn('fetch', `An unknown post is answered with ${status}; other pods expect 404.`)
}

async function unknownPerson(pod: ProbePod, origin: string): Promise<Finding> {
  const address = `nobody-${randomBytes(6).toString('hex')}@${new URL(origin).host}`
  const result = await sendRequest(pod, `${origin}/.well-known/webfinger?resource=acct:${address}`)
  if ('fault' in result) return fail('webfinger', result.fault)
  const { status } = result.answer
  if (status === 404) return ok('webfinger', 'An unknown person is answered with 404.')
  if (isGood(result.answer)) return fail('webfinger', `An unknown person is answered with ${status}, not 404.`)
  return warn('webfinger', `An unknown person is answered with ${status}; other pods expect 404.`)
}
