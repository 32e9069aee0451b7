import type { Config } from '../../config/config.js'
import { UPLOADS_PATH } from '../../domain/photos/photos.js'
import { podOrigin } from '../../federation/discovery/pod-origin.js'
import type { MovedPicture } from '../../persistence/photos/picture-state.js'
import { isUrl } from '../../protocol/is-url.js'

/**
 * Where a file of an account that has moved is now. Undefined: the message of the move names an address that is on no pod of the account,
 * or the account or its pod is blocked.
 */
export function movedPictureUrl(
  { url: podUrl }: Pick<Config, 'url'>,
  fileName: string,
  { file, name, remotePath, isBlocked, pods }: MovedPicture,
): string | undefined {
  if (isBlocked) return undefined
  const prefix = fileName.slice(0, -file.length)
  const newFile = encodeURIComponent(`${prefix}${name}`)
  if (remotePath === null) return `${podUrl}${UPLOADS_PATH}${newFile}`
  if (!isUrl(remotePath)) return undefined
  const folder = new URL(remotePath)
  const isOnPod = pods.some((pod) => {
    const origin = podOrigin(pod)
    return origin !== undefined && new URL(origin).host === folder.host
  })
  return isOnPod && /^https?:$/.test(folder.protocol) ? `${folder.href}${newFile}` : undefined
}
