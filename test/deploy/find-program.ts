import { access, constants } from 'node:fs/promises'
import { delimiter, join } from 'node:path'

/** The path of a program, also in the folders of system programs. Undefined: it is not installed. */
export async function findProgram(name: string): Promise<string | undefined> {
  for (const folder of [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin']) {
    const path = join(folder, name)
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isThere) return path
  }
  return undefined
}
