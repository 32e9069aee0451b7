import { type CheckResult, checkFailure, checkPassed } from '../../src/domain/operations/check-result.js'
import { savePodCheck } from '../../src/federation/discovery/check-pod.js'
import { parsePodHost } from '../../src/federation/discovery/pod-location.js'
import { Person } from '../../src/persistence/models/person.js'
import { readPublicKey } from '../../src/protocol/signatures/rsa.js'
import type { Services } from '../../src/services/services.js'
import { probePerson } from './probe-person.js'
import { probePod } from './probe-pod.js'

/** Compares a person and their pod with the stored data. */
export async function examinePerson(services: Services, address: string): Promise<readonly CheckResult[]> {
  const { findings, podUrl, guid, publicKey } = await probePerson(services, address)
  const known = guid === undefined ? [] : await compareWithStored(services, address, { guid, publicKey })
  const ofPod = podUrl === undefined ? [] : await examinePod(services, new URL(podUrl).origin)
  return [...findings, ...known, ...ofPod]
}

/** Guid and key are fixed at discovery; later changes are refused. */
async function compareWithStored(
  { db }: Services,
  address: string,
  now: { readonly guid: string; readonly publicKey: string | undefined },
): Promise<readonly CheckResult[]> {
  const storedPerson = await Person.byAddress(db, address)
  if (storedPerson === undefined) return []
  const key = readPublicKey(now.publicKey ?? '')?.export({ type: 'spki', format: 'pem' })
  if (storedPerson.guid === now.guid && storedPerson.publicKey === key)
    return [checkPassed('known', 'Guid and key match the stored ones.')]
  const what = storedPerson.guid === now.guid ? 'The key' : 'The guid'
  return [
    checkFailure(
      'known',
      `${what} of ${address} differs from the stored one of ${storedPerson.createdAt.toISOString()}: this pod rejects their messages.`,
    ),
  ]
}

/** Checks a pod; the result is stored if one of its people is known. */
export async function examinePod(services: Services, origin: string): Promise<readonly CheckResult[]> {
  const { check, findings } = await probePod(services, origin)
  const podAfter = await savePodCheck(services.db, parsePodHost(new URL(origin)), check, services.now())
  return podAfter === undefined
    ? findings
    : [...findings, checkPassed('noted', `The pod is known here; it is listed as ${podAfter.status} from now on.`)]
}
