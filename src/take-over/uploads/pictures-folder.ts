import { stat } from 'node:fs/promises'
import { join } from 'node:path'

/** A name that a picture has at diaspora*, with or without a size prefix. */
const NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}$/

export function isPictureName(name: string): boolean {
  return NAME.test(name)
}

/** The folder of pictures in the folder `uploads` of the old pod. */
export function picturesFolder(uploads: string): string {
  return join(uploads, 'images')
}

export async function hasPictures(uploads: string): Promise<boolean> {
  const folderStats = await stat(picturesFolder(uploads)).catch(() => undefined)
  return folderStats?.isDirectory() === true
}
