import { findReadablePhoto, listUploadedPhotos } from '../../persistence/photos/find-readable-photo.js'
import type { ListedPhoto } from '../../persistence/photos/list-photos.js'
import type { Page, TimePage } from '../../persistence/sql/keyset-page.js'
import type { Services } from '../../services/services.js'
import { type Viewer, visibilityForViewer } from '../accounts/viewers.js'
import { Refusal } from '../refusals.js'

/** Lists the viewer's own photos, including pending ones. */
export function listOwnPhotos(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  page: TimePage,
): Promise<Page<ListedPhoto>> {
  return listUploadedPhotos(services.db, viewer, { visibility: visibilityForViewer(viewer), page })
}

export async function getPhoto(services: Pick<Services, 'db'>, viewer: Viewer, guid: string): Promise<ListedPhoto> {
  const photo = await findReadablePhoto(services.db, viewer, { guid, visibility: visibilityForViewer(viewer) })
  if (!photo) throw photoNotFound()
  return photo
}

/** Finds a photo that the viewer has just created, even if the token has no scope to read it. */
export async function getCreatedPhoto(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  guid: string,
): Promise<ListedPhoto> {
  const photo = await findReadablePhoto(services.db, viewer, { guid, visibility: 'readable' })
  if (!photo) throw photoNotFound()
  return photo
}

function photoNotFound(): Refusal {
  return new Refusal('photo_not_found', 'This photo does not exist, or you may not see it.')
}
