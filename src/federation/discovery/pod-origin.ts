import type { RemotePod } from '../../persistence/models/remote-pod.js'
import { isUrl } from '../../protocol/is-url.js'

/** The origin of a pod as it is stored; undefined: not a valid host. */
export function podOrigin({ host, port, ssl }: Pick<RemotePod, 'host' | 'port' | 'ssl'>): string | undefined {
  // 443 stands for both default ports. Pods use https there, even if it has not been seen yet.
  const isDefault = port === 443
  const text = isDefault ? `https://${host}` : `${ssl ? 'https' : 'http'}://${host}:${port}`
  if (!isUrl(text)) return undefined
  const url = new URL(text)
  return url.href === `${url.origin}/` ? url.origin : undefined
}
