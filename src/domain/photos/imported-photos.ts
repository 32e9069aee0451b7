import { createHash } from 'node:crypto'
import { listPhotoFiles, UPLOADS_PATH } from './photos.js'

/** Where other pods find the imported photos of a person under their old names: sizes and names of two people cannot collide. */
export function importedPhotosUrl(podUrl: string, personGuid: string): string {
  return `${podUrl}${UPLOADS_PATH}${personGuid}/`
}

/** The name under which this pod stores a photo of an archive. Its characters are those of the names that this pod makes. */
export function importedPhotoName(personGuid: string, oldName: string): string {
  const [, base = '', ending = ''] = /^(.*)\.([A-Za-z0-9]+)$/.exec(oldName) ?? []
  const plain = /^[A-Za-z0-9-]{1,100}$/.test(base)
    ? base
    : createHash('sha256').update(oldName).digest('hex').slice(0, 40)
  return `${personGuid}-${plain}.${ending.toLowerCase()}`
}

/** The stored file of a photo that another pod requests under its old name. */
export function importedPhotoFile(personGuid: string, file: string): string {
  const prefix = listPhotoFiles('').find((each) => each !== '' && file.startsWith(each)) ?? ''
  return `${prefix}${importedPhotoName(personGuid, file.slice(prefix.length))}`
}

/** Endings of pictures that this pod serves. */
export const PICTURE_ENDING = /\.(jpe?g|png|gif|webp)$/i
