import type { Pod } from '../../persistence/models/pod.js'
import { isUrl } from '../../protocol/is-url.js'

/** Where a pod is asked, as it was recorded; undefined: what was recorded is no place to send anybody to. */
export function podOrigin({ host, port, ssl }: Pick<Pod, 'host' | 'port' | 'ssl'>): string | undefined {
  // 443 stands for both default ports, and pods speak https there, whether it has been seen yet or not.
  const isDefault = port === 443
  const text = isDefault ? `https://${host}` : `${ssl ? 'https' : 'http'}://${host}:${port}`
  if (!isUrl(text)) return undefined
  const url = new URL(text)
  return url.href === `${url.origin}/` ? url.origin : undefined
}
