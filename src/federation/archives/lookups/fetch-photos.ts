import { isUrl } from '../../../protocol/is-url.js'
import type { Services } from '../../../services/services.js'
import { isThisPod, parseHomeUrl, parsePodHost } from '../../discovery/pod-location.js'
import { RemotePodError } from '../../remote-pod/remote-pod-error.js'
import { IMPORT_LIMITS } from '../limits.js'
import { readMembers } from '../reading/archive-owner.js'
import { addPhotoName, profilePictureName } from '../reading/archive-photos.js'
import { spooledBatches } from '../reading/spool-archive.js'
import { openHostPace } from './host-pace.js'

/** Fetches photos of an archive from the old pod. */
export interface PhotoFetches {
  /** Undefined: the old pod has no such photo, or does not answer. */
  fetch(name: string, signal: AbortSignal): Promise<Buffer | undefined>
}

/** An old pod that does not answer so often in a row is not requested again in this import. */
const FAILURES_IN_A_ROW = 3

interface PhotosOfOldPod {
  readonly folder: string
  readonly oldAddress: string
  readonly profile: Readonly<Record<string, unknown>>
  readonly maxBytes: number
}

/** Where each photo is on the old pod. Addresses of other pods do not count: the owner of the archive could have written them. */
export async function openPhotoFetches(
  services: Pick<Services, 'config' | 'remotePods'>,
  photos: PhotosOfOldPod,
): Promise<PhotoFetches> {
  const urls = await readPhotoUrls(services, photos)
  const pace = openHostPace(IMPORT_LIMITS.fetchIntervalMs)
  let failures = 0

  return {
    async fetch(name, signal) {
      const url = urls.get(name)
      if (url === undefined || failures >= FAILURES_IN_A_ROW) return undefined
      await pace.wait(url.host, signal)
      try {
        const { status, body } = await services.remotePods.get(url, {
          maxBytes: photos.maxBytes,
          mustStayOnHost: true,
          mayUsePlain: true,
          signal,
        })
        failures = 0
        return status === 200 ? body : undefined
      } catch (error) {
        if (!(error instanceof RemotePodError)) throw error
        failures += 1
        return undefined
      }
    },
  }
}

async function readPhotoUrls(
  { config }: Pick<Services, 'config'>,
  { folder, oldAddress, profile }: PhotosOfOldPod,
): Promise<ReadonlyMap<string, URL>> {
  const home = parseHomeUrl(oldAddress)
  const urls = new Map<string, URL>()
  if (home === undefined || isThisPod(config, parsePodHost(home))) return urls
  const add = (name: string, address: unknown) => {
    if (urls.has(name) || typeof address !== 'string' || !isUrl(address)) return
    const url = new URL(address)
    if (url.host === home.host) urls.set(name, url)
  }
  const addPhoto = (photo: unknown) => {
    const names = new Set<string>()
    addPhotoName(names, photo)
    const path = readMembers(readMembers(photo)?.['entity_data'])?.['remote_photo_path']
    for (const name of names) add(name, `${path}${name}`)
  }
  for await (const { items } of spooledBatches(folder, 'posts')) {
    for (const { value } of items) {
      const photos = readMembers(readMembers(value)?.['entity_data'])?.['photos']
      if (Array.isArray(photos)) photos.forEach(addPhoto)
    }
  }
  for await (const { items } of spooledBatches(folder, 'photos')) {
    for (const { value } of items) addPhoto(value)
  }
  const picture = profilePictureName(profile)
  if (picture !== undefined) add(picture, profile['image_url'])
  return urls
}
