import { type KnownPod, listKnownPods } from '../../persistence/outbound/known-pods.js'
import type { Pod } from '../../pod/pod.js'

/** Undefined: the pod is not known. */
export async function findPodByName({ db }: Pick<Pod, 'db'>, name: string): Promise<KnownPod | undefined> {
  const [, host, digits = '443'] = /^([^:/?#\s]{1,255})(?::([0-9]{1,5}))?$/.exec(name) ?? []
  const port = Number(digits)
  if (host === undefined || port > 65_535) return undefined
  const [found] = await listKnownPods(db, { place: { host: host.toLowerCase(), port } })
  return found
}
